"""An index over a folder of small logs, and what a fresh rebuild of it would hold.

::

    world = World(user_home)                       # state in user_home/state, logs in user_home/logs
    write(world.logs / "a.jsonl", ...)
    with world.index() as index:
        catch_up(index)
        assert world.dump(index) == world.fresh()
"""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from memoryd import config, db
from memoryd.index import Index, Settings, building, catch_up, from_config, opening
from memoryd.index.dump import dump

KEY = b"k" * 32
_numbers = itertools.count()


class World:
    """A state folder and a folder of logs; `toml` is the configuration, ``{logs}`` in it the folder."""

    def __init__(self, user: Path, toml: str = "") -> None:
        self.user = user
        self.state = user / "state"
        self.logs = user / "logs"
        self.sessions = self.state / "sessions"
        for folder in (self.state, self.logs, self.sessions):
            folder.mkdir(mode=0o700, exist_ok=True)
        self.toml = toml or '[[source]]\nkind = "auto"\npath = "{logs}"\n'

    def settings(self, toml: str | None = None) -> Settings:
        """Return the settings that a configuration means here."""
        text = (self.toml if toml is None else toml).replace("{logs}", str(self.logs))
        loaded = config.parse(text, self.user / "memoryd.toml")
        return from_config(loaded.config, self.state, KEY, {"HOME": str(self.user)})

    @contextmanager
    def index(self, toml: str | None = None) -> Iterator[Index]:
        """Open the index, and close it."""
        index = Index(self.settings(toml))
        try:
            yield index
        finally:
            index.close()

    def fresh(self, toml: str | None = None) -> list[bytes]:
        """Return the dump of a rebuild of what is on the disk now; the index itself is not touched."""
        settings = self.settings(toml)
        temp = self.user / f"fresh-{next(_numbers)}.sqlite3"
        db.create(temp)
        building.build(temp, settings)
        connection = db.reader(temp)
        try:
            return lines(connection)
        finally:
            connection.close()
            temp.unlink()

    def caught_up(self, toml: str | None = None) -> list[bytes]:
        """Open the index, read all there is, and return the dump."""
        with self.index(toml) as index:
            catch_up(index)
            return dumped(index)

    @property
    def overrides(self) -> bytes:
        """Return the floors as they stand in their file."""
        path = self.state / "overrides.jsonl"
        return path.read_bytes() if path.exists() else b""


def lines(connection: apsw.Connection) -> list[bytes]:
    """Return every line of a dump."""
    return [line for _, line in dump(connection)]


def dumped(index: Index) -> list[bytes]:
    """Return the dump of an open index."""
    assert index._following is not None
    return lines(index._following.connection)


def publish(index: Index, settings: Settings) -> None:
    """Rebuild in this process and put the result in the index's place."""
    from memoryd.index import NoGate

    index.publish(building.build(opening.new_temp(settings.path), settings), NoGate())


def bump(path: Path, seconds: int = 1) -> None:
    """Make a file look changed a moment later, whatever the clock's grain."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + seconds * 1_000_000_000))
