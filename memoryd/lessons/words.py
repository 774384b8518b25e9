"""The words of lessons: which lessons hold a query's words, and how well they fit.

In: text, and a reader. Out: `{row: score}`, higher is better, from postings kept apart by level, trust and
project. Frequencies and lengths are summed over the reader's own partitions alone, so that a lesson above it
moves no score. Words are those of FTS5's porter and unicode61 tokenizers: "fails", "failed" and "failing"
are one, and `src/main.ts` is three. The score is BM25 (Robertson and Zaragoza 2009, 3.5) with the idf
log(1 + (N - df + 0.5) / (df + 0.5)), which stays above 0 and tells rare from common with five lessons too.
"""

from collections import Counter
from collections.abc import Iterable
from math import log

import apsw

from memoryd.lessons.reader import Reader

_K1, _B = 1.2, 0.75
_MOST_TERMS = 48
_STOP = frozenset(
    "a an and are at be been but by con de did do does el en es eso for from have he how i if in into is it "
    "its la las lo los me mi my o of on or our para please por que se she sin so su that the their them then "
    "there they this to tu un una us was we were what when where which who why will with y you your "
    "der die das und ist ein eine nicht le les une est pas".split()
)
_MOST_POSTINGS = 300
_MOST_OUTSIDE = 60
_COMMON_FROM = 50
"""From so many lessons on, a word in more than half of them is used only where no rarer one is found."""


Place = tuple[str, int, int]
"""Where postings lie: project, level, untrusted."""


def tokens(connection: apsw.Connection, text: str) -> list[str]:
    """Return the stems of `text`, in order, stop words included."""
    tokenize = connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
    content = text.encode("utf-8", "replace")
    found = tokenize(
        content, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    return [str(one) for one in found]


def query_terms(connection: apsw.Connection, text: str) -> list[str]:
    """Return the different stems of a query without stop words, at most 48."""
    plain = connection.fts5_tokenizer("unicode61", ["remove_diacritics", "2"])
    content = text.encode("utf-8", "replace")
    found = plain(
        content, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    kept = " ".join(str(word) for word in found if str(word) not in _STOP)
    return list(dict.fromkeys(tokens(connection, kept)))[:_MOST_TERMS]


def counted(connection: apsw.Connection, content: str) -> Counter[str]:
    """Return how often each stem stands in a lesson's text."""
    return Counter(tokens(connection, content))


def put(connection: apsw.Connection, row: int, counts: Counter[str], place: Place) -> None:
    """Write the postings of a lesson that has none, at the label and project of `place`."""
    length = max(1, counts.total())
    project, level, untrusted = place
    connection.executemany(
        "INSERT INTO posting VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(term, project, level, untrusted, row, n, length) for term, n in sorted(counts.items())],
    )
    connection.execute(
        "INSERT INTO figure VALUES (?, ?, ?, 1, ?) ON CONFLICT DO UPDATE "
        "SET lessons = lessons + 1, words = words + excluded.words",
        (level, untrusted, project, length),
    )


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
    """Write the postings of lessons that have none, as after a migration; return how many."""
    rows = [int(row) for (row,) in connection.execute("SELECT row FROM lesson WHERE words = 0")]
    for row in rows:
        write(connection, row)
    return len(rows)


def erase(connection: apsw.Connection, row: int) -> None:
    """Take the postings of a lesson away, before its label or its text changes.

    Its text tells which there are: what is written of a text depends on nothing else.
    """
    found = list(
        connection.execute(
            "SELECT content, level, untrusted, project, words FROM lesson WHERE row = ? AND words > 0",
            (row,),
        )
    )
    for content, level, untrusted, project, length in found:
        connection.executemany(
            "DELETE FROM posting WHERE term = ? AND project = ? AND level = ? AND untrusted = ? "
            "AND lesson = ?",
            [(t, project, level, untrusted, row) for t in set(tokens(connection, str(content)))],
        )
        connection.execute(
            "UPDATE figure SET lessons = lessons - 1, words = words - ? "
            "WHERE level = ? AND untrusted = ? AND project = ?",
            (length, level, untrusted, project),
        )
        connection.execute("UPDATE lesson SET words = 0 WHERE row = ?", (row,))


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
    project; None: all. `every`: all of the terms must be there. Of a word that more lessons hold than anybody
    reads, only the newest are scored for it, so that a question has a bound.
    """
    wanted = list(terms)
    lessons, length = connection.execute(
        "SELECT coalesce(sum(lessons), 0), coalesce(sum(words), 0) FROM figure "
        f"WHERE {_inside('figure', reader, project)}",
        _bound(project),
    ).get
    if not lessons or not wanted:
        return {}
    frequency = {term: _frequency(connection, term, reader, project) for term in wanted}
    rare = [
        t
        for t in wanted
        if frequency[t] and (lessons < _COMMON_FROM or 2 * frequency[t] <= lessons)
    ]
    used = wanted if every else rare or [term for term in wanted if frequency[term]]
    found: dict[int, float] = {}
    held: Counter[int] = Counter()
    average = max(1.0, length / lessons)
    for term in used:
        limit = frequency[term] if every else _MOST_POSTINGS
        sorted_ = limit < frequency[term]
        weight = log(1 + (lessons - frequency[term] + 0.5) / (frequency[term] + 0.5)) * (_K1 + 1)
        for row, count, words in connection.execute(
            f"SELECT lesson, count, words FROM posting WHERE term = :term AND {_inside('posting', reader, project)}"
            + (" ORDER BY lesson DESC LIMIT :limit" if sorted_ else ""),
            {"term": term, "limit": limit, **_bound(project)},
        ):
            below = count + _K1 * (1 - _B + _B * words / average)
            found[row] = found.get(row, 0.0) + weight * count / below
            held[row] += 1
    return {row: score for row, score in found.items() if not every or held[row] == len(used)}


def outside(
    connection: apsw.Connection, terms: Iterable[str], reader: Reader, wide: Reader, project: str
) -> list[int]:
    """Return some lessons that hold `terms` and that `wide` sees, but `reader` does not of `project`."""
    found: dict[int, None] = {}
    for term in terms:
        rows = connection.execute(
            f"SELECT lesson FROM posting WHERE term = :term AND {wide.where('posting')} "
            f"AND NOT ({_inside('posting', reader, project)}) LIMIT :limit",
            {"term": term, "limit": _MOST_OUTSIDE - len(found), **_bound(project)},
        )
        found |= {int(row): None for (row,) in rows}
        if len(found) >= _MOST_OUTSIDE:
            break
    return list(found)


def _frequency(connection: apsw.Connection, term: str, reader: Reader, project: str | None) -> int:
    found = connection.execute(
        f"SELECT count(*) FROM posting WHERE term = :term AND {_inside('posting', reader, project)}",
        {"term": term, **_bound(project)},
    ).get
    return int(found)


def _inside(table: str, reader: Reader, project: str | None) -> str:
    seen = reader.where(table)
    return seen if project is None else f"{table}.project IN (:project, '') AND {seen}"


def _bound(project: str | None) -> dict[str, str]:
    return {} if project is None else {"project": project}
