"""The words of lessons: which lessons hold a query's words, and how well they fit.

In: text, and a reader. Out: `{row: score}`, higher is better, from postings kept apart by level, trust and
project: each three have a part. Frequencies and lengths are summed over the reader's own parts alone, so that
a lesson above it moves no score. Words are those of FTS5's porter and unicode61 tokenizers: "fails", "failed"
and "failing" are one, and `src/main.ts` is three. The score is BM25 (Robertson and Zaragoza 2009, 3.5) with the idf
log(1 + (N - df + 0.5) / (df + 0.5)), which stays above 0 and tells rare from common with five lessons too.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import log
from typing import Any, NamedTuple, cast

import apsw

from memoryd.lessons import rows
from memoryd.lessons.reader import Reader

_K1, _B = 1.2, 0.75
_MOST_TERMS = 48
_STOP = frozenset(
    "a an and are at be been but by con de did do does el en es eso for from have he how i if in into is it "
    "its la las lo los me mi my o of on or our para please por que se she sin so su that the their them then "
    "there they this to tu un una us was we were what when where which who why will with y you your "
    "der die das und ist ein eine nicht le les une est pas".split()
)
_UNASKED = frozenset(
    "a an and are at for from in into is it of on or that the then to with".split()
)
"""Stems that stand for stop words alone: no query holds them, so they have no postings."""
_MOST_POSTINGS = 200
_MOST_OUTSIDE = 60
_MOST_READ = 1_000
"""Postings, in all: after so many of rarer words, a commoner one would hardly move what comes first."""
_COMMON_FROM, _MOST_COMMON = 50, 1_000
"""From so many lessons on, a word in more than half of them is used only where no rarer one is found; likewise
one in more than a thousand: that is as far as anybody counts."""


Place = tuple[str, int, int]
"""Where postings lie: project, level, untrusted."""


def tokens(connection: apsw.Connection, text: str) -> list[str]:
    """Return the stems of `text`, in order, stop words included."""
    return _stemmer(connection)(text)


def _stemmer(connection: apsw.Connection) -> Callable[[str], list[str]]:
    """Return what tells the stems of a text; to ask SQLite for it costs as much as a short text."""
    tokenize = connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])

    def stems(text: str) -> list[str]:
        content, why = text.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_DOCUMENT
        found = tokenize(content, why, None, include_offsets=False, include_colocated=False)
        return cast("list[str]", found)  # without places and others beside it, a word is a string

    return stems


def query_terms(connection: apsw.Connection, text: str) -> list[str]:
    """Return the stems of a query without stop words, at most 48; one that is said twice weighs twice."""
    kept = " ".join(telling(connection, text))
    return tokens(connection, kept)[:_MOST_TERMS]


def telling(connection: apsw.Connection, text: str) -> list[str]:
    """Return the words of a query in order, not stemmed, without stop words."""
    plain = connection.fts5_tokenizer("unicode61", ["remove_diacritics", "2"])
    content = text.encode("utf-8", "replace")
    found = plain(
        content, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    return [word for word in map(str, found) if word not in _STOP]


def counted(connection: apsw.Connection, content: str) -> Counter[str]:
    """Return how often each stem stands in a lesson's text."""
    return Counter(tokens(connection, content))


def put(connection: apsw.Connection, row: int, counts: Counter[str], place: Place) -> None:
    """Write the postings of a lesson that has none, at the label and project of `place`."""
    length = max(1, counts.total())
    part = _part(connection, place, length)
    connection.executemany(
        "INSERT INTO posting VALUES (?, ?, ?, ?, ?)",
        [
            (term, part, row, count, length)
            for term, count in sorted(counts.items())
            if term not in _UNASKED
        ],
    )


def _part(connection: apsw.Connection, place: Place, length: int, lessons: int = 1) -> int:
    """Return the number of a part, some lessons and their words added to it."""
    found = connection.execute(
        "INSERT INTO part(project, level, untrusted, lessons, words) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET lessons = lessons + excluded.lessons, words = words + excluded.words "
        "RETURNING part",
        (*place, lessons, length),
    )
    return int(found.get)


