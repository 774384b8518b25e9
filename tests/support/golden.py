"""What each version of memoryd leaves on a disk, kept byte for byte in `tests/golden/`.

``python -m tests.support.golden`` writes the files that are missing: once, when a version is released. A file that
is there is never written again: what a version wrote cannot change afterwards.
"""

import gzip
import io
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import apsw

from memoryd import migrations, state
from memoryd.index import overrides
from memoryd.index.overrides import Floor, Forget, Relabel, Remember
from memoryd.index.schema import APPLICATION_ID
from memoryd.lessons import store
from tests.support import indexing
from tests.support.classroom import Classroom, Script
from tests.support.notes import A, B, Desk, session

FOLDER = Path(__file__).parents[1] / "golden"
STATE_VERSION = 1
CLASSES = 4
PLACE = ("native", "/home/ada/.local/state/memoryd/sessions", "a.jsonl")


def lessons(path: Path, version: int) -> None:
    """Make `lessons.sqlite3` as the memoryd of that step made it: one lesson, one call that failed."""
    connection = _stepped(path, "lessons", version)
    if version < 7:
        connection.execute(
            "INSERT INTO memories(id, type, content, created_at) "
            "VALUES ('one', 'error', 'npm build fails', '2026-01-01 00:00:00')"
        )
        connection.execute(
            "INSERT INTO tool_calls(id, session_id, ts, tool, args_summary, success) "
            "VALUES ('c1', 's1', '2026-01-01 00:00:00', 'bash', 'npm build', 0)"
        )
    else:
        connection.execute(
            "INSERT INTO lesson(id, type, content, fingerprint, origin, level, untrusted, created_at, "
            "updated_at, call) VALUES ('one', 'error', 'npm build fails', 'f', 'reflector', 1, 0, 1, 1, "
            "'0123456789ab' || char(0) || '2' || char(0) || '0')"
        )
        connection.execute(
            "INSERT INTO call VALUES ('0123456789ab', 2, 0, 's1', '/w/app', 'bash', 'npm build', 'p', 0, "
            "1767225600000, 'f', 'error', 1, 0)"
        )
        connection.execute("INSERT INTO progress VALUES ('0123456789ab', 3)")
    connection.close()


def index(path: Path, version: int) -> None:
    """Make an index of that step, with nothing in it."""
    connection = _stepped(path, "index", version)
    connection.pragma("application_id", APPLICATION_ID)
    connection.close()


def _stepped(path: Path, database: str, version: int) -> apsw.Connection:
    """Return a database as the first `version` steps left it."""
    connection = apsw.Connection(str(path))
    known = migrations.steps(database)[:version]
    whole = migrations.steps
    migrations.steps = lambda _: known
    try:
        migrations.apply(connection, database, classes=CLASSES)
    finally:
        migrations.steps = whole
    return connection


def lived(home: Path) -> None:
    """Fill a state folder with one of each thing that is kept for good."""
    with Classroom(home.parent) as room:
        script = Script("s1").owner("the build fails").fail("npm build").edit().good("npm build")
        room.write("a.jsonl", script.end())
        room.write("gone.jsonl", Script("gone").owner("kept of a log that is gone"))
        room.learn()
        (room.world.sessions / "gone.jsonl").unlink()
        room.learn()
    with Desk(home) as desk:
        desk.create(A, "one\n", reason="first")
        desk.replace(A, "one", "two")
        desk.create(B, "three\n")
        desk.edit("delete", B)
        desk.refusal("str_replace", A, session(1, untrusted=True), old_str="two", new_str="six")
        desk.notes.journal.change_key()
        desk.create("/memories/public/c.md", "four\n")
    overrides.append(
        home,
        Floor(*PLACE, cls="private", untrusted=True, why="rewritten"),
        Relabel(*PLACE, 0, 3, "0" * 16, "mine", cls="internal"),
        Forget(*PLACE, 2, 5, act="x"),
        Remember(act="x"),
        Forget(*PLACE, 7, until=1_767_225_600_000, act="y"),
    )
    key = home / state.KEY
    key.write_bytes(indexing.KEY)
    key.chmod(0o600)


def packed(home: Path) -> bytes:
    """Return a state folder as one file."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        archive.add(home, "state", filter=lambda one: None if "index" in one.name else one)
    return made.getvalue()


def database(path: Path, target: Path) -> Path:
    """Unpack a database of `FOLDER` to `target`."""
    target.write_bytes(gzip.decompress(path.read_bytes()))
    target.chmod(0o600)
    return target


def _write(name: str, number: int, make: Callable[[Path, int], None]) -> None:
    target = FOLDER / name / f"{number:03}.sqlite3.gz"
    if target.exists():
        return
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / store.NAME
        make(made, number)
        target.write_bytes(gzip.compress(made.read_bytes(), mtime=0))


def main() -> None:
    """Write what is missing."""
    for name, make in (("lessons", lessons), ("index", index)):
        for number in range(1, migrations.latest(name) + 1):
            _write(f"{name}-database", number, make)
    target = FOLDER / "state" / f"{STATE_VERSION:03}.tar.gz"
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="md-") as folder:
            home = Path(folder) / "state"
            home.mkdir(mode=0o700)
            lived(home)
            for name in ("run", "logs"):
                shutil.rmtree(home / name, ignore_errors=True)
            target.write_bytes(packed(home))


if __name__ == "__main__":
    main()
