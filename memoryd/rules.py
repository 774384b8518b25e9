"""What a tool's result is worth: the owner's rules, then the profile's, joined with every path rule.

In: a checked configuration, where the state and the user's home lie. Out: `Rules`, which gives the label of a
call's result (`result`), of a hosted call (`hosted`), of what a log brings in without a call (`brought`), the
path rules alone (`paths`), and a `fingerprint` that changes with every rule.

The label of a result is the join of: the first tool rule that matches, every path rule that matches, and,
where the call asked memoryd itself, what memoryd may have answered. No tool rule: the top class, untrusted.

A rebuild asks once a call. So tool rules are looked up once a name, and arguments are taken apart only where
`hints` finds anything in them that a rule could be about; neither changes an answer.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import msgspec

from memoryd import config, profiles
from memoryd.arguments import Reading, named
from memoryd.errors import ConfigError
from memoryd.hints import ARGS, PLACE, Hints
from memoryd.labels import LOWEST, Classes, Label
from memoryd.places import Places
from memoryd.records import Called

VERSION = 2
"""Counts changes in how arguments are read, so that an index made otherwise is rebuilt."""

MAX_TRIED = 64 * 1024
"""Characters at each end of a longer value that an `args` pattern is tried on."""

_MAX_KEPT = 32 * 1024
"""Names whose rules are remembered; a full lookup is emptied."""

_FEW = 8
"""Calls that are sooner asked one by one."""

_SERVER = re.compile(r"mcp__((?:(?!__).)*?)memoryd(?:[-_](.+?))?__", re.IGNORECASE)

_OURS = re.compile(r"(?:\A|[-_.:])memoryd(?:[-_.:]|\Z)", re.IGNORECASE)
"""A memory tool as harnesses name it that do not write ``mcp__SERVER__TOOL``."""

_encode = msgspec.json.Encoder(order="sorted").encode

Reason = tuple[str, Label]
"""A rule, as a person knows it, and what it alone makes a result worth."""


class _Rule(NamedTuple):
    """A tool rule, compiled. `label` None: raises nothing. `search` None: whatever the arguments."""

    names: tuple[str, ...]
    label: Label | None
    search: Callable[[str], re.Match[str] | None] | None = None
    hinted: bool = False
    about: str = ""


class _Plan(NamedTuple):
    """All that the rules say about one name: `cases` in order, then `otherwise`.

    `own` is joined to either: what memoryd may have answered, where the name is one of its own tools.
    """

    cases: tuple[_Rule, ...]
    otherwise: Label | None
    known: bool
    own: Label = LOWEST
    how: Reading = Reading()
    hinted: bool = False
    about: str = "no rule"
    plain: Label | None = None
    """The label where nothing in the arguments hints at a rule; None: they must be looked at in any case."""


class Rules:
    """The compiled rules. Answers depend on nothing but what is asked."""

    def __init__(self, settings: config.Config, *, state: Path, home: Path) -> None:
        """Compile the rules of a checked configuration.

        `state` is memoryd's own folder; `home` is what `~` stands for, in globs and in calls.
        Raises: ConfigError for an `args` that is no regular expression.
        """
        labels, profile = settings.labels, profiles.PROFILES[settings.labels.profile]
        self._profile = labels.profile
        self.classes = Classes(labels.classes)
        self.start = Label(self.classes.level(labels.start), False)
        self.unknown = self.classes.highest
        self.linked = Label(self.classes.level(settings.index.max_class), True)
        self.fingerprint = _fingerprint(settings, profile, state, home)
        self._sockets = {
            socket.name.replace("_", "-"): Label(self.classes.level(socket.clearance), True)
            for socket in settings.socket
        }
        self._owners = tuple(
            _Rule(
                (rule.match,),
                self._label(rule.cls, rule.untrusted),
                _search(rule.args),
                about=f"your rule {rule.match!r}" + (f" with {rule.args!r}" if rule.args else ""),
            )
            for rule in labels.tool
        )
        self._tools = tuple(map(self._of_profile, profile.tools))
        self._brought = tuple(map(self._of_profile, profile.brought))
        places = [
            *((row.glob, self._label(row.cls, row.untrusted)) for row in profile.paths),
            *((rule.glob, self._label(rule.cls, rule.untrusted)) for rule in labels.path),
        ]
        self._places = Places(places, self.classes, self.linked, state=state, home=home)
        self._plans: dict[str, _Plan] = {}
        self._notices: dict[str, _Plan] = {}
        self._hints = Hints([row.hint for row in profile.tools if row.hint], self._places.hint)

    def result(self, tool: str, args: object) -> Label:
        """Return the label of the result of calling `tool` with `args` (decoded JSON, or raw text)."""
        plan = self._plans.get(tool) or self._plan(tool)
        hints = self._hints.of(args, plan.how, everywhere=plan.hinted)
        label = (_first(plan, args, hints) if plan.cases else plan.otherwise) or self.unknown
        if plan.own is not LOWEST:
            label = label.join(plan.own)
        if hints & PLACE:
            found = named(args, plan.how)
            label = label.join(self._places.by_rules(found)).join(self._places.of_memoryd(found))
        return label

    def of_calls(self, calls: Sequence[Called], *, stated: bool) -> list[Label]:
        """Return what the result of each call is worth, in their order: as `result` (`hosted`) says one by one.

        `stated`: the log states its results' labels itself, so that path rules alone count. Of many calls most
        are told by their tools' names, once one look at all their arguments has found no hint in them.
        """
        found: list[Label | None] = [None] * len(calls)
        if len(calls) > _FEW:
            plans = [self._plans.get(call.tool) or self._plan(call.tool) for call in calls]
            asked = [
                (call.args, plan.how, plan.hinted) for call, plan in zip(calls, plans, strict=True)
            ]
            found = [LOWEST if stated else plan.plain for plan in plans]
            for at in self._hints.doubtful(asked):
                found[at] = None
        return [
            label if label is not None and not call.hosted else self._of_call(call, stated=stated)
            for call, label in zip(calls, found, strict=True)
        ]

    def _of_call(self, call: Called, *, stated: bool) -> Label:
        if call.hosted:
            return self.hosted(call.tool, call.args)
        return (self.paths if stated else self.result)(call.tool, call.args)

    def paths(self, tool: str, args: object) -> Label:
        """Return the join of the path rules alone, for logs that state their results' labels themselves."""
        plan = self._plans.get(tool) or self._plan(tool)
        if not self._hints.of(args, plan.how, everywhere=plan.hinted) & PLACE:
            return LOWEST
        return self._places.by_rules(named(args, plan.how))

    def hosted(self, tool: str, args: object) -> Label:
        """Return the label of what the harness fetched itself, under the tool's name or ``hosted:NAME``."""
        plan = self._plans.get(tool) or self._plan(tool)
        return self.result(tool if plan.known else f"hosted:{tool}", args)

    def brought(self, name: str, args: object = None) -> Label | None:
        """Return the label of what a log brings in under `name` without a call, or None: ignored.

        `args` holds the paths it came from, if the log tells.
        """
        plan = self._notices.get(name) or self._notice(name)
        label = _first(plan, args, ARGS) if plan.cases else plan.otherwise
        if label is None or args is None:
            return label
        return label.join(self.paths(name, args))

    def reasons(self, tool: str, args: object, *, hosted: bool = False) -> list[Reason]:
        """Return all that the label of a call's result is the join of; for a person, so slowly."""
        plan = self._plans.get(tool) or self._plan(tool)
        if hosted and not plan.known:
            return self.reasons(f"hosted:{tool}", args)
        found = _told(plan, args, self.unknown)
        if plan.own is not LOWEST:
            found.append(("memoryd's own answer, by the server's name", plan.own))
        seen = named(args, plan.how)
        found += [(f"path rule {glob!r}", label) for glob, label in self._places.matching(seen)]
        asked = self._places.of_memoryd(seen)
        return found if asked is LOWEST else [*found, ("memoryd's own answer, by the words", asked)]

    def brought_reasons(self, name: str, args: object = None) -> list[Reason]:
        """Return all that the label of what was brought in under `name` is the join of."""
        plan = self._notices.get(name) or self._notice(name)
        found = _told(plan, args, None)
        if args is None:
            return found
        seen = named(args, Reading())
        return found + [(f"path rule {glob!r}", own) for glob, own in self._places.matching(seen)]

    def known(self, name: str, *, brought: bool = False) -> bool:
        """Say whether some rule is about calls of `name` (or about what is brought in under it)."""
        return self._looked_up(name, self._brought if brought else self._tools, self.unknown).known

    def _plan(self, tool: str) -> _Plan:
        """Return, and keep, the plan of calls of `tool`."""
        if server := _SERVER.match(tool):
            plan = self._asks_memoryd(tool, server)
        else:
            plan = self._looked_up(tool, self._tools, self.unknown)
            if not tool.startswith("mcp__") and _OURS.search(tool):
                plan = plan._replace(own=self.linked)
        how = Reading(shell=tool in profiles.SHELLS, globs="glob" in tool.lower())
        plan = plan._replace(how=how, hinted=any(case.hinted for case in plan.cases))
        if all(case.hinted for case in plan.cases):
            plan = plan._replace(plain=(plan.otherwise or self.unknown).join(plan.own))
        return _kept(self._plans, tool, plan)

    def _notice(self, name: str) -> _Plan:
        """Return, and keep, the plan of what is brought in under `name`."""
        return _kept(self._notices, name, self._looked_up(name, self._brought, self.unknown))

    def _asks_memoryd(self, tool: str, server: re.Match[str]) -> _Plan:
        """Return the plan of a memory tool: its socket's clearance; untrusted, since a name proves nothing.

        The owner's rules about it are joined; the profile's are not, which are for other people's servers.
        """
        socket = (server[2] or "memoryd").lower().replace("_", "-")
        own = self.linked if server[1] else self._sockets.get(socket, self.linked)
        return self._looked_up(tool, (), LOWEST)._replace(known=True, own=own)

    def _looked_up(self, name: str, rows: tuple[_Rule, ...], otherwise: Label) -> _Plan:
        """Return the owner's and then the profile's rules for `name`, up to the first without `args`."""
        cases: list[_Rule] = []
        for rule in (*self._owners, *rows):
            if any(fnmatchcase(name, glob) for glob in rule.names):
                if rule.search is None:
                    return _Plan(tuple(cases), rule.label, known=True, about=rule.about)
                cases.append(rule)
        return _Plan(tuple(cases), otherwise, known=bool(cases))

    def _of_profile(self, row: profiles.ToolRule) -> _Rule:
        label = None if row.cls is None else self._label(row.cls, row.untrusted)
        about = f"{self._profile}: {row.about}"
        return _Rule(row.names, label, _search(row.args), row.hint is not None, about)

    def _label(self, cls: str | None, untrusted: bool) -> Label:
        return Label(0 if cls is None else self._level(cls), untrusted)

    def _level(self, cls: str) -> int:
        """Return the level of a class; of one that only the profile knows, the next above it that there is.

        The top class where there is none, or where the configured order is another than the profile's.
        """
        names, known = self.classes.names, profiles.CLASSES
        if cls in names:
            return names.index(cls)
        above = [names.index(name) for name in known[known.index(cls) :] if name in names]
        below = [names.index(name) for name in known[: known.index(cls)] if name in names]
        return min(above) if above and max(below, default=-1) < min(above) else self.classes.top


