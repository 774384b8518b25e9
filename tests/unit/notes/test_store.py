"""Check 7: whatever lies or is swapped in among the notes, no byte outside them is read or written (cases 38, 39)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.errors import MemorydError
from memoryd.notes import handles, reading
from memoryd.notes.desk import Notes
from tests.support.notes import CLASSES, OWNER, A

OUTSIDE = b"outside\n"
EDITS = {
    "create": {"file_text": "new\n"},
    "str_replace": {"old_str": "outside", "new_str": "changed"},
    "insert": {"insert_line": 0, "insert_text": "changed"},
    "delete": {},
    "rename": {"to": "/memories/internal/moved.md"},
}


def _file(at: Path, outside: Path, inside: Path) -> None:
    at.write_bytes(OUTSIDE)
    at.chmod(0o600)


def _group_writable(at, outside, inside):
    _file(at, outside, inside)
    at.chmod(0o620)


def _foreign(at, outside, inside):
    _file(at, outside, inside)
    os.chown(at, 65_534, 65_534)


def _hard_link(at, outside, inside):
    at.hardlink_to(outside / "target.md")


ODD_FILES = {
    "a link out": lambda at, outside, inside: at.symlink_to(outside / "target.md"),
    "a link to a note": lambda at, outside, inside: at.symlink_to(inside / "target.md"),
    "a link to nothing": lambda at, outside, inside: at.symlink_to(outside / "none"),
    "a hard link": _hard_link,
    "a FIFO": lambda at, outside, inside: os.mkfifo(at, 0o600),
    "a folder": lambda at, outside, inside: at.mkdir(0o700),
    "a file of another user": _foreign,
    "a file that others may write": _group_writable,
}
ODD_FOLDERS = {
    "a link out": lambda at, outside, inside: at.symlink_to(outside),
    "a link in": lambda at, outside, inside: at.symlink_to(inside),
    "a file": _file,
    "a folder that others may write": lambda at, outside, inside: (at.mkdir(), at.chmod(0o777)),
}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "target.md").write_bytes(OUTSIDE)
    (tmp_path / "target.md").chmod(0o600)
    return tmp_path


@pytest.fixture
def inside(desk) -> Path:
    desk.create("/memories/private/target.md", OUTSIDE.decode())
    return desk.file("private")


@pytest.mark.parametrize("command", [*EDITS, "view"])
@pytest.mark.parametrize("odd", ODD_FILES)
def test_case_38_a_file_that_is_no_plain_note_of_ours_is_refused_n07(
    desk, outside, inside, odd, command
):
    if "another user" in odd and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    ODD_FILES[odd](desk.file("internal/x.md"), outside, inside)
    _refused(desk, "/memories/internal/x.md", command)
    assert (outside / "target.md").read_bytes() == OUTSIDE
    assert (inside / "target.md").read_bytes() == OUTSIDE


@pytest.mark.parametrize("command", [*EDITS, "view"])
@pytest.mark.parametrize("odd", ODD_FOLDERS)
def test_case_38_a_folder_that_is_none_of_ours_is_refused(desk, outside, inside, odd, command):
    ODD_FOLDERS[odd](desk.file("internal/dir"), outside, inside)
    _refused(desk, "/memories/internal/dir/target.md", command)
    assert (outside / "target.md").read_bytes() == OUTSIDE
    assert sorted(path.name for path in outside.iterdir()) == ["target.md"]
    assert (inside / "target.md").read_bytes() == OUTSIDE


def _refused(desk, path: str, command: str) -> None:
    if command == "view":
        with pytest.raises(MemorydError) as refused:
            reading.view(desk.notes, path, reading.View(3))
        assert refused.value.data["check"] == "unsafe"
    else:
        assert desk.refusal(command, path, OWNER, force=True, **EDITS[command]) == "unsafe"


def test_listings_enter_no_link(desk, outside, inside):
    for name, make in ODD_FOLDERS.items():
        make(desk.file(f"internal/{name.replace(' ', '-')}"), outside, inside)
    desk.create(A)
    told = reading.listing(desk.notes, reading.View(3))
    assert [note["path"] for note in told["notes"]] == [A, "/memories/private/target.md"]
    owner = reading.listing(desk.notes, reading.View(3, owner=True))
    assert len([note for note in owner["notes"] if "odd" in note]) == len(ODD_FOLDERS)


@pytest.mark.parametrize("name", ["notes", "notes/internal", "notes/internal/inbox"])
def test_the_folders_themselves_are_no_links(memoryd_home, tmp_path, name):
    (memoryd_home / name).parent.mkdir(parents=True, mode=0o700)
    (memoryd_home / name).symlink_to(tmp_path)
    with pytest.raises(MemorydError) as refused:
        Notes(memoryd_home, CLASSES)
    assert refused.value.data["check"] == "unsafe"
    assert list(tmp_path.iterdir()) == []


SWAPPER = """
import os, sys, time
inside, outside, at = sys.argv[1:]
spare = at + ".real"
end = time.monotonic() + 60
print("on", flush=True)
while time.monotonic() < end:
    try:
        os.rename(at, spare)
        os.symlink(outside, at)
        os.unlink(at)
        os.rename(spare, at)
    except OSError:
        pass
