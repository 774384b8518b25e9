"""`make bench`: measure every row, print one table, write it as JSON to bench/results/.

In: optional row names (`python -m bench decode rpc`), `--records N` (default 100,000), `--logs N`, `--out FILE`.
Each module named in `MEASURES` has `rows(corpus: Path) -> list[Row]`; the corpus is generated once into a
temporary folder with the page cache warm. Nothing is fetched. Exit 1 when a row is worse than twice its
target, which is a design fault.
"""

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

import msgspec

from bench import many
from bench.generate import generate
from bench.row import Row, machine
from memoryd.clock import now_ms, rfc3339

MEASURES = (
    "decode",
    "redact",
    "rebuild",
    "query",
    "drivers",
    "segments",
    "askers",
    "serving",
    "rpc",
    "latency",
    "pace",
    "cold",
    "idle",
    "trees",
    "many",
    "notes",
    "lessons",
    "linked",
    "forget",
    "mcp",
)


def show(row: Row) -> None:
    """Print one row of the table."""
    verdict = "ok" if row.met else ("WORSE THAN TWICE" if row.badly else "missed")
    figure = f"{row.value:.3g} {row.unit}".ljust(12)
    target = f"{row.better} {row.target:g} {row.unit}".ljust(14)
    print(
        f"{row.metric:<44} {figure} {target} {verdict:<17} {row.against}; {row.detail}", flush=True
    )


def main(argv: list[str]) -> int:
    """Run the named measures (all by default); see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="ROW", help=", ".join(MEASURES))
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--corpus", type=Path, help="a folder that bench.generate has filled")
    parser.add_argument("--logs", type=int, default=many.LOGS, help="of the row `many`")
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    options = parser.parse_args(argv)
    unknown = set(options.names) - set(MEASURES)
    if unknown:
        parser.error(f"no such row {', '.join(sorted(unknown))}; there are {', '.join(MEASURES)}")
    many.LOGS = options.logs
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as scratch:
        corpus = options.corpus or Path(scratch)
        if options.corpus is None:
            print(f"generating {options.records} records", flush=True)
            generate(corpus, options.records)
        rows = [row for name in options.names or MEASURES for row in measured(name, corpus)]
    options.out.mkdir(parents=True, exist_ok=True)
    report = {
        "when": rfc3339(now_ms()),
        "records": options.records,
        "machine": machine(),
        "rows": [{**msgspec.to_builtins(row), "met": row.met} for row in rows],
    }
    # A run of some rows alone does not take the place of a whole table.
    count = options.logs if options.names == ["many"] else options.records
    target = options.out / f"{'-'.join([str(count), *options.names])}.json"
    target.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    missed = [row.metric for row in rows if not row.met]
    print(f"{len(rows) - len(missed)} of {len(rows)} targets met; written to {target}")
    return 1 if any(row.badly for row in rows) else 0


def measured(name: str, corpus: Path) -> list[Row]:
    """Return the rows of one measure, printing each as it is known."""
    rows: list[Row] = []
    for row in importlib.import_module(f"bench.{name}").rows(corpus):
        show(row)
        rows.append(row)
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
