"""The owner's status: sums a folder, reasons in order, faults with a remedy and a beginning."""

from collections import Counter

import msgspec

from memoryd.index import Counts, Progress, Status
from memoryd.index.catalogue import Catalogue, Known, Sums
from memoryd.index.identity import Seen
from memoryd.index.table import Place
from memoryd.labels import LOWEST
from memoryd.serve.connection import Traffic
from memoryd.serve.telling import (
    Fault,
    Rebuilding,
    faults,
    index_view,
    rebuild_view,
    since,
    sources,
    traffic_view,
)


def known(log: str, root: str = "/logs", state: str = "live", **counts: int) -> Known:
    return Known(
        id=1,
        place=Place("codex", root, log),
        session=log,
        project=None,
        state=state,
        offset=0,
        records=counts.get("records", 0),
        label=LOWEST,
        floor=LOWEST,
        seen=Seen(0, 0, 0, 0),
        indexed=counts.get("indexed", 0),
        left_out=counts.get("left_out", 0),
        unreadable=counts.get("unreadable", 0),
        why=None,
        last_ts=None,
    )


def test_logs_are_summed_by_folder_and_format() -> None:
    catalogue = Catalogue(
        enumerate(
            [
                known("a", records=5, indexed=3, left_out=1),
                known("b", records=2, indexed=1, unreadable=1, state="gone"),
                known("c", "/other", records=1),
            ]
        )
    )
    told = sources(catalogue.sums())
    assert told == [
        {
            "source": "codex",
            "root": "/logs",
            "logs": 2,
            "gone": 1,
            "records": 7,
            "indexed": 4,
            "left_out": 1,
            "unreadable": 1,
        },
        {
            "source": "codex",
            "root": "/other",
            "logs": 1,
            "gone": 0,
            "records": 1,
            "indexed": 0,
            "left_out": 0,
            "unreadable": 0,
        },
    ]


def test_reasons_come_with_the_most_frequent_first() -> None:
    sums = Sums(unreadable=2, why=Counter({"b": 1, "a": 1, "Bash (no rule)": 9}))
    told = index_view(Status(True, "", "g", folders={("x", "/"): sums}, lag_logs=3, lag_bytes=40))
    assert told["left_out"] == [
        {"why": "Bash (no rule)", "rows": 9},
        {"why": "a", "rows": 1},
        {"why": "b", "rows": 1},
    ]
    assert told["behind"] == {
        "logs": 3,
        "bytes": 40,
        "held": 0,
        "bytes_per_s": None,
        "remaining_s": None,
    }
    assert told["unreadable"] == 2


def test_vanished_logs_are_named_the_latest_first_and_so_is_what_is_not_read() -> None:
    logs = [
        known("a", state="gone", indexed=3),
        msgspec.structs.replace(known("b", state="gone", indexed=1), last_ts=1_000),
        known("c"),
    ]
    gone = Catalogue(enumerate(logs)).gone()
    skipped = {"/x": "too old", "/a": "unknown"}
    status = Status(True, "", "g", skipped=skipped, purging=True, gone=gone)
    told = index_view(status)
    assert told["vanished"] == [
        {
            "source": "codex",
            "log": "b",
            "session": "b",
            "rows": 1,
            "last_ts": "1970-01-01T00:00:01.000Z",
        },
        {"source": "codex", "log": "a", "session": "a", "rows": 3, "last_ts": None},
    ]
    assert told["skipped"] == [{"path": "/a", "why": "unknown"}, {"path": "/x", "why": "too old"}]
    assert told["purging"] is True


def test_a_failed_rebuild_is_told_with_its_code() -> None:
    job = Rebuilding("j", state="failed", error="no room", code="disk_full")
    told = rebuild_view(job)
    assert told is not None
    assert (told["code"], told["error"]) == ("disk_full", "no room")


def test_a_rebuild_is_told_while_it_runs_and_after() -> None:
    assert rebuild_view(None) is None
    job = Rebuilding("j", progress=Progress(1, 2, 3, 4))
    told = rebuild_view(job)
    assert told is not None
    assert (told["state"], told["logs"], told["all_logs"]) == ("running", 1, 2)
    assert (told["bytes"], told["all_bytes"], told["counts"]) == (3, 4, None)
    job.state, job.counts, job.seconds = "done", Counts(5, 4, 1, 0), 0.5
    told = rebuild_view(job)
    assert told is not None
    assert told["records"] == 5
    assert told["counts"] == {"records": 5, "indexed": 4, "left_out": 1, "unreadable": 0}


def test_a_healthy_index_has_no_faults() -> None:
    assert faults(Status(True, "", "g"), reads_missing=0, unwatched="") == []


def test_each_fault_says_what_and_what_to_do() -> None:
    status = Status(
        True,
        "",
        "g",
        fault="disk_full",
        faults={"b.jsonl": "EACCES", "a.jsonl": "EIO"},
        missing=["/gone"],
        overrides_unreadable=2,
    )
    found = faults(status, reads_missing=3, unwatched="no watches left")
    assert [fault.what for fault in found] == [
        "indexing stands still (disk_full)",
        "a log cannot be read (EIO): a.jsonl",
        "a log cannot be read (EACCES): b.jsonl",
        "a folder of logs is not there: /gone",
        "2 lines of overrides.jsonl cannot be read",
        "3 answers are missing in reads.jsonl",
        "changes are found by looking only: no watches left",
    ]
    assert all(fault.remedy for fault in found)


def test_a_fault_keeps_its_beginning_until_it_is_over() -> None:
    first: dict[str, int] = {}
    fault = Fault("x", "do y")
    assert since([fault], first, 1_000)[0]["since"] == "1970-01-01T00:00:01.000Z"
    assert since([fault, Fault("z", "do y")], first, 5_000)[0]["since"].endswith("01.000Z")
    assert since([], first, 6_000) == []
    assert since([fault], first, 9_000)[0]["since"].endswith("09.000Z")


def test_the_server_s_counts_are_told_without_its_inner_state() -> None:
    told = traffic_view(Traffic(stopping=True, requests=7), 2)
    assert told["requests"] == 7
    assert told["reads_missing"] == 2
    assert "stopping" not in told
