"""A damaged index is found when the daemon starts, set aside and rebuilt, and answers go on."""

from pathlib import Path

import trio

from memoryd import db
from memoryd.errors import MemorydError
from tests.support.daemon import Daemon
from tests.support.logs import dated, native_owner, native_session, write


async def test_an_index_that_lost_rows_is_rebuilt_at_the_start_s08(user_home: Path) -> None:
    path = user_home / "state" / "sessions" / "a.jsonl"
    write(path, *dated(native_session("a"), *[native_owner(f"quince{n}x") for n in range(20)]))
    with Daemon(user_home) as daemon:
        daemon.start()
        daemon.ask("sync")
        assert daemon.stop() == 0
        index = user_home / "state" / "index" / "memory.sqlite3"
        connection = db.writer(index)
        connection.execute("DELETE FROM row_0 WHERE n = 7")
        connection.close()
        daemon.start()
        for _ in range(100):
            try:
                hits = daemon.ask("recall", query="quince6x")["hits"]
            except MemorydError:
                hits = []
            if hits and "rebuilt the index" in daemon.said():
                break
            await trio.sleep(0.1)
        assert [hit["session"] for hit in hits] == ["a"]
        said = daemon.said()
        assert "the index is damaged" in said
        assert "rebuilt the index" in said
        assert list(index.parent.glob("*.corrupt-1"))
