"""A real daemon that rebuilds its index while it is asked, left alone, stopped and killed (R rows)."""

import contextlib
import threading
from pathlib import Path

import pytest

from memoryd.errors import Busy, MemorydError
from tests.support.daemon import Daemon
from tests.support.logs import dated, native_owner, native_session, write

RECORDS = 5_000
"""Enough that a rebuild takes a moment in which something can happen."""
QUERY = "quince 7 quince 8"


@pytest.fixture
def large(memoryd_home: Path) -> Path:
    texts = (native_owner(f"quince {number} " * 8) for number in range(RECORDS))
    return write(memoryd_home / "sessions" / "a.jsonl", *dated(native_session("a"), *texts))


def left(daemon: Daemon) -> list[str]:
    return [path.name for path in (daemon.state / "index").glob("*rebuild*")]


def ended(daemon: Daemon) -> dict[str, object]:
    """Return what is told of the last rebuild once it has ended."""
    with daemon.client() as memory:
        while (told := memory.call("status")["rebuild"])["state"] == "running":
            with contextlib.suppress(MemorydError):
                memory.call("sync", deadline_ms=1_000)
    found: dict[str, object] = told
    return found


def test_a_rebuild_outlives_who_asked_for_it_and_many_who_ask_meanwhile_r10_r11_r12(
    user_home: Path, large: Path
) -> None:
    seen: list[tuple[str, object]] = []
    over = threading.Event()

    def ask(daemon: Daemon) -> None:
        with daemon.client("agent") as memory:
            while not over.is_set():
                try:
                    hits = memory.call("recall", query=QUERY)["hits"]
                    seen.append(("answered", hits == expected))
                except Busy as error:
                    seen.append((error.code, error.data["retry_after_ms"]))

    with Daemon(user_home) as daemon:
        daemon.start().ask("sync", deadline_ms=120_000)
        before = daemon.ask("status")["generation"]
        with daemon.client("agent") as memory:
            expected = memory.call("recall", query=QUERY)["hits"]
        assert expected
        askers = [threading.Thread(target=ask, args=(daemon,)) for _ in range(3)]
        for asker in askers:
            asker.start()
        with daemon.client() as leaving:
            job = leaving.call("reindex")["job"]
        assert daemon.ask("reindex")["job"] == job
        told = ended(daemon)
        over.set()
        for asker in askers:
            asker.join()
        assert (told["job"], told["state"]) == (job, "done")
        assert daemon.ask("status")["generation"] != before
        assert left(daemon) == []
    assert seen
    assert set(seen) <= {("answered", True), ("busy", 250)}


def test_a_stop_while_it_rebuilds_ends_in_time_and_leaves_nothing_r13(
    user_home: Path, large: Path
) -> None:
    with Daemon(user_home) as daemon:
        daemon.start().ask("sync", deadline_ms=120_000)
        before = daemon.ask("status")["generation"]
        daemon.ask("reindex")
        assert daemon.ask("status")["rebuild"]["state"] == "running"
        assert daemon.stop() == 0
        assert left(daemon) == []
        daemon.start()
        assert daemon.ask("status")["generation"] == before
        assert len(daemon.ask("recall", query="quince 9")["hits"]) > 0
