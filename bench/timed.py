"""Questions that real sessions asked at a time, with the earlier sessions that worked on the same files.

In: an index of session logs that bear times. Out: questions: what an owner said (four words or more) in a session
that went on to read or change files; answered by those sessions that had done so with one of these files before that
moment, where not more than a fifth of all sessions do. Asked with that moment as `until`, so that nothing is
found that was not there yet. Which sessions count is told by calls of tools, not by words: a set by which no ranking
was chosen, and the only one here in which it can matter how old a session is.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import apsw
import msgspec

from bench.questions import Question
from memoryd.clock import parse_rfc3339
from memoryd.index import dump

_TOOLS = frozenset(
    "Edit Write MultiEdit NotebookEdit edit write StrReplace apply_patch Read read view".split()
)
_LEAST_WORDS, _MOST_WORDS = 4, 40
_WORD = re.compile(r"[^\W\d_]{4,}")
_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_SHARE = 5


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """A row of a dump, as far as it is looked at."""

    source: str
    session: str
    kind: str
    ts: str | None
    tool: str | None
    text: str


class Session(msgspec.Struct):
    """When a session first had to do with which file, and what its owner said when."""

    touched: dict[str, int] = {}
    said: list[tuple[int, str]] = []


def questions(connection: apsw.Connection) -> list[Question]:
    """Return the questions that an index of session logs holds."""
    lines = (line for _, line in dump.dump(connection))
    sessions = _sessions(map(msgspec.json.Decoder(Row).decode, lines))
    held: dict[str, int] = defaultdict(int)
    for one in sessions.values():
        for file in one.touched:
            held[file] += 1
    most = max(2, len(sessions) // _SHARE)
    rare = {file for file, count in held.items() if count <= most}
    return list(_asked(sessions, rare))


def _sessions(rows: Iterable[Row]) -> dict[str, Session]:
    sessions: dict[str, Session] = defaultdict(Session)
    for row in rows:
        moment = parse_rfc3339(row.ts) if row.ts else None
        if moment is None:
            continue
        if row.kind == "owner" and len(row.text.split()) >= _LEAST_WORDS:
            sessions[row.session].said.append((moment, row.text))
        elif row.tool in _TOOLS and (file := _file(row.text)):
            sessions[row.session].touched.setdefault(file, moment)
    return {name: one for name, one in sessions.items() if one.touched}


def _file(text: str) -> str:
    """Return the last two parts of the first path in a call's arguments; people keep a clone where they like."""
    path = next((word for word in text.split() if "/" in word and "." in word), "")
    return "/".join(path.rsplit("/", 2)[-2:])


def _asked(sessions: dict[str, Session], rare: set[str]) -> Iterator[Question]:
    for name, one in sorted(sessions.items()):
        for moment, text in one.said:
            mine = {file for file, at in one.touched.items() if at >= moment} & rare
            others = frozenset(
                other
                for other, earlier in sessions.items()
                if other != name
                and any(earlier.touched.get(file, moment) < moment for file in mine)
            )
            if others:
                asked = " ".join(text.split()[:_MOST_WORDS])
                yield Question(asked, others, moment)


class Line(msgspec.Struct, frozen=True):
    """A reply of a session, with the day and the project that a person would name with it."""

    session: str
    text: str
    named: str


def vague(connection: apsw.Connection) -> dict[str, list[Question]]:
    """Return questions that too few words leave open, and the same with the session's project and day named.

    Two words of a reply that three sessions or more have, for each session of a known project and day.
    """
    lines = _replies(connection)
    held: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        for word in set(_WORD.findall(line.text.lower())):
            held[word].add(line.session)
    plain, named = [], []
    for session in sorted({line.session for line in lines}):
        mine = [line for line in lines if line.session == session]
        rng = random.Random(session)
        for line in rng.sample(mine, min(4, len(mine))):
            words = sorted(set(_WORD.findall(line.text.lower())))
            shared = [word for word in words if 3 <= len(held[word]) <= 20]
            if len(shared) >= 2:
                two = " ".join(rng.sample(shared, 2))
                answer = frozenset((session,))
                plain.append(Question(two, answer))
                named.append(Question(f"{two} {line.named}", answer))
    return {"vague": plain, "vague, project and day named": named}


def _replies(connection: apsw.Connection) -> list[Line]:
    projects = dict(connection.execute("SELECT session, project FROM log WHERE project > ''"))
    found = []
    for _, raw in dump.dump(connection):
        row = msgspec.json.decode(raw, type=Row)
        if row.kind == "assistant" and row.ts and row.session in projects:
            name = str(projects[row.session]).replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
            _, month, day = row.ts[:10].split("-")
            spoken = f"{name} {int(day)} {_MONTHS[int(month) - 1]}"
            found.append(Line(row.session, row.text, spoken))
    return found
