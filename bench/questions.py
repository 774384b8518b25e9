"""Questions with the sessions that answer them, and the session logs they are asked of.

In: the folder `recall/` of a corpus: JSON with ``rows`` ({id, text}, id = session) and ``questions``
({question, evidence}). Out: rows, and sets of questions: the file's own, and some that the sessions tell of
themselves. Those are asked of an index without the rows that they were taken from:
``outcome``: the last long reply, ``prompt``: the first row, ``words``: four of the rarer words of either.
"""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

_CALL = re.compile(r"(\w+) (\{.*\})\Z", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{4,}")
_QUESTION_WORDS = 40
_LEAST_ROWS = 8
_HEAD = 120
"""Rows that begin with the same so many letters as a question's are copies, and left out with it."""


class Line(msgspec.Struct, frozen=True):
    """A row of a session."""

    id: str
    text: str


class Question(msgspec.Struct, frozen=True):
    """What is asked, the sessions that answer it, and the moment (ms) of asking where that matters."""

    text: str
    sessions: frozenset[str]
    until: int | None = None


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """A question as the corpus has it."""

    question: str
    evidence: list[str]


class Recorded(msgspec.Struct, frozen=True):
    """The corpus."""

    rows: list[Line]
    questions: list[Asked]


def read(folder: Path) -> tuple[list[Line], list[Question]]:
    """Return the rows and questions of every file in `folder`."""
    rows: list[Line] = []
    questions: list[Question] = []
    for path in sorted(folder.glob("*.json")):
        recorded = msgspec.json.decode(path.read_bytes(), type=Recorded)
        rows += recorded.rows
        questions += [Question(q.question, frozenset(q.evidence)) for q in recorded.questions]
    return rows, questions


def told_by_themselves(rows: Sequence[Line]) -> tuple[dict[str, list[Question]], list[Line]]:
    """Return sets of questions made of rows, and the rows without those and their copies."""
    sessions: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        sessions[row.id].append(number)
    once = {text for text, count in Counter(row.text for row in rows).items() if count == 1}
    taken: dict[str, list[int]] = {"prompt": [], "outcome": []}
    for numbers in sessions.values():
        if len(numbers) >= _LEAST_ROWS:
            first, later = numbers[0], numbers[1:]
            taken["prompt"] += [n for n in (first,) if _prose(rows[n].text, once, 8)]
            taken["outcome"] += [n for n in later if _prose(rows[n].text, once, 15)][-1:]
    heads = {rows[number].text[:_HEAD] for numbers in taken.values() for number in numbers}
    kept = [row for row in rows if row.text[:_HEAD] not in heads]
    sets = {name: [_question(rows[n]) for n in numbers] for name, numbers in taken.items()}
    rare = _rare(kept)
    words = [_few(question, rare) for questions in sets.values() for question in questions]
    return {**sets, "words": [question for question in words if question.text]}, kept


def halves(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """Return two halves whose sessions differ, as far as can be: all of a session on one side."""
    ordered = sorted({min(question.sessions) for question in questions})
    random.Random(7).shuffle(ordered)
    first = frozenset(ordered[: len(ordered) // 2])
    sides: tuple[list[Question], list[Question]] = ([], [])
    for question in questions:
        sides[min(question.sessions) not in first].append(question)
    return sides


def write(rows: Iterable[Line], folder: Path) -> None:
    """Write each session as a native log into `folder`; what looks like a tool call is one."""
    lines: dict[str, list[Mapping[str, object]]] = defaultdict(list)
    for row in rows:
        lines[row.id].append(_record(row.text, first=not lines[row.id]))
    for session, records in lines.items():
        log = folder / f"{session}.jsonl"
        log.write_text("".join(json.dumps(record) + "\n" for record in records))


def _record(text: str, *, first: bool) -> Mapping[str, object]:
    call = _CALL.match(text)
    if call:
        try:
            return {"kind": "tool_call", "tool": call[1], "args": json.loads(call[2])}
        except ValueError:  # prose with braces
            pass
    return {"kind": "owner" if first else "assistant", "text": text}


def _prose(text: str, once: set[str], least: int) -> bool:
    return text in once and not _CALL.match(text) and len(text.split()) >= least


def _question(row: Line) -> Question:
    return Question(" ".join(row.text.split()[:_QUESTION_WORDS]), frozenset((row.id,)))


def _rare(rows: Sequence[Line]) -> frozenset[str]:
    """Return the words that stand in some rows, and in at most a twentieth of them."""
    held = Counter(word for row in rows for word in set(_WORD.findall(row.text.lower())))
    return frozenset(word for word, count in held.items() if count * 20 <= len(rows))


def _few(question: Question, rare: frozenset[str]) -> Question:
    found = sorted({word for word in _WORD.findall(question.text.lower()) if word in rare})
    few = random.Random(question.text).sample(found, 4) if len(found) >= 4 else []
    return Question(" ".join(few), question.sessions)
