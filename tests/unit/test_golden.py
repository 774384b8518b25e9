"""What each version left on a disk is opened by this one, and what a later one would leave is not touched.

The files of `tests/golden/` were written once, when their version was (`tests.support.golden`).
"""

import os
import signal
import tarfile
from pathlib import Path

import apsw
import pytest

from memoryd import migrations
from memoryd.errors import ConfigError
from memoryd.index import overrides, schema, vanished
from memoryd.lessons import store
from memoryd.notes import chain, history
from memoryd.notes.journal import CURRENT, Journal
from tests.support import golden
from tests.support.golden import FOLDER
from tests.support.notes import Desk

LESSONS = sorted((FOLDER / "lessons-database").glob("*.gz"))
INDEXES = sorted((FOLDER / "index-database").glob("*.gz"))
STATES = sorted((FOLDER / "state").glob("*.tar.gz"))
NEWEST = migrations.latest("lessons")


def number(path: Path) -> int:
    return int(path.name[:3])


def made(connection: apsw.Connection) -> set[tuple[object, ...]]:
    """Return every table, index, view and trigger, as it was made."""
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {tuple(row) for row in found}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_there_is_one_of_every_version_u01():
    assert [number(path) for path in LESSONS] == [*range(1, NEWEST + 1)]
    assert [number(path) for path in INDEXES] == [*range(1, migrations.latest("index") + 1)]
    assert [number(path) for path in STATES] == [*range(1, golden.STATE_VERSION + 1)]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name[:3])
def test_lessons_of_every_version_come_over_with_a_copy_kept_u01(path: Path, tmp_path: Path):
    version, target = number(path), golden.database(path, tmp_path / store.NAME)
    connection = store.opened(target)
    assert connection.pragma("user_version") == NEWEST
    assert made(connection) == made(store.memory())
    assert list(connection.execute("SELECT id, content FROM lesson")) == [
        ("one", "npm build fails")
    ]
    assert list(connection.execute("SELECT session, ok FROM call")) == [("s1", 0)]
    connection.close()
    copies = [found.name for found in tmp_path.glob("*.before-*")]
    if version == NEWEST:
        assert copies == []
        return
    assert copies == [f"{store.NAME}.before-{version + 1:03}"]
    copy = apsw.Connection(str(tmp_path / copies[0]))
    table = "memories" if version < 7 else "lesson"
    assert copy.pragma("user_version") == version
    assert list(copy.execute(f"SELECT id FROM {table}")) == [("one",)]
    copy.close()


def _killed_in_step(path: Path, wanted: int) -> int:
    """Open the lessons in a process that is killed when a step has done its work and not committed it."""
    pid = os.fork()
    if pid == 0:
        whole = migrations._apply_one

        def apply(connection: apsw.Connection, step: migrations.Step, classes: int) -> None:
            def trace(_: object, sql: str, __: object) -> bool:
                if sql.startswith("INSERT INTO schema_version"):
                    os.kill(os.getpid(), signal.SIGKILL)
                return True

            connection.exec_trace = trace if step.number == wanted else None
            whole(connection, step, classes)

        migrations._apply_one = apply
        store.opened(path)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_kill_in_each_step_leaves_what_the_next_start_brings_up_u04(tmp_path: Path):
    whole = golden.database(LESSONS[0], tmp_path / "whole")
    done = store.opened(whole)
    expected = set(done.execute("SELECT * FROM lesson"))
    done.close()
    for step in range(2, NEWEST + 1):
        folder = tmp_path / str(step)
        folder.mkdir()
        path = golden.database(LESSONS[0], folder / store.NAME)
        assert _killed_in_step(path, step) == -signal.SIGKILL
        look = apsw.Connection(str(path))
        assert look.pragma("user_version") == step - 1
        look.close()
        connection = store.opened(path)
        assert made(connection) == made(store.memory())
        assert set(connection.execute("SELECT * FROM lesson")) == expected
        connection.close()
        assert (folder / f"{store.NAME}.before-002").exists()