def _told(plan: _Plan, args: object, unknown: Label | None) -> list[Reason]:
    texts = [*_strings(args), _canonical(args)]
    found: list[Reason] = []
    for case in plan.cases:
        if case.search is None:
            continue
        if any(case.search(piece) for text in texts for piece in _pieces(text)):
            return [*found, (case.about, case.label or LOWEST)]
        if any(len(text) > 2 * MAX_TRIED for text in texts):
            found.append((f"{case.about} (too long to be sure)", case.label or LOWEST))
    otherwise = plan.otherwise or unknown
    return found if otherwise is None else [*found, (plan.about, otherwise)]


def _first(plan: _Plan, args: object, hints: int) -> Label | None:
    """Return the label of the first case that matches, else of what comes after them.

    A pattern that was not tried on the whole of a long value and did not match decides nothing: the label
    is then the join of both outcomes, so that length hides no text from a rule.
    """
    texts: list[str] | None = None
    undecided = LOWEST
    for case in plan.cases:
        if case.search is None or (case.hinted and not hints & ARGS):
            continue
        if texts is None:
            texts = [*_strings(args), _canonical(args)]
        if any(case.search(piece) for text in texts for piece in _pieces(text)):
            return undecided.join(case.label or LOWEST)
        if any(len(text) > 2 * MAX_TRIED for text in texts):
            undecided = undecided.join(case.label or LOWEST)
    if plan.otherwise is None:
        return None if undecided is LOWEST else undecided
    return undecided.join(plan.otherwise)


