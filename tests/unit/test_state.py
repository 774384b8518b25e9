"""The state folder: private, one writer, one key for ever."""

import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from memoryd import state
from memoryd.errors import Busy, ConfigError, IOFailed
from tests.support.modes import too_wide


@pytest.fixture
def home(memoryd_home: Path) -> Path:
    return state.private_folder(memoryd_home)


def test_a_folder_is_made_private_whatever_the_umask(memoryd_home: Path) -> None:
    before = os.umask(0)
    try:
        made = state.private_folder(memoryd_home / "a" / "b")
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_a_folder_that_others_may_enter_is_closed_v02(memoryd_home: Path) -> None:
    memoryd_home.mkdir()
    memoryd_home.chmod(0o755)
    state.private_folder(memoryd_home)
    assert stat.S_IMODE(memoryd_home.stat().st_mode) == 0o700


def test_a_file_where_the_folder_should_be_is_named(memoryd_home: Path) -> None:
    memoryd_home.write_text("")
    with pytest.raises(ConfigError, match="is no folder"):
        state.private_folder(memoryd_home)
    with pytest.raises((ConfigError, IOFailed)):
        state.private_folder(memoryd_home / "below")


def _hold(home: Path, ready: object, over: object) -> None:
    with state.held(home):
        ready.set()  # type: ignore[attr-defined]  # an Event of another start method
        over.wait()  # type: ignore[attr-defined]  # the same


def test_a_second_process_is_refused_with_the_pid_of_the_first(home: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    ready, over = spawn.Event(), spawn.Event()
    process = spawn.Process(target=_hold, args=(home, ready, over))
    process.start()
    try:
        assert ready.wait(20)
        with pytest.raises(Busy) as raised, state.held(home):
            pass
        assert str(process.pid) in raised.value.message
        assert raised.value.data["pid"] == process.pid
        assert raised.value.exit_code == 75
    finally:
        over.set()
        process.join()
    with state.held(home):
        assert (home / "memoryd.lock").read_text() == f"{os.getpid()}\n"


def test_a_killed_process_leaves_no_lock(home: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    ready, over = spawn.Event(), spawn.Event()
    process = spawn.Process(target=_hold, args=(home, ready, over))
    process.start()
    assert ready.wait(20)
    process.kill()
    process.join()
    with state.held(home):
        pass


def test_a_key_is_made_once_and_then_kept(home: Path) -> None:
    key = state.key(home)
    assert len(key) == 32
    assert state.key(home) == key
    assert too_wide(home) == []


def test_what_is_no_key_is_refused_and_left(home: Path) -> None:
    (home / "key").write_bytes(b"short")
    with pytest.raises(ConfigError):
        state.key(home)
    assert (home / "key").read_bytes() == b"short"


def test_a_key_that_was_half_written_is_written_again(home: Path) -> None:
    (home / "key.new").write_bytes(b"half")
    assert len(state.key(home)) == 32
    assert not (home / "key.new").exists()
