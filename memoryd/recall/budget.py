"""How much an answer may cost its reader, in tokens of a model.

In: rows in order and a number of tokens. Out: the first rows that fit. One estimate is used everywhere:
UTF-8 bytes over 3.5, rounded up. Pure.
"""

from collections.abc import Iterable

import msgspec

from memoryd.index.hits import Row

MOST = 1_500_000
"""What any answer may cost: some 5 MB, below the wire's limit."""


def estimate(text: str) -> int:
    """Return about how many tokens a model makes of `text`."""
    return -(-2 * len(text.encode()) // 7)


def cut(text: str, tokens: int) -> str:
    """Return as much of the start of `text` as is estimated at `tokens`."""
    return text.encode()[: 7 * tokens // 2].decode(errors="ignore")


def within(rows: Iterable[Row], tokens: int) -> list[Row]:
    """Return the first rows whose snippets and texts fit into `tokens`.

    A first row that does not fit alone is cut to what does, so that an answer always goes on.
    """
    kept: list[Row] = []
    for row in rows:
        cost = estimate(row.snippet) + estimate(row.text)
        if cost > tokens:
            return kept or [_cut(row, tokens)]
        kept.append(row)
        tokens -= cost
    return kept


def _cut(row: Row, tokens: int) -> Row:
    snippet = cut(row.snippet, tokens)
    text = cut(row.text, tokens - estimate(snippet))
    return msgspec.structs.replace(row, snippet=snippet, text=text, cut=True)
