"""A process that reads all logs of a home and tells what that took: ``python -m tests.support.hungry HOME``.

Out: a line of JSON: rows, records, unreadable ones, the most memory (MiB) it had, descriptors left open, and how many
logs were opened by a second look at the same folders.
"""

import json
import sys
from pathlib import Path

from memoryd.index import Index, catch_up
from memoryd.sources import discover
from tests.support.indexing import World


def main(home: str) -> None:
    """Read everything twice, and tell."""
    opens = [0]
    real = discover.open_below

    def counted(root: Path, log: str) -> int:
        opens[0] += 1
        return real(root, log)

    discover.open_below = counted
    index = Index(World(Path(home)).settings())
    catch_up(index)
    first, opens[0] = opens[0], 0
    catch_up(index)
    sums = index.status().sums
    told = {
        "logs": sums.logs,
        "records": sums.records,
        "rows": sums.indexed,
        "unreadable": sums.unreadable,
        "most_mib": most_mib(),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "opened": first,
        "opened_again": opens[0],
    }
    index.close()
    print(json.dumps(told))  # noqa: T201 - the test reads it


def most_mib() -> int:
    """Return the most memory that this program had; `ru_maxrss` would count who started it, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
