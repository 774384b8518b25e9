"""Every test runs in a home of its own; real logs are read only from the corpus that is named."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "gate",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gate")

_MOVES_A_FOLDER = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "MEMORYD_CONFIG",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
)
_CHANGES_OUTPUT = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "PAGER")


@pytest.fixture(autouse=True)
def user_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A throw-away HOME, with MEMORYD_HOME below it; short, since socket paths have 107 bytes at most."""
    for name in (*_MOVES_A_FOLDER, *_CHANGES_OUTPUT):
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        monkeypatch.setenv("HOME", folder)
        monkeypatch.setenv("MEMORYD_HOME", f"{folder}/state")
        yield Path(folder)


@pytest.fixture
def memoryd_home(user_home: Path) -> Path:
    """The state folder that MEMORYD_HOME names, not yet made."""
    return user_home / "state"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real logs that MEMORYD_CORPUS names; unset, the test is skipped."""
    named = os.environ.get("MEMORYD_CORPUS")
    if not named:
        pytest.skip("MEMORYD_CORPUS names no folder of real logs")
    folder = Path(named)
    if not (folder / "sessions").is_dir():
        pytest.fail(f"MEMORYD_CORPUS is set, but {folder}/sessions is no folder")
    return folder
