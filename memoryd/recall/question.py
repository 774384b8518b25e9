"""The steps from a question to its hits: weigh the words, plan, look, deal a page, tell what fits.

In: a `Reader` inside a snapshot, a `Scope`, a checked `Ask`. Out: ``{hits, label, cursor, capped}``.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from memoryd.index import search
from memoryd.index.figures import Term
from memoryd.index.hits import Key, Row, fetch, join, wire, with_text
from memoryd.index.pages import Place, bound, seal, unseal
from memoryd.index.scan import Find
from memoryd.index.scope import Scope
from memoryd.index.search import Reader
from memoryd.index.where import NOTHING_ASKED, Where
from memoryd.recall import support
from memoryd.recall.ask import Ask
from memoryd.recall.budget import MOST, within
from memoryd.recall.excerpt import excerpt, sought
from memoryd.recall.late import POOL as LATE
from memoryd.recall.late import raised
from memoryd.recall.plan import Plan, Weighed, plan, shares
from memoryd.recall.query import MOST_WEIGHED, parse
from memoryd.recall.rank import A_LOG, Dealing, Merged, Page, deal, merge, settled, tied

_DEPTHS = (24, LATE + 1, 256, 2_048, 20_000)
"""How many rows are looked at, for as long as a page cannot be told from fewer."""
_FEW = 500
"""Rows up to which all that match are fetched, and sorted here."""
_ENOUGH = 10
"""Rows that must hold the three rarest words, where all are common, before any of them will do."""


class Asked(msgspec.Struct, frozen=True):
    """A question with what its steps share.

    `seen`: the condition that every row told must pass; `counted`: the one for rows whose words count in
    frequencies; `sizes` and `average`: how many such rows each class has, and their length in tokens.
    """

    reader: Reader
    scope: Scope
    ask: Ask
    counted: Where | None
    seen: Where
    sizes: tuple[int, ...]
    average: float

    @property
    def rows(self) -> int:
        """Return how many rows count in the frequencies."""
        return sum(self.sizes)


class Looked(msgspec.Struct, frozen=True):
    """What a plan found: the page, and whether others might rank in it that were not looked at."""

    plan: Plan
    page: Page
    capped: bool


def answer(reader: Reader, scope: Scope, ask: Ask) -> dict[str, object]:
    """Return what is told. Raises: BadRequest, TooLarge, Conflict."""
    here = bound(reader.generation, scope, ask.question())
    place = unseal(reader.ids, ask.cursor, here)
    asked = prepared(reader, scope, ask)
    looked = look(asked, place)
    rows = within(_rows(asked, looked), min(ask.budget_tokens or MOST, MOST)) if looked else []
    going_on = looked.page.next if looked else None
    if looked and len(rows) < len(looked.page.matches):
        going_on = Place(place.told + len(rows), place.round)
    return {
        "hits": [_hit(asked, row) for row in rows],
        "label": join(reader.classes, (row.label for row in rows)),
        "cursor": None if going_on is None else seal(reader.ids, going_on, here),
        "capped": looked is not None and looked.capped,
    }


def prepared(reader: Reader, scope: Scope, ask: Ask) -> Asked:
    """Return the question with what its steps share. Raises: BadRequest."""
    counted = search.countable(reader, scope)
    levels = search.levels(reader, scope)
    sizes = tuple(reader.figures.size(level, counted) for level in levels)
    rows = sum(size.rows for size in sizes)
    return Asked(
        reader=reader,
        scope=scope,
        ask=ask,
        counted=counted,
        seen=search.visible(reader, scope, ask.filters()),
        sizes=tuple(size.rows for size in sizes),
        average=sum(size.tokens for size in sizes) / rows if rows else 1.0,
    )


def look(asked: Asked, place: Place) -> Looked | None:
    """Return the matches of the page at `place`; None where nothing can match.

    Raises: BadRequest, TooLarge.
    """
    terms = parse(asked.ask.query, asked.ask.mode, asked.reader.words)
    # A session is ranked by all its words in all its rows of the pool: 0.03 of hit@5 on real questions.
    walk_all = asked.ask.group == "session"
    wide = asked.scope.untrusted != "include"
    weighed = _weigh(asked, terms)
    way = plan(weighed, asked.ask.mode, asked.rows, walk_all=walk_all, wide=wide)
    return _look(asked, way, place) if way else None


def _weigh(asked: Asked, terms: Sequence[Term]) -> list[Weighed]:
    """Return the terms with their frequencies; in mode ``smart`` also the words of identifiers.

    An identifier finds its row first as a phrase; its words help where others stand beside it (on real
    questions an MRR of 0.757 instead of 0.727), and stand in for it where no row holds it.
    """
    found = [_weighed(asked, term) for term in terms]
    if asked.ask.mode == "smart":
        parts = [
            part for one in found if len(terms) > 1 or not one.frequency for part in one.term.parts
        ]
        found += [_weighed(asked, part) for part in parts[:MOST_WEIGHED]]
    return list({(one.term.tokens, one.term.prefix): one for one in found}.values())


def _weighed(asked: Asked, term: Term) -> Weighed:
    frequency = asked.reader.figures.frequency
    return Weighed(term, tuple(frequency(c, term, asked.counted) for c in range(len(asked.sizes))))


def _look(asked: Asked, way: Plan, place: Place) -> Looked:
    """Look as deep as the page needs, no deeper."""
    lifting = _lifting(asked, way)
    score = asked.reader.scorer.load(
        way.weights[: way.listed],
        way.first,
        asked.average,
        columns=way.columns,
        counting=lifting,
    )
    merged, page = Merged([], True), None
    for depth in _depths(asked, place, late=way.late > 0):
        merged, reached = _merged(asked, way, score, depth)
        if way.wider is not None and merged.all and len(merged.matches) < _ENOUGH:
            return _look(asked, way.wider, place)
        if lifting:
            if len(merged.matches) < support.POOL and not merged.all and depth < _DEPTHS[-1]:
                continue
            merged = _lifted(asked, way, merged)
        page = deal(merged, _dealing(asked, merged), place, asked.ask.limit)
        if page is not None:
            return Looked(way, page, capped=reached or way.partial)
    everything = Merged(merged.matches, all=True)
    page = deal(everything, _dealing(asked, everything), place, asked.ask.limit)
    return Looked(way, page or Page([], None), capped=True)


def _lifting(asked: Asked, way: Plan) -> bool:
    """Say whether sessions are ranked by more than their best row."""
    by_worth = asked.ask.group == "session" and asked.ask.order == "relevance"
    return by_worth and not way.newest and support.POOL > 0


def _lifted(asked: Asked, way: Plan, merged: Merged) -> Merged:
    logs = {match.log for match in merged.matches[: support.POOL]}
    seen = support.Seen(
        names=search.logs(asked.reader, logs),
        lengths=search.lengths(asked.reader, asked.scope, logs),
        counts=asked.reader.scorer.counts,
        weights=tuple(support.worth(asked.rows, count) for count in way.frequencies),
        now=_now(asked, merged) if asked.ask.recency else None,
        words=support.words_of(asked.ask.query),
    )
    return support.lifted(merged, seen)


def _now(asked: Asked, merged: Merged) -> int | None:
    """Return the moment from which ages count: the question's own end, or the newest of the rows weighed.

    No clock: the pages of an answer, and equal questions to equal indexes, have the same order.
    """
    until = asked.ask.filters().until
    times = (match.ts for match in merged.matches[: support.POOL])
    return until if until is not None else max((ts for ts in times if ts is not None), default=None)


def _depths(asked: Asked, place: Place, *, late: bool) -> tuple[int, ...]:
    least = 2 * (place.told + asked.ask.limit + 1)
    if late and asked.ask.order == "relevance":
        least = max(least, _DEPTHS[1])
    if asked.ask.group == "session":
        least = max(8 * least, 2 * support.POOL)
    return tuple(depth for depth in _DEPTHS[:-1] if depth >= least) + _DEPTHS[-1:]


def _merged(asked: Asked, way: Plan, score: str, depth: int) -> tuple[Merged, bool]:
    """Return the best rows of all classes, and whether there were more of them than were ranked."""
    bounds = shares(asked.sizes, way.newest if asked.ask.order == "relevance" else 0)
    few = way.most <= _FEW
    wanted = search.Look(way.match, score, asked.ask.order, 0 if few else depth, bounds)
    if not few and _from_memory(asked, way):
        find = Find(way.levels, way.match, asked.scope.untrusted, depth, bounds)
        found = search.best(asked.reader, find, asked.seen)
    else:
        found = search.matches(asked.reader, way.levels, wanted, asked.seen)
    merged = _settled(asked, merge(found, len(found) + 1 if few else depth))
    if way.late and asked.ask.order == "relevance":
        more = raised(asked.reader, merged.matches, way, asked.average)
        merged = _settled(asked, Merged(more, merged.all))
    if not any(bounds):
        return merged, False
    held = Counter(match.level for match in found)
    # Fewer than the bound may be told of a class whose bound was reached, where others filled the look.
    full = len(found) >= depth
    return merged, full or any(0 < bounds[level] <= many for level, many in held.items())


def _from_memory(asked: Asked, way: Plan) -> bool:
    """Say whether rows can be ranked by what is known of all of them; it makes no difference but in time."""
    if asked.ask.order != "relevance" or _lifting(asked, way):
        return False
    if asked.scope.limited or asked.ask.filters() != NOTHING_ASKED:
        return False
    return asked.reader.facts.ready(asked.reader.connection, way.levels)


def _settled(asked: Asked, merged: Merged) -> Merged:
    """Return the matches with ties in an order that does not hang on the index's own numbers."""
    logs = tied(merged.matches)
    if not logs:
        return merged
    return Merged(settled(merged.matches, search.logs(asked.reader, logs)), merged.all)


