"""What the page may ask, and which method of the daemon that is; nothing else of the daemon can be reached.

In: a name, and the words of a query string or the values of a JSON object. Out: a method and its arguments, as
far as their types can be told here; the daemon checks them again. Three names change something.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from memoryd.errors import BadRequest

Args = dict[str, Any]
Made = Callable[[Sequence[str]], object]


def word(values: Sequence[str]) -> str:
    """Return the last of the words given."""
    return values[-1]


def words(values: Sequence[str]) -> list[str]:
    """Return all of them, as lists are written in a query string: the name again for each."""
    return list(values)


def number(values: Sequence[str]) -> int:
    """Return a number. Raises: ValueError."""
    return int(values[-1])


class Question(msgspec.Struct, frozen=True):
    """A reading method, what of its arguments the page gives and how, and what is given with them."""

    method: str
    takes: Mapping[str, Made] = {}
    fixed: Mapping[str, object] = {}


class Act(msgspec.Struct, frozen=True):
    """A method that changes something, and the arguments that the page may give."""

    method: str
    takes: frozenset[str]


_FILTERS: dict[str, Made] = {
    **dict.fromkeys(("session", "project", "source", "tool"), word),
    **dict.fromkeys(("since", "until", "untrusted", "max_class", "cursor"), word),
    "kinds": words,
    "limit": number,
}
_PATIENT = {"deadline_ms": 30_000}
"""For what reads a whole log, or a whole journal."""

QUESTIONS: Mapping[str, Question] = {
    "status": Question("status"),
    "recall": Question(
        "recall",
        {
            **_FILTERS,
            **dict.fromkeys(("query", "mode", "order", "group"), word),
            "snippet_tokens": number,
        },
    ),
    "record": Question("get", {"id": word, "before": number, "after": number}),
    "sessions": Question("sessions", _FILTERS),
    "projects": Question("projects", _FILTERS),
    "records": Question(
        "records", {"session": word, "source": word, "cursor": word, "limit": number}, _PATIENT
    ),
    "explain": Question("explain", {"log": word}, _PATIENT),
    "notes": Question("notes.list", {"path": word, "after": word, "limit": number}),
    "note": Question("notes.view", {"path": word}, {"raw": True}),
    "history": Question("notes.log", {"path": word, "limit": number}, _PATIENT),
    "change": Question("notes.diff", {"txn": word}, _PATIENT),
    "pending": Question("notes.pending"),
    "lessons": Question(
        "lessons.list", {"id": word, "query": word, "status": word, "after": word, "limit": number}
    ),
    "tellings": Question("lessons.ledger", {"lesson": word, "before": number, "limit": number}),
    "days": Question("lessons.days", {"limit": number}),
    "audit": Question("lessons.audit"),
    "trace": Question("lessons.trace", {"query": word, "project": word, "tag": word}),
}

ACTS: Mapping[str, Act] = {
    "accept": Act("notes.accept", frozenset({"txn", "path", "expect"})),
    "reject": Act("notes.reject", frozenset({"txn", "reason"})),
    "feedback": Act("lessons.feedback", frozenset({"memory_id", "verdict", "note"})),
}


def asked(question: Question, given: Sequence[tuple[str, str]]) -> Args:
    """Return a question's arguments from a query string's pairs; an empty one counts as left out.

    Raises: BadRequest that names what is not known, or is no number.
    """
    found: dict[str, list[str]] = {}
    for name, value in given:
        if name not in question.takes:
            raise BadRequest(
                f"no argument {name[:80]!r}", remedy=f"known are {', '.join(question.takes)}"
            )
        if value:
            found.setdefault(name, []).append(value)
    args: Args = {}
    for name, values in found.items():
        try:
            args[name] = question.takes[name](values)
        except ValueError:
            raise BadRequest(f"{name}: no number", remedy="give a whole number") from None
    return {**args, **question.fixed}


def acted(act: Act, body: bytes) -> Args:
    """Return an act's arguments from a JSON object of words. Raises: BadRequest."""
    try:
        given = msgspec.json.decode(body, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest("the body is no JSON object of words", remedy="use the page") from None
    for name in given:
        if name not in act.takes:
            raise BadRequest(
                f"no argument {name[:80]!r}", remedy=f"known are {', '.join(sorted(act.takes))}"
            )
    return dict(given)
