"""Sockets on disk: their modes, what they replace and what they refuse, and their end."""

import os
import socket
import stat
from pathlib import Path

import pytest

from memoryd.config import Socket
from memoryd.errors import ConfigError
from memoryd.serve.listening import Listening, close, listen
from tests.support.peer import allowing

OWNER = Socket("memoryd", "secret", ["*"])


@pytest.fixture(autouse=True)
def umask() -> object:
    """No mode may come from the umask."""
    before = os.umask(0)
    yield
    os.umask(before)


def listening(home: Path, setting: Socket = OWNER) -> Listening:
    return listen(setting, allowing(), {"MEMORYD_HOME": str(home), "HOME": str(home)})


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_socket_and_folder_are_the_owner_s_alone_whatever_the_umask(memoryd_home: Path) -> None:
    found = listening(memoryd_home)
    assert found.path == memoryd_home / "run" / "memoryd.sock"
    assert mode(found.path) == 0o600
    assert mode(found.path.parent) == 0o700
    assert [entry.name for entry in found.path.parent.iterdir()] == ["memoryd.sock"]
    close(found)
    assert not found.path.exists()


def test_who_connects_to_the_path_reaches_the_socket(memoryd_home: Path) -> None:
    found = listening(memoryd_home)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(found.path))
        accepted, _ = found.sock.accept()
        accepted.close()
    close(found)


def test_the_socket_of_a_killed_daemon_is_replaced_l02(memoryd_home: Path) -> None:
    killed = listening(memoryd_home)
    killed.sock.close()
    found = listening(memoryd_home)
    assert found.node != killed.node
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(found.path))
    close(found)


def test_a_half_made_socket_of_a_killed_daemon_is_no_hindrance(memoryd_home: Path) -> None:
    folder = memoryd_home / "run"
    folder.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "memoryd.soc~"))
    close(listening(memoryd_home))
    assert list(folder.iterdir()) == []


def test_a_folder_that_others_may_enter_is_closed_to_them(memoryd_home: Path) -> None:
    (memoryd_home / "run").mkdir(parents=True, mode=0o777)
    found = listening(memoryd_home)
    assert mode(found.path.parent) == 0o700
    close(found)


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_anything_but_a_socket_of_ours_is_left_and_named_l03(memoryd_home: Path, kind: str) -> None:
    path = memoryd_home / "run" / "memoryd.sock"
    path.parent.mkdir(parents=True)
    if kind == "file":
        path.write_text("precious")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/null")
    with pytest.raises(ConfigError, match="something else is at"):
        listening(memoryd_home)
    assert path.is_symlink() or path.exists()


def test_a_socket_that_was_replaced_is_not_removed_at_the_end_l04(memoryd_home: Path) -> None:
    first = listening(memoryd_home)
    second = listening(memoryd_home)
    close(first)
    assert second.path.exists()
    close(second)


def test_a_path_over_107_bytes_is_refused_with_a_remedy_l20(user_home: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        listening(user_home / ("x" * 100))
    assert "107" in str(raised.value)
    assert raised.value.remedy


def test_a_path_of_107_bytes_works_l20(user_home: Path) -> None:
    start = len(str(user_home)) + len("//run/memoryd.sock")
    found = listening(user_home / ("x" * (107 - start)))
    assert len(str(found.path)) == 107
    close(found)


def test_a_named_group_may_connect_but_not_list(user_home: Path) -> None:
    import grp

    group = grp.getgrgid(os.getegid()).gr_name
    path = user_home / "agents" / "a.sock"
    found = listening(user_home, Socket("a", "internal", ["recall"], path=str(path), group=group))
    assert mode(path) == 0o660
    assert mode(path.parent) == 0o710
    assert path.lstat().st_gid == os.getegid()
    close(found)


def test_an_unknown_group_is_named(user_home: Path) -> None:
    setting = Socket("a", "internal", ["recall"], group="no-such-group-here")
    with pytest.raises(ConfigError, match="no-such-group-here"):
        listening(user_home, setting)


def test_a_folder_that_the_owner_made_keeps_its_mode(user_home: Path) -> None:
    folder = user_home / "own"
    folder.mkdir(mode=0o755)
    found = listening(user_home, Socket("a", "internal", ["recall"], path=str(folder / "a.sock")))
    assert mode(folder) == 0o755
    assert mode(found.path) == 0o600
    close(found)


def test_a_folder_that_cannot_be_made_is_named(user_home: Path) -> None:
    (user_home / "file").write_text("")
    setting = Socket("a", "internal", ["recall"], path=str(user_home / "file" / "a.sock"))
    with pytest.raises(ConfigError, match=r"a\.sock"):
        listening(user_home, setting)


def test_nobody_gets_in_between_bind_and_its_mode_v03(
    memoryd_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    real = Path.chmod

    def slow(path: Path, wanted: int) -> None:
        if path.name.startswith("memoryd.soc"):
            assert path.name != "memoryd.sock"
            with socket.socket(socket.AF_UNIX) as peer, pytest.raises(ConnectionRefusedError):
                peer.connect(str(path))
            tried.append(path.name)
        real(path, wanted)

    monkeypatch.setattr(Path, "chmod", slow)
    found = listening(memoryd_home)
    assert tried == ["memoryd.soc~"]
    assert mode(found.path) == 0o600
    close(found)
