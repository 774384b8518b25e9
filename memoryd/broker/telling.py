"""How a tool's answer reads to a model: a short text, its label, and the answer itself beside it.

In: a method's answer, or its refusal. Out: the map that `tool.call` answers. Stored text stands on lines of its own
that begin with ``| `` or a line number, and opens no tag, so that it cannot pass for anything else; what is
untrusted says so in its heading.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from memoryd import quoting
from memoryd.broker.tools import Tool
from memoryd.errors import MemorydError

Answer = dict[str, Any]
NOTHING = "nothing found"


def done(tool: Tool, answer: Answer, top: str) -> Answer:
    """Return the result of a call that was done; an answer without a label counts as `top` and untrusted."""
    label = answer.get("label") or {"class": top, "untrusted": True}
    told: Answer = {
        "ok": True,
        "is_error": False,
        "text": _TEXTS.get(tool.method, _anything)(answer),
        "label": label,
        "structured": {**answer, "ok": True, "label": label},
    }
    if isinstance(answer.get("hash"), str):
        told["hash"] = answer["hash"]
    return told


def refused(error: MemorydError, label: Answer) -> Answer:
    """Return the result of a call that was not done, for the model to act on.

    What waits for the owner is no error: there is nothing to mend, and nothing is done yet.
    """
    waits = error.code == "pending"
    facts = {"code": error.code, "remedy": error.remedy, **error.data}
    return {
        "ok": False,
        "is_error": not waits,
        "text": str(error),
        "label": label,
        **{name: value for name, value in facts.items() if name in _SHOWN},
        "structured": {**facts, "ok": False, "message": error.message, "label": label},
    }


_SHOWN = frozenset({"code", "remedy", "check", "rule", "txn", "status", "hash"})


def _view(answer: Answer) -> str:
    mark = _mark(answer["label"])
    if answer["kind"] == "folder":
        return f"{answer['path']}{mark}\n{quoting.escaped(quoting.cleaned(answer['text']))}"
    head = (
        f"{answer['path']}{mark}: lines {answer['first']} to {answer['last']} of {answer['lines']}"
    )
    rest = f"\n(go on with view_range [{answer['next']}, -1])" if answer["next"] else ""
    # The lines are whole, since an edit needs their letters; the number before each keeps it apart.
    return (
        f"{head}\n{answer['text']}{rest}" if answer["lines"] else f"{answer['path']}{mark} is empty"
    )


def _edit(answer: Answer) -> str:
    return str(answer["text"])


def _hits(answer: Answer) -> str:
    parts = [line for hit in answer["hits"] for line in _record(hit, hit["snippet"])]
    if answer["cursor"]:
        parts.append("(there is more: repeat with this cursor: " + answer["cursor"] + ")")
    return "\n".join(parts) or NOTHING


def _opened(answer: Answer) -> str:
    rows = [*answer["before"], answer["record"], *answer["after"]]
    return "\n".join(line for row in rows for line in _record(row, row["text"]))


def _record(row: Answer, text: str) -> Iterator[str]:
    """Yield a heading of our own words and the record's words below it."""
    when = row["ts"] or "at an unknown time"
    where = quoting.escaped(quoting.on_one_line(row["project"] or row["source"]))
    yield f"[{row['id']}] {row['kind']}, {when}, {where}{_mark(row)}"
    yield from quoting.quoted(text)


def _mark(label: Answer) -> str:
    return f" ({label['class']}{', untrusted' if label['untrusted'] else ''})"


def _anything(answer: Answer) -> str:
    """Return an answer as JSON, in which no tag can begin."""
    told = {name: value for name, value in answer.items() if name != "label"}
    return msgspec.json.encode(told, order="sorted").decode().replace("<", "\\u003c")


_TEXTS: dict[str, Callable[[Answer], str]] = {
    "notes.view": _view,
    "recall": _hits,
    "get": _opened,
    **{f"notes.{name}": _edit for name in ("create", "str_replace", "insert", "delete", "rename")},
}
