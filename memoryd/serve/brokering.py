"""The methods `tool.list` and `tool.call`: the memory as tools, for a loop that passes its model's calls on.

In: a tool's name and the arguments as the model wrote them. Out: a result for the model, with its label. A tool's
call becomes the call of a method through the very gate that a direct call meets. What the model can act on (wrong
arguments, a check that failed, something that waits) is a result; what it cannot (an unknown tool, one that the
socket does not grant, a passed deadline, a fault) is an error of the request.
"""

from collections import OrderedDict
from typing import Annotated, Any

import msgspec

from memoryd.broker import telling, tools
from memoryd.broker.tools import Tool
from memoryd.db import Deadline
from memoryd.errors import BadRequest, MemorydError, NotGranted
from memoryd.labels import Classes
from memoryd.notes import names
from memoryd.serve.asking import Caller
from memoryd.serve.calls import Common, Methods, Quick, Slow, explained, field_names, fitting
from memoryd.serve.gate import class_of, slow
from memoryd.serve.note_args import Claimed
from memoryd.serve.peers import Asker

Answer = dict[str, Any]
_NO_RESULT = frozenset({"timeout", "cancelled", "shutting_down", "internal", "bad_message"})
"""Codes that end the request itself: a model can do nothing about them."""


_OF_THE_NOTE = frozenset({"no_match", "multiple", "range", "stale", "external"})
"""Checks whose refusal tells something of what a note holds."""


