"""The generated corpus as memoryd sees it: its logs, and settings that read them.

In: a folder that `bench.generate` has filled, an empty state folder. Out: log files with their adapters; settings.
"""

from pathlib import Path

from memoryd import config
from memoryd.index import Settings, from_config
from memoryd.sources import LogFile, discover

CONFIG = """[[source]]
kind = "native"
path = "{corpus}/sessions"
[[source]]
kind = "claude-code"
path = "{corpus}/claude"
"""
KEY = b"benchmark key of thirty-two byte"


def text(corpus: Path) -> str:
    """Return the configuration that reads `corpus`."""
    return CONFIG.format(corpus=corpus)


def settings(corpus: Path, state: Path) -> Settings:
    """Return settings that read `corpus` into the state folder `state`, made with its `index/`."""
    (state / "index").mkdir(parents=True, exist_ok=True, mode=0o700)
    loaded = config.parse(text(corpus), corpus / "memoryd.toml")
    return from_config(loaded.config, state, KEY, {"HOME": str(state)})


def logs(corpus: Path, state: Path) -> list[LogFile]:
    """Return every log of `corpus`."""
    return list(discover.logs(settings(corpus, state).roots))
