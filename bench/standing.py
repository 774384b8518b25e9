"""Indexes of a generated corpus, made once and kept: memoryd's in four classes, and its peers of the same texts.

In: a corpus, a folder to keep them in (`MEMORYD_BENCH_KEEP`, else a temporary one). Out: a state folder that a
daemon can be started on, and what building it cost. Half of the logs lie below the state's own `sessions/`, where
the labels that they state count, so that every class has rows.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from memoryd import config
from memoryd.index import Built, Rebuild, Settings, from_config

KEEP = "MEMORYD_BENCH_KEEP"
KEY = b"benchmark key of thirty-two byte"
CONFIG = """[[source]]
kind = "native"
path = "{state}/sessions"
[[source]]
kind = "claude-code"
path = "{corpus}/claude"
[index]
max_class = "secret"
"""


class Standing(msgspec.Struct, frozen=True):
    """A corpus with an index that stands: `home` holds `state/`, the peers' files, and an empty `user/`."""

    corpus: Path
    home: Path

    @property
    def state(self) -> Path:
        """Return the daemon's state folder."""
        return self.home / "state"

    @property
    def config(self) -> str:
        """Return the configuration that the index was built by."""
        return CONFIG.format(state=self.state, corpus=self.corpus)

    @property
    def settings(self) -> Settings:
        """Return the settings that the index was built by."""
        loaded = config.parse(self.config, self.home / "memoryd.toml")
        return from_config(loaded.config, self.state, KEY, {"HOME": str(self.home / "user")})

    @property
    def built(self) -> Built:
        """Return what building it was like."""
        return msgspec.json.decode((self.home / "built.json").read_bytes(), type=Built)


@contextmanager
def standing(corpus: Path) -> Iterator[Standing]:
    """Give the index of `corpus`, building it if none is kept."""
    kept = os.environ.get(KEEP)
    with tempfile.TemporaryDirectory(prefix="md-bench-") as scratch:
        home = Path(kept, corpus.resolve().name) if kept else Path(scratch)
        stands = Standing(corpus.resolve(), home)
        if not (home / "built.json").exists():
            _build(stands)
        yield stands


def _build(stands: Standing) -> None:
    shutil.rmtree(stands.home, ignore_errors=True)
    for folder in (stands.state, stands.state / "index", stands.home / "user"):
        folder.mkdir(parents=True, mode=0o700)
    (stands.state / "key").write_bytes(KEY)
    (stands.state / "key").chmod(0o600)
    sessions = stands.corpus / "sessions"
    shutil.copytree(sessions, stands.state / "sessions", copy_function=_same)
    settings = stands.settings
    built = Rebuild(settings).run()
    Path(built.temp).rename(settings.path)
    (stands.home / "built.json").write_bytes(msgspec.json.encode(built))


def _same(source: str, target: str) -> None:
    """Give a file a second name, or copy it where that cannot be (another file system)."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
