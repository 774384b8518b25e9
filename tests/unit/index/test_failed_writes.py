"""What a failed write leaves in memory is not written with the next one."""

import pytest

from memoryd import db
from memoryd.index import Counts, catch_up, live, schema
from tests.support.faulty import faulty
from tests.support.indexing import dumped
from tests.support.logs import append, claude_user, dated, write


def owner(*words):
    return dated(*(claude_user(word) for word in words))


@pytest.mark.parametrize(("call", "kind"), [("xRead", "io"), ("xWrite", "io"), ("xWrite", "full")])
@pytest.mark.parametrize("sticky", [False, True], ids=["once", "for good"])
def test_after_any_failed_call_of_the_disk_words_and_rows_agree_s01_s03(
    world, monkeypatch: pytest.MonkeyPatch, call: str, kind: str, sticky: bool
):
    """Found by chaos: FTS5 counted rows that were taken back, on the connection that had met the fault."""
    now = [1_000.0]
    monkeypatch.setattr(live, "monotonic", lambda: now[0])
    for name in "abc":
        write(
            world.logs / f"{name}.jsonl", *dated(*(claude_user(f"{name} hello") for _ in range(3)))
        )
    with faulty() as faults:
        for number in range(1, 60):
            world.settings().path.unlink(missing_ok=True)
            with world.index() as index:
                faults.arm(call, number, sticky=sticky, kind=kind)
                index.sweep()
                catch_up(index)
                faults.rest()
                for _ in range(3):
                    now[0] += 100.0
                    index.sweep()
                    catch_up(index)
                assert index.fault == ""
                assert len(dumped(index)) == 9
                schema.check_health(index._following.connection, 4, words=True)
            if not faults.fired:
                break
    assert number > 3


def test_a_full_disk_takes_the_batch_back_and_is_tried_again_later_s01(world, monkeypatch):
    log = write(world.logs / "a.jsonl", *owner("one", "two"))
    clock, room, writer = [1000.0], [1_000_000], db.writer

    def limited(path):
        connection = writer(path)
        connection.pragma("max_page_count", room[0])
        return connection

    monkeypatch.setattr(db, "writer", limited)
    monkeypatch.setattr(live, "monotonic", lambda: clock[0])
    with world.index() as index:
        catch_up(index)
        room[0] = 1
        index._following.connection.pragma("max_page_count", 1)
        append(log, *owner(*("word" * 2000 for _ in range(40))))
        assert catch_up(index) == Counts()
        assert index.status().fault == "disk_full"
        assert index.wait() == 1.0
        assert len(dumped(index)) == 2
        clock[0] += 1.0
        assert index.catch_up() == (Counts(), False)
        assert index.wait() == 2.0
        room[0] = 1_000_000
        index._following.connection.pragma("max_page_count", room[0])
        clock[0] += 2.0
        assert index.catch_up()[0].indexed == 40
        assert index.status().fault == ""
        assert dumped(index) == world.fresh()
