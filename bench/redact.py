"""What masking costs: ordinary text against indexing it, hostile text against half of it.

Ordinary: the rows of the generated native logs, masked as the index masks them, against a raw FTS5
insertion of the same texts. Hostile: a text of one repeated piece, for each of the pieces that begin a
pattern and never end it; the row is the worst growth when the text doubles (2 is linear), the detail names
the slowest.
"""

from functools import partial
from pathlib import Path

import apsw
import msgspec

from bench.row import Row, interleaved
from memoryd.records import call_text
from memoryd.redact import arguments, secrets, secrets_many

TEXTS = 40_000
AT_ONCE = 4_000
HOSTILE = 1 << 18
PIECES = (
    *(
        "password=",
        'password="',
        'password="\\"',
        "token=a,",
        "token=a.",
        "token=`",
        "sig=",
        "key_",
    ),
    *(
        "Bearer ",
        "Authorization: Basic ",
        "cookie:",
        "cookie: a=b ",
        "--token ",
        "login a password ",
    ),
    *("<private>", "<private ", "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----"),
    *("MIIEvQIBADANBgkqhkiG9w0 ", "https://", "https://a:b", "sk-", "eyJabcdefgh.", "curl -u a:b "),
)
MET = "https://x token secret key <private>\n"  # lets every pattern look


def texts(corpus: Path) -> list[str]:
    """Return what would be indexed of the native logs, the first `TEXTS` of it."""
    found: list[str] = []
    for path in sorted((corpus / "sessions").rglob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            record = msgspec.json.decode(line)
            if record["kind"] in {"owner", "assistant"}:
                found.append(record["text"])
            elif record["kind"] == "tool_call":
                found.append(call_text(record["tool"], arguments(record["args"])))
        if len(found) >= TEXTS:
            break
    return found[:TEXTS]


def mask(batches: list[list[str]]) -> None:
    """Mask batch by batch."""
    for batch in batches:
        secrets_many(batch)


def insert(batches: list[list[str]]) -> None:
    """Index batch by batch, with nothing else."""
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE ft USING fts5(text, tokenize='porter unicode61')")
    db.execute("INSERT INTO ft(ft, rank) VALUES('hashsize', 67108864)")
    with db:
        for batch in batches:
            db.executemany("INSERT INTO ft(text) VALUES(?)", [(text,) for text in batch])


def ordinary(corpus: Path) -> Row:
    """Measure what masking adds to indexing."""
    every = texts(corpus)
    batches = [every[at : at + AT_ONCE] for at in range(0, len(every), AT_ONCE)]
    took = interleaved({"mask": lambda: mask(batches), "insert": lambda: insert(batches)}, rounds=3)
    return Row(
        "mask secrets, ordinary text, CPU",
        "raw FTS5 insertion of the same texts",
        took["mask"] / took["insert"],
        0.08,
        detail=f"{took['mask'] / len(every) * 1e6:.2f} us a row of {len(every):,}",
    )


def hostile() -> Row:
    """Measure how the time grows with a text made to be slow."""
    grown: list[tuple[float, float, str]] = []
    for piece in PIECES:
        half, whole = (MET + piece * (size // len(piece)) for size in (HOSTILE // 2, HOSTILE))
        works = {"half": partial(secrets, half), "whole": partial(secrets, whole)}
        took = interleaved(works, rounds=3)
        grown.append((took["whole"] / max(took["half"], 0.05), took["whole"], piece))
    growth, _, worst = max(grown)
    _, seconds, slowest = max(grown, key=lambda one: one[1])
    return Row(
        "mask secrets, hostile text, CPU",
        "half of it",
        growth,
        2.5,
        detail=f"{worst!r}; slowest {slowest!r}: {seconds:.2f} s for {HOSTILE >> 10} KiB",
    )


def rows(corpus: Path) -> list[Row]:
    """Return both rows."""
    return [ordinary(corpus), hostile()]