def write(connection: apsw.Connection, row: int) -> None:
    """Write the postings of one lesson that has none, under the label and project that it has now."""
    found = connection.execute(
        "SELECT content, project, level, untrusted FROM lesson WHERE row = ?", (row,)
    )
    for content, *place in list(found):
        counts = counted(connection, str(content))
        put(connection, row, counts, (place[0], place[1], place[2]))
        length = max(1, counts.total())
        connection.execute("UPDATE lesson SET words = ? WHERE row = ?", (length, row))


def write_missing(connection: apsw.Connection) -> int:
    """Write the postings of all lessons that have none; return how many."""
    found = [
        (int(row), str(content), (str(project), int(level), int(untrusted)))
        for row, content, project, level, untrusted in connection.execute(
            "SELECT row, content, project, level, untrusted FROM lesson WHERE words = 0"
        )
    ]
    lengths = put_many(connection, found)
    connection.executemany(
        "UPDATE lesson SET words = ? WHERE row = ?",
        [(length, row) for (row, _, _), length in zip(found, lengths, strict=True)],
    )
    return len(found)


def put_many(connection: apsw.Connection, lessons: Sequence[tuple[int, str, Place]]) -> list[int]:
    """Write the postings of lessons that have none, by row, text and place; return the length of each text."""
    tokenize = _stemmer(connection)
    stems = [tokenize(content) for _, content, _ in lessons]
    lengths = [len(one) or 1 for one in stems]
    sums: dict[Place, tuple[int, int]] = {}
    for (_, _, place), length in zip(lessons, lengths, strict=True):
        number, words = sums.get(place, (0, 0))
        sums[place] = number + 1, words + length
    parts = {
        place: _part(connection, place, words, number) for place, (number, words) in sums.items()
    }
    places = [(row, parts[place]) for row, _, place in lessons]
    rows.insert(connection, "INSERT INTO posting", 5, _columns(stems, places))
    return lengths


def _columns(stems: Sequence[Sequence[str]], places: Sequence[tuple[int, int]]) -> list[Any]:
    """Return the postings of lessons by the stems of each, its row and its part; one's columns after the other's.

    They come nearly in the order in which they lie: to write a word at a time over many lessons costs half of a
    lesson at a time.
    """
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for one, (row, part) in zip(stems, places, strict=True):
        length = len(one)
        for term in one:
            told = found[term]
            if told and told[-3] == row:
                told[-2] += 1  # the count of the lesson's own posting, which stands last
            else:
                told += term, part, row, 1, length
    return [*chain.from_iterable(map(found.__getitem__, sorted(found.keys() - _UNASKED)))]


def erase(connection: apsw.Connection, row: int) -> None:
    """Take the postings of a lesson away, before its label or its text changes.

    Its text tells which there are: what is written of a text depends on nothing else.
    """
    found = list(
        connection.execute(
            "SELECT content, part, lesson.words FROM lesson JOIN part USING (project, level, untrusted) "
            "WHERE row = ? AND lesson.words > 0",
            (row,),
        )
    )
    for content, part, length in found:
        connection.executemany(
            "DELETE FROM posting WHERE term = ? AND part = ? AND lesson = ?",
            [(term, part, row) for term in set(tokens(connection, str(content)))],
        )
        connection.execute(
            "UPDATE part SET lessons = lessons - 1, words = words - ? WHERE part = ?",
            (length, part),
        )
        connection.execute("UPDATE lesson SET words = 0 WHERE row = ?", (row,))


class Visible(NamedTuple):
    """The parts that a reader may see: their numbers as SQL, and how many lessons and words lie in them."""

    where: str
    lessons: int
    words: int