"""


@pytest.mark.parametrize("what", ["folder", "file"])
def test_case_39_a_second_process_that_swaps_paths_during_edits_moves_none_outside(
    desk, outside, what
):
    """Whatever an edit ends on, it is inside or refused; the file and folder outside stay as they were."""
    desk.create("/memories/internal/dir/target.md", "inside\n")
    at = desk.file("internal/dir" if what == "folder" else "internal/dir/target.md")
    goal = outside if what == "folder" else outside / "target.md"
    command = [sys.executable, "-c", SWAPPER, str(desk.home), str(goal), str(at)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        said = {_try(desk, number) for number in range(300)}
        swapper.kill()
    assert (outside / "target.md").read_bytes() == OUTSIDE
    assert sorted(path.name for path in outside.iterdir()) == ["target.md"]
    assert said <= {"", "unsafe", "not_found", "external", "stale", "no_match", "io", "exists"}
    assert OUTSIDE not in desk.tree().values()


def _try(desk, number: int) -> str:
    commands = (
        ("str_replace", "target.md", {"old_str": "inside", "new_str": f"inside {number}"}),
        ("create", f"new{number}.md", {"file_text": "new\n"}),
        ("insert", "target.md", {"insert_line": 0, "insert_text": "x"}),
    )
    command, name, more = commands[number % 3]
    return desk.refusal(command, f"/memories/internal/dir/{name}", OWNER, **more)


def test_case_39_a_parent_swapped_between_check_and_write_ends_inside(desk, outside):
    from memoryd import points

    desk.create("/memories/internal/dir/a.md")
    folder = desk.file("internal/dir")

    def swap(point: str) -> None:
        if point == "notes: temp written":
            folder.rename(folder.with_name("moved"))
            folder.symlink_to(outside)

    points.observe(swap)
    desk.create("/memories/internal/dir/b.md", "new\n")
    assert sorted(path.name for path in outside.iterdir()) == ["target.md"]
    assert desk.file("internal/moved/b.md").read_bytes() == b"new\n"


@pytest.mark.parametrize(
    ("command", "more"), [("str_replace", {"old_str": "text", "new_str": "new"}), ("delete", {})]
)
def test_a_file_changed_between_check_and_write_is_not_overwritten(desk, command, more):
    from memoryd import points

    desk.create(A)
    points.observe(
        lambda point: point == "notes: all synced" and desk.outside("internal/a.md", b"theirs\n")
    )
    assert desk.refusal(command, A, **more) == "stale"
    points.observe(None)
    assert desk.tree() == {"internal/a.md": b"theirs\n"}
    assert desk.refusal(command, A, **more) == "external"


def test_a_file_made_between_check_and_write_is_not_overwritten(desk):
    from memoryd import points

    points.observe(
        lambda point: point == "notes: all synced" and desk.outside("internal/a.md", b"theirs\n")
    )
    assert desk.refusal("create", A, file_text="ours\n") == "exists"
    assert desk.tree() == {"internal/a.md": b"theirs\n"}


def test_where_the_file_system_cannot_rename_without_replacing_links_do_it(desk, monkeypatch):
    monkeypatch.setattr(handles, "_renamed", lambda *_: 38)
    desk.create(A)
    desk.edit("rename", A, to="/memories/internal/b.md")
    assert set(desk.tree()) == {"internal/b.md"}
    assert desk.file("internal/b.md").stat().st_nlink == 1
    desk.check_sound()


def test_modes_hold_whatever_the_umask(memoryd_home):
    from tests.support.notes import Desk

    before = os.umask(0)
    try:
        with Desk(memoryd_home) as desk:
            desk.create("/memories/internal/dir/a.md")
            desk.replace("/memories/internal/dir/a.md", "text", "new")
    finally:
        os.umask(before)
    for path in memoryd_home.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_an_existing_wide_folder_of_notes_is_closed(memoryd_home):
    from tests.support.notes import Desk

    (memoryd_home / "notes").mkdir(parents=True)
    (memoryd_home / "notes").chmod(0o755)
    with Desk(memoryd_home) as desk:
        assert desk.file("").stat().st_mode & 0o777 == 0o700