@pytest.mark.parametrize("path", INDEXES, ids=lambda path: path.name[:3])
def test_an_index_of_an_older_version_is_known_as_one_and_of_this_one_is_as_today_u01(
    path: Path, tmp_path: Path
):
    target = golden.database(path, tmp_path / "memory.sqlite3")
    before = contents(tmp_path)
    newest = number(path) == migrations.latest("index")
    assert schema.check_file(target) == ("" if newest else "another version")
    assert contents(tmp_path) == before
    if newest:
        fresh, old = apsw.Connection(":memory:"), apsw.Connection(str(target))
        migrations.apply(fresh, "index", classes=golden.CLASSES)
        assert made(old) == made(fresh)


@pytest.mark.parametrize("path", [LESSONS[-1], INDEXES[-1]], ids=["lessons", "index"])
def test_a_database_of_the_next_version_is_refused_untouched_u02(path: Path, tmp_path: Path):
    target = golden.database(path, tmp_path / "it.sqlite3")
    content = bytearray(target.read_bytes())
    content[60:64] = (number(path) + 1).to_bytes(4)
    target.write_bytes(content)
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match=f"version {number(path) + 1}"):
        store.opened(target) if path in LESSONS else schema.check_file(target)
    assert contents(tmp_path) == before


@pytest.fixture(params=STATES, ids=lambda path: path.name[:3])
def old(request: pytest.FixtureRequest, user_home: Path) -> Path:
    """The state folder of a version, unpacked."""
    with tarfile.open(request.param) as archive:
        archive.extractall(user_home, filter="tar")
    return user_home / "state"


def test_notes_and_journal_of_every_version_are_read_and_go_on_u01(old: Path):
    with Desk(old) as desk:
        desk.check_sound()
        assert desk.tree() == {"internal/a.md": b"two\n", "public/c.md": b"four\n"}
        assert [entry["op"] for entry in history.log(desk.notes) if "op" in entry].count(
            "create"
        ) == 3
        assert len(desk.notes.journal.state.proposals) == 1
        assert len(desk.notes.journal.keys.old) == 1
        desk.create("/memories/internal/next.md")
        desk.check_sound()


def test_decisions_and_kept_logs_of_every_version_are_read_u01(old: Path):
    found = overrides.read(old)
    assert [type(entry).__name__ for entry in found.entries] == [
        "Floor",
        "Relabel",
        "Forget",
        "Remember",
        "Forget",
    ]
    assert found.unreadable == 0
    (kept,) = (vanished.path_of(old, key) for key in vanished.keys(old))
    assert vanished.head(kept).session == "gone"
    assert [line.text for line in vanished.kept(kept) if line] == ["kept of a log that is gone"]
    connection = store.opened(old / store.NAME)
    assert connection.execute("SELECT count(*) FROM call").get == 3
    connection.close()


def test_a_journal_with_a_line_of_a_later_version_is_only_read_and_left_as_it_is_u02(old: Path):
    folder = old / "journal"
    journal = Journal(folder)
    placed = {"kind": "open", "v": 2, "seq": journal.state.seq + 1, "prev": journal.state.last}
    seal = chain.mac(journal.keys.current, b"line", chain.canonical(placed))
    with (folder / CURRENT).open("ab") as file:
        file.write(chain.line({**placed, "mac": seal}))
    before = contents(folder)
    again = Journal(folder)
    assert "has version 2" in again.broken
    assert contents(folder) == before


def test_a_decision_of_a_later_version_is_refused_by_its_line_and_left_u02(old: Path):
    with (old / overrides.FILE).open("a") as file:
        file.write('{"kind":"seal","ts":"2027-01-01T00:00:00.000Z"}\n')
    before = contents(old)
    with pytest.raises(ConfigError, match="line 6"):
        overrides.read(old)
    assert contents(old) == before
