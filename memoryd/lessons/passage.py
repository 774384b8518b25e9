"""What consecutive records of one log say of calls, taken while they are at hand and small enough to wait.

In: the calls and results of a batch, each with its label, in file order. Out: a `Passage`: calls with what
they were about and their fingerprints, results paired with them as far as the batch goes, and where the
session rests. Pure, and made by whoever reads the log: a record, its arguments and its line are let go with the
batch, instead of being kept, and fetched from memory again, until somebody learns from them.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from sys import maxsize
from typing import NamedTuple

import msgspec

from memoryd import redact
from memoryd.labels import Label
from memoryd.lessons import fingerprint
from memoryd.lessons.failure import shell_like
from memoryd.records import Called, Record, Returned, Said, values

_MOST_READ = 4_000
_FLAT = frozenset((str, int, float))
_TEXTS = frozenset((str,))
_LOOKING = frozenset(
    "read grep glob ls list search view webfetch websearch fetch todowrite todoread task read_file "
    "list_dir list_directory grep_search file_search codebase_search update_plan notebookread".split()
)
_ANSWERED = -1
_LAST = ((maxsize, Returned(0, None)),)
"""Ends the results, so that the calls after the last of them are taken too."""

Call = tuple[Record, Said | Called, Label]
"""A call as the fold gives it: its record, the item, the label before it."""


class Around(NamedTuple):
    """What stands around calls and results: of each record its time (ms) and the label after it.

    `before`: of records without a time, the newest before each, where that is told.
    """

    times: Mapping[int, int | None]
    after: Mapping[int, Label]
    before: Mapping[int, int | None] = {}


Made = tuple[int, int, str, str, int | None, Label]
"""A call that may be answered: record, block, id, tool, time (ms), the label before it."""

Answer = tuple[int | str, int, bool | None, msgspec.Raw | None, Label, int | None, int | None]
"""A result: its call, by place in the passage, or by id where that stands before the passage; its record; whether it
went well, and what was told where it did not; the label after its record, its time (ms), the newest before it."""


class Mark(NamedTuple):
    """A record at which the session rests: after it (``idle``, ``end``), or before it as it was ``quiet`` for long.

    `at`: the newest time (ms) that the log tells by then.
    """

    n: int
    rest: str
    at: int | None


class Passage(NamedTuple):
    """Calls, results and rests of consecutive records of one session and project.

    `given` is what each call was about, secrets and all, "" where nothing ever reads it; `prints` are their
    fingerprints, `open` the places of those that no result here answers. `plain`: all results are of calls of this
    passage, and tell how those went. `above`: the record from which on the log is above what may be handed on.
    """

    session: str
    project: str
    made: list[Made]
    prints: list[str]
    given: list[str]
    answers: list[Answer]
    open: list[int]
    plain: bool
    marks: list[Mark]
    above: int | None = None

    @property
    def size(self) -> int:
        """Return about how much there is to learn from."""
        return len(self.made) + len(self.answers) + len(self.marks)

    @property
    def first(self) -> int:
        """Return the first record of which anything is told."""
        places = [call[0] for call in self.made[:1]] + [one[1] for one in self.answers[:1]]
        return min(places + [mark.n for mark in self.marks[:1]])

    def between(self, first: int, end: int) -> "Passage":
        """Return what its records from `first` to `end` (exclusive) say."""
        places = [at for at, call in enumerate(self.made) if first <= call[0] < end]
        moved = {at: now for now, at in enumerate(places)}

        answers = [
            (_moved(one[0], moved, self.made), *one[1:])
            for one in self.answers
            if first <= one[1] < end
        ]
        answered = {one[0] for one in answers}
        last = {self.made[at][2]: now for at, now in moved.items()}
        return self._replace(
            made=[self.made[at] for at in places],
            prints=[self.prints[at] for at in places],
            given=[self.given[at] for at in places],
            answers=answers,
            plain=self.plain and not any(type(one[0]) is str for one in answers),
            open=[now for now in last.values() if now not in answered],
            marks=[mark for mark in self.marks if first <= mark.n < end],
        )


def _moved(call: int | str, moved: Mapping[int, int], made: Sequence[Made]) -> int | str:
    """Return a call's new place, or its id where it stands before."""
    return call if isinstance(call, str) else moved.get(call, made[call][2])


def passage(
    whose: tuple[str, str | None],
    calls: Iterable[Call],
    results: Iterable[tuple[int, Returned]],
    around: Around,
    rests: tuple[Sequence[Mark], int | None] = ((), None),
) -> Passage:
    """Return what records of a session and a project (`whose`) say: calls, and results each with its record's number.

    A record's calls come before its results. `rests`: where the session rests, and from where on it is `above`.
    """
    session, project = clean(whose[0]), clean(whose[1] or "")
    times, after, before = around
    made: list[Made] = []
    answers: list[Answer] = []
    asked: list[tuple[str, object]] = []
    places: dict[str, int] = {}
    well: set[int] = set()
    plain = True
    line = iter(calls)
    call = next(line, None)
    for n, result in chain(results, _LAST):
        while call is not None and (at := call[0].n) <= n:
            item, label = call[1:]
            if type(item) is Called and (name := item.call) is not None and not item.hosted:
                places[name] = len(made)
                made.append((at, item.block, name, item.tool, times[at], label))
                asked.append((item.tool, item.args))
            call = next(line, None)
        if (name := result.call) is None or (place := places.get(name)) == _ANSWERED:
            continue
        ok, told = result.ok, result.told
        if place is not None:
            places[name] = _ANSWERED
            if ok:
                well.add(place)
        plain = plain and place is not None and (ok is not None or told is not None)
        found = name if place is None else place
        answers.append((found, n, ok, None if ok else told, after[n], times[n], before.get(n)))
    given = [
        "" if place in well and only_looks(tool) else about(tool, args)
        for place, (tool, args) in enumerate(asked)
    ]
    prints = fingerprint.of_calls(asked, project)
    still = [place for place in places.values() if place != _ANSWERED]
    return Passage(
        session, project, made, prints, given, answers, still, plain, [*rests[0]], rests[1]
    )


@lru_cache(maxsize=256)
def only_looks(tool: str) -> bool:
    """Say whether a tool changes nothing, so that what it was given explains no fix."""
    return tool.lower() in _LOOKING


def about(tool: str, args: object) -> str:
    """Return what a call was given, values under telling names masked: what it runs, else every value."""
    given = _command(args) if isinstance(args, dict) and shell_like(tool) else ""
    if not given:
        masked = redact.arguments(args)
        if isinstance(masked, dict) and _TEXTS.issuperset(map(type, masked.values())):
            given = " ".join(masked.values())
        elif isinstance(masked, dict) and _FLAT.issuperset(map(type, masked.values())):
            given = " ".join(map(str, masked.values()))
        else:
            given = " ".join(values(masked))
    return given[:_MOST_READ]


def _command(args: dict[str, object]) -> str:
    """Return what a shell was told to run, without the shell itself; "" where that is not told."""
    told = args.get("command", args.get("cmd"))
    if isinstance(told, str):
        return told
    if not isinstance(told, list):
        return ""
    words = [str(word) for word in told]
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)


def clean(text: str) -> str:
    """Return `text` as any database can hold it: half a surrogate pair becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