def _dealing(asked: Asked, merged: Merged) -> Dealing:
    if asked.ask.group == "session":
        names = search.logs(asked.reader, {match.log for match in merged.matches})
        return Dealing(lambda match: (names[match.log].source, names[match.log].session), most=1)
    if asked.ask.session is not None:
        return Dealing(lambda match: match.log)
    return Dealing(lambda match: match.log, most=A_LOG, rounds=True)


def _rows(asked: Asked, looked: Looked) -> list[Row]:
    """Return the page's rows with scores and snippets, and with texts where they were asked for."""
    ask, way, reader = asked.ask, looked.plan, asked.reader
    matches = looked.page.matches
    keys = [Key(match.level, match.id) for match in matches]
    if ask.order == "relevance":
        rows = fetch(reader.connection, keys)
        scores = [-match.first for match in matches]
    else:
        score = reader.scorer.load(way.weights, 0, asked.average, columns=way.columns)
        any_of_them = " OR ".join(term.match for term in way.terms)
        rows = fetch(reader.connection, keys, match=any_of_them, score=score)
        scores = [row.score for row in rows]
    words = sought(way.terms, way.weights)
    return [
        replace(
            row,
            score=score,
            snippet=excerpt(row.text, words, ask.snippet_tokens, reader.spans),
            text=row.text if ask.text else "",
        )
        for row, score in zip(rows, scores, strict=True)
    ]


def _hit(asked: Asked, row: Row) -> dict[str, object]:
    reader = asked.reader
    told = wire(reader.ids, reader.classes, asked.scope, row)
    told |= {"score": round(row.score, 4), "snippet": row.snippet}
    return with_text(told, row) if asked.ask.text else told
