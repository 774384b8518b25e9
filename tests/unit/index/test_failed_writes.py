"""What a failed write leaves in memory is not written with the next one."""

import pytest

from memoryd.index import catch_up, live, schema
from tests.support.faulty import faulty
from tests.support.indexing import dumped
from tests.support.logs import claude_user, dated, write


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