def scores(
    connection: apsw.Connection,
    terms: Iterable[str],
    reader: Reader,
    *,
    project: str | None = None,
    every: bool = False,
) -> dict[int, float]:
    """Return the score of each visible lesson that holds any of `terms`.

    Frequencies count every visible lesson, whatever its status. `project`: only its lessons and those of no
    project; None: all. `every`: all of the terms must be there. Else a question has a bound: the rarest words
    come first, of one that many lessons hold only the newest are scored, and one that most hold is left out.
    """
    wanted = Counter(terms)
    seen = _visible(connection, reader, project)
    if not seen.lessons or not wanted:
        return {}
    most = seen.lessons if every else _common(seen.lessons)
    frequency = {term: _frequency(connection, term, seen, most + 1) for term in wanted}
    rare = [term for term in wanted if 0 < frequency[term] <= most]
    used = list(wanted) if every else rare or [term for term in wanted if frequency[term]]
    found: dict[int, float] = {}
    held: Counter[int] = Counter()
    read = 0
    for term in sorted(used, key=frequency.__getitem__):
        if read > _MOST_READ and not every:
            break
        postings = _postings(connection, term, seen, None if every else _MOST_POSTINGS)
        read += len(postings)
        _add(found, postings, wanted[term] * _weight(seen, frequency[term]), seen)
        held.update(row for row, _, _ in postings if every)
    return {row: score for row, score in found.items() if not every or held[row] == len(used)}


def _weight(seen: Visible, frequency: int) -> float:
    return log(1 + (seen.lessons - frequency + 0.5) / (frequency + 0.5)) * (_K1 + 1)


def _add(
    found: dict[int, float], postings: list[tuple[int, int, int]], weight: float, seen: Visible
) -> None:
    """Add what one word is worth to each lesson that holds it."""
    least, slope = _K1 * (1 - _B), _K1 * _B * seen.lessons / max(1, seen.words)
    for row, count, words in postings:
        found[row] = found.get(row, 0.0) + weight * count / (count + least + slope * words)


def _common(lessons: int) -> int:
    """Return in how many of `lessons` a word may stand that is not left out for rarer ones."""
    return lessons if lessons < _COMMON_FROM else min(lessons // 2, _MOST_COMMON)


def _postings(
    connection: apsw.Connection, term: str, seen: Visible, most: int | None
) -> list[tuple[int, int, int]]:
    newest = "" if most is None else f" ORDER BY lesson DESC LIMIT {most}"
    return list(
        connection.execute(
            f"SELECT lesson, count, words FROM posting WHERE term = ? AND {seen.where}{newest}",
            (term,),
        )
    )


def outside(
    connection: apsw.Connection, terms: Iterable[str], reader: Reader, wide: Reader, project: str
) -> list[int]:
    """Return some lessons that hold `terms` and that `wide` sees, but `reader` does not of `project`."""
    inside = _inside(reader, project)
    parts = connection.execute(
        f"SELECT part FROM part WHERE {wide.where('part')} AND NOT ({inside})", _bound(project)
    )
    if not (others := [int(part) for (part,) in parts]):
        return []
    where = _in(others)
    found: dict[int, None] = {}
    for term in dict.fromkeys(terms):
        held = connection.execute(
            f"SELECT lesson FROM posting WHERE term = ? AND {where} ORDER BY lesson DESC LIMIT ?",
            (term, _MOST_OUTSIDE - len(found)),
        )
        found |= {int(row): None for (row,) in held}
        if len(found) >= _MOST_OUTSIDE:
            break
    return list(found)


def _visible(connection: apsw.Connection, reader: Reader, project: str | None) -> Visible:
    found = list(
        connection.execute(
            f"SELECT part, lessons, words FROM part WHERE lessons > 0 AND {_inside(reader, project)}",
            _bound(project),
        )
    )
    where = _in([int(part) for part, _, _ in found])
    return Visible(where, sum(row[1] for row in found), sum(row[2] for row in found))


def _frequency(connection: apsw.Connection, term: str, seen: Visible, most: int) -> int:
    found = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM posting WHERE term = ? AND {seen.where} LIMIT ?)",
        (term, most),
    ).get
    return int(found)


def _in(parts: list[int]) -> str:
    """Return the condition that a row lies in one of `parts`; one part alone keeps its lessons in order."""
    return f"part = {parts[0]}" if len(parts) == 1 else f"part IN ({','.join(map(str, parts))})"


def _inside(reader: Reader, project: str | None) -> str:
    seen = reader.where("part")
    return seen if project is None else f"part.project IN (:project, '') AND {seen}"


def _bound(project: str | None) -> dict[str, str]:
    return {} if project is None else {"project": project}