def _pieces(text: str) -> tuple[str, ...]:
    """Return what of a text patterns are tried on: all of it, or both ends of a long one."""
    return (text,) if len(text) <= 2 * MAX_TRIED else (text[:MAX_TRIED], text[-MAX_TRIED:])


def _strings(args: object) -> Iterator[str]:
    """Yield the decoded string values of `args`."""
    stack = [args]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)


def _canonical(args: object) -> str:
    """Return `args` as canonical JSON: sorted keys, no spaces."""
    try:
        return _encode(args).decode()
    except (TypeError, ValueError, OverflowError):  # lone surrogates, integers beyond 64 bits
        return json.dumps(
            args, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
        )


def _search(pattern: str | None) -> Callable[[str], re.Match[str] | None] | None:
    """Compile an `args` pattern. Raises: ConfigError."""
    if pattern is None:
        return None
    try:
        return re.compile(pattern).search
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"`labels.tool.args`: {pattern!r} is no regular expression: {error}",
            remedy="correct the pattern",
        ) from None


def _kept(plans: dict[str, _Plan], name: str, plan: _Plan) -> _Plan:
    """Keep a plan in a lookup that logs can fill, and return it."""
    if len(plans) >= _MAX_KEPT:
        plans.clear()
    plans[name] = plan
    return plan


def _fingerprint(
    settings: config.Config, profile: profiles.Profile, state: Path, home: Path
) -> str:
    """Return 32 hex digits that change with everything a label depends on, the logs aside."""
    told = [
        VERSION,
        settings.labels,
        settings.index.max_class,
        [(socket.name, socket.clearance) for socket in settings.socket],
        profile,
        str(state),
        str(home),
    ]
    return hashlib.sha256(_encode(told)).hexdigest()[:32]
