"""Path rules, compiled; and where memoryd itself can be asked or read.

In: path rules (glob, label), memoryd's own folder, the user's home. Out: `Places`, which gives the label of
what a call's arguments name, and a pattern (`hint`) that tells quickly which texts need no closer look.

In a glob `*` and `**` stand for any characters, slashes too, `?` for one, `[...]` for one of a set. A glob
that starts with `*/` also matches at the start of a relative path; one that ends in `/*` also matches the
folder itself, since who lists a folder sees into it. Case never counts.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from pathlib import Path

from memoryd.arguments import Named, fold, normal
from memoryd.labels import LOWEST, Classes, Label

PathRule = tuple[str, Label]
"""A glob, and the label that it joins onto a result."""

_ASKS_MEMORYD = re.compile(r"(?<![a-z0-9])(?:bxctl|memoryd)")
_NOT_LITERAL = re.compile(r"\[[^\]]*\]|[*?/\s'\"\\]+")


class Places:
    """What paths and shell words are worth."""

    def __init__(
        self, rules: Sequence[PathRule], classes: Classes, linked: Label, *, state: Path, home: Path
    ) -> None:
        """Compile `rules`; what memoryd itself may have told counts as `linked`."""
        self._variables = {"HOME": str(home), "MEMORYD_HOME": str(state)}
        self._globs = tuple(rules)
        self._rules = self._compiled(rules)
        self._linked = linked
        notes = (
            (f"{state}/notes/{name}/*", Label(n, True)) for n, name in enumerate(classes.names)
        )
        self._own = self._compiled([(f"{state}/*", linked), *notes])
        self.hint = _hint([glob for glob, _ in rules], str(state), str(home))
        """Found in every run without spaces (folded, without quotes) that can name such a place, or such a
        word; None: nothing shorter than a closer look can tell."""

    def by_rules(self, found: Named) -> Label:
        """Return the join of all path rules that match a path in `found`."""
        return self._joined(self._rules, found)

    def matching(self, found: Named) -> list[PathRule]:
        """Return the path rules that match a path in `found`, each by itself; for a person, so slowly."""
        places = [normal(place, self._variables) for place in found.places()]
        return [
            (glob, label)
            for glob, label in self._globs
            for pattern, _ in self._compiled([(glob, label)])
            if any(pattern.match(place) for place in places)
        ]

    def of_memoryd(self, found: Named) -> Label:
        """Return what memoryd may have told a call that names its folder, or in a shell its programs."""
        label = self._joined(self._own, found)
        if any(_ASKS_MEMORYD.search(fold(word)) for word in found.words):
            label = label.join(self._linked)
        return label

    def _compiled(self, rules: Iterable[PathRule]) -> list[tuple[re.Pattern[str], Label]]:
        """Return one pattern a label, lowest first."""
        forms: dict[Label, set[str]] = {}
        for glob, label in rules:
            forms.setdefault(label, set()).update(_forms(normal(glob, self._variables)))
        return [
            (re.compile("|".join(translate(form) for form in sorted(forms[label]))), label)
            for label in sorted(forms)
        ]

    def _joined(self, rules: list[tuple[re.Pattern[str], Label]], found: Named) -> Label:
        label, hint = LOWEST, self.hint
        for place in found.places():
            if hint is not None and not hint.search(fold(place)):
                continue
            path = normal(place, self._variables)
            for pattern, own in rules:
                if not label.covers(own) and pattern.match(path):
                    label = label.join(own)
        return label


def _forms(glob: str) -> Iterator[str]:
    """Yield the glob, and what it means at the start of a relative path and for the folder itself."""
    yield glob
    if glob.startswith("*/"):
        yield from _forms(glob[2:])
    folder = re.sub(r"/\*+\Z", "", glob)
    if folder not in ("", "*", "**", glob):
        yield folder


def _hint(globs: Iterable[str], state: str, home: str) -> re.Pattern[str] | None:
    """Return a pattern that is found in every text that names a path matching `globs`, or asks memoryd.

    Each glob gives its longest run of plain characters; where that lies in the home folder, a path may be
    written without it, and `~` and `$HOME` count as well. None where a glob has no such run.
    """
    home, state = normal(home, {}), normal(state, {})
    found = {"bxctl", "memoryd", "file:"}  # the path of a file: address may be percent-encoded
    for glob in (*globs, state):
        whole = normal(glob, {"HOME": home, "MEMORYD_HOME": state})
        runs = _NOT_LITERAL.split(whole.removeprefix(home)) if whole.startswith(f"{home}/") else []
        literal = max(runs, key=len, default="") or max(_NOT_LITERAL.split(whole), key=len)
        if not literal:
            return None
        found.add(re.escape(literal))
        if literal in home:
            found |= {"~", r"\$home", r"\$\{home"}
        # `$MEMORYD_HOME`, which may stand for the state folder, holds "memoryd"
    return re.compile("|".join(sorted(found)))