class Nothing(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


class CallArgs(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A tool's name, its arguments as the model wrote them, and the session whose model it is."""

    name: Annotated[str, msgspec.Meta(max_length=100)]
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    caller: Caller | None = None
    label: Claimed | None = None


class Seen:
    """The hash under which each session last saw each note, so that its model need not copy it."""

    _MOST = 4_096

    def __init__(self) -> None:
        self._hashes: OrderedDict[tuple[str, str, str], str] = OrderedDict()

    def of(self, asker: Asker, caller: Caller | None, path: str) -> str | None:
        """Return the hash, None for a note that the session has not seen."""
        return self._hashes.get(_key(asker, caller, path))

    def note(self, asker: Asker, caller: Caller | None, path: str, name: str | None) -> None:
        """Remember the hash that the session was just told; None: the note is gone."""
        key = _key(asker, caller, path)
        self._hashes.pop(key, None)
        if name is not None:
            self._hashes[key] = name
        while len(self._hashes) > self._MOST:
            self._hashes.popitem(last=False)


def _key(asker: Asker, caller: Caller | None, path: str) -> tuple[str, str, str]:
    who = f"process {asker.peer.pid}" if caller is None else caller.log
    return asker.capability.name, who, path


def table(methods: Methods, classes: Classes) -> Methods:
    """Return both methods; `methods` are those that tools become, behind the gate."""
    seen = Seen()

    def listed(asker: Asker, args: Nothing) -> Answer:
        granted = [name for name in methods if asker.capability.grants(name)]
        return {"tools": tools.offered(granted)}

    async def called(asker: Asker, args: CallArgs, deadline: Deadline) -> Answer:
        return await call(methods, classes, seen, (asker, args, deadline))

    return {
        "tool.list": Quick(fitting(Nothing), listed),
        "tool.call": Slow(fitting(CallArgs), called),
    }


async def call(
    methods: Methods, classes: Classes, seen: Seen, given: tuple[Asker, CallArgs, Deadline]
) -> Answer:
    """Return the result of a tool's call. Raises: BadRequest, NotGranted, what ends a request."""
    asker, args, deadline = given
    name, raw = args.name, args.args
    if name == tools.FACADE:
        name, raw = tools.unfolded(raw)
    tool = granted(methods, asker, args.name, name)
    try:
        if tool is None:
            commands = ", ".join(tools.COMMANDS)
            raise BadRequest(f"command is none of {commands}", remedy="give one", field="command")
        asked = _asked(tool, raw, asker, classes)
        _expect(tool, asked, seen.of(asker, args.caller, str(asked.get("path", ""))))
        checked = methods[tool.method].check(asked | _who(tool, args))
        answer: Answer = await _run(methods, tool, asker, checked, deadline)
    except MemorydError as error:
        if error.code in _NO_RESULT:
            raise
        told = error.data.get("check") in _OF_THE_NOTE
        return telling.refused(error, _place_label(raw if told else {}, asker, classes))
    _note(tool, asked, answer, seen, (asker, args.caller))
    return telling.done(tool, answer, classes.name(classes.top))


async def _run(
    methods: Methods, tool: Tool, asker: Asker, checked: Common, deadline: Deadline
) -> Answer:
    answer: Any = await slow(methods[tool.method]).run(asker, checked, deadline)
    return answer if isinstance(answer, dict) else {"answer": answer}


def granted(methods: Methods, asker: Asker, asked: str, name: str) -> Tool | None:
    """Return the tool `name`, None for the facade without a command. Raises: BadRequest, NotGranted."""
    if not name and asked == tools.FACADE:
        return None
    tool = tools.TOOLS.get(name)
    if tool is None or tool.method not in methods:
        raise BadRequest("no such tool", remedy="`tool.list` has them", field="name")
    if not asker.capability.grants(tool.method):
        raise NotGranted(
            f"the socket {asker.capability.name!r} does not grant {name}",
            remedy="the owner adds it to the socket's `tools`",
            check="grant",
            rule=f"tools of the socket {asker.capability.name}",
        )
    return tool


def _asked(tool: Tool, raw: Answer, asker: Asker, classes: Classes) -> Answer:
    """Return the method's own arguments for what the model wrote. Raises: BadRequest (``args``)."""
    try:
        asked = tools.request(tool, msgspec.convert(raw, tool.form))
    except msgspec.ValidationError as error:
        wrong = explained(str(error), field_names(tool.form))
        wrong.data["check"] = "args"
        raise wrong from None
    if tool.name == "memory_view" and (
        named := class_of(asked["path"], classes, asker.capability.level)
    ):
        asked["max_class"] = named  # to name a class is to ask for it, as `max_class` does
    return asked


def _expect(tool: Tool, asked: Answer, known: str | None) -> None:
    """Fill in the hash of the last view where the model gave none."""
    whole_folder = asked.get("recursive", False)
    if known is not None and "expect" in field_names(tool.form) and not whole_folder:
        asked.setdefault("expect", known)


def _who(tool: Tool, args: CallArgs) -> Answer:
    """Return who calls, as the tool's method takes it."""
    who: Answer = {"deadline_ms": args.deadline_ms}
    if args.caller is not None and tool.named:
        who["caller"] = msgspec.to_builtins(args.caller)
    if args.label is not None and tool.method in CLAIMING:
        who["label"] = msgspec.to_builtins(args.label)
    return who


EDITS = frozenset(f"notes.{name}" for name in tools.COMMANDS if name != "view")
CLAIMING = EDITS | {"lessons.save"}
"""The methods that take a label that the caller knows of."""


def _note(
    tool: Tool, asked: Answer, answer: Answer, seen: Seen, who: tuple[Asker, Caller | None]
) -> None:
    """Remember which bytes of a note the session knows now."""
    if tool.method == "notes.view" and answer["kind"] == "note":
        seen.note(*who, answer["path"], answer["hash"])
    elif tool.method in EDITS:
        for path in (asked.get("path"), asked.get("old_path")):
            if path is not None:
                seen.note(*who, path, None)
        if answer["hash"] is not None:
            seen.note(*who, answer["path"], answer["hash"])


def _place_label(raw: Answer, asker: Asker, classes: Classes) -> Answer:
    """Return the label of a refusal that tells of what lies at the paths of a call."""
    label = {"class": classes.name(0), "untrusted": False}
    for name in ("path", "old_path", "new_path"):
        path = raw.get(name)
        named = class_of(str(path), classes, asker.capability.level)
        if named:
            higher = max(classes.level(named), classes.level(str(label["class"])))
            inbox = f"/{named}/{names.INBOX}/" in str(path)
            label = {
                "class": classes.name(higher),
                "untrusted": bool(label["untrusted"]) or inbox,
            }
    return label
