"""Case 53: a kill at every named point of every command, and again inside every recovery.

After each: the journal replayed is the disk, `verify` finds nothing, what was acknowledged is there, and the
note is as before the edit or as after it.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from memoryd import points
from memoryd.errors import MemorydError
from memoryd.notes import approvals, handles, history
from tests.support.notes import OWNER, A, B, Desk, digest, session

Act = Callable[[Desk], object]
KEPT = "/memories/private/kept.md"
UNTRUSTED = session(1, untrusted=True)


class Killed(BaseException):
    """The end of the process, as far as the code can tell."""


def _undo(desk: Desk) -> object:
    return history.undo(desk.notes, OWNER, history.log(desk.notes)[-1]["txn"])


def _propose(desk: Desk) -> None:
    assert desk.refusal("str_replace", A, UNTRUSTED, old_str="one", new_str="two") == "pending"


def _only_proposal(desk: Desk) -> str:
    return next(iter(desk.notes.journal.state.proposals))


def _edited(desk: Desk) -> None:
    desk.create(A, "one\n")
    desk.replace(A, "one", "zero")


def _rekeyed(desk: Desk) -> None:
    _edited(desk)
    desk.notes.journal.change_key()
    desk.create(B)


def _proposed(desk: Desk) -> None:
    desk.create(A, "one\n")
    _propose(desk)


def _changed_outside(desk: Desk) -> None:
    desk.create(A, "one\n")
    desk.outside("internal/a.md", b"theirs\n")


def _full(desk: Desk) -> None:
    desk.create(A, "one\n")
    desk.notes.journal.rotate_bytes = 1


CALL = approvals.Wanted(method="recall", args={"query": "x"}, rule="r", repeat=True)


def _ask(desk: Desk) -> None:
    with suppress(MemorydError):
        approvals.check(desk.notes, CALL, session(1, untrusted=True))


def _approved(desk: Desk) -> None:
    _ask(desk)
    history.accept(desk.notes, OWNER, txn=_only_proposal(desk))


COMMANDS: dict[str, tuple[Act, Act]] = {
    "create": (lambda desk: None, lambda desk: desk.create(A, "one\n")),
    "create in a new folder": (
        lambda desk: None,
        lambda desk: desk.create("/memories/internal/d/e/a.md", "one\n"),
    ),
    "str_replace": (
        lambda desk: desk.create(A, "one\n"),
        lambda desk: desk.replace(A, "one", "two"),
    ),
    "insert": (
        lambda desk: desk.create(A, "one\n"),
        lambda desk: desk.edit("insert", A, insert_line=1, insert_text="two"),
    ),
    "delete": (lambda desk: desk.create(A, "one\n"), lambda desk: desk.edit("delete", A)),
    "rename": (lambda desk: desk.create(A, "one\n"), lambda desk: desk.edit("rename", A, to=B)),
    "rename up": (
        lambda desk: desk.create(A, "one\n"),
        lambda desk: desk.edit("rename", A, to="/memories/secret/d/a.md"),
    ),
    "undo": (_edited, _undo),
    "propose": (lambda desk: desk.create(A, "one\n"), _propose),
    "accept": (_proposed, lambda desk: history.accept(desk.notes, OWNER, txn=_only_proposal(desk))),
    "reject": (_proposed, lambda desk: history.reject(desk.notes, _only_proposal(desk))),
    "accept from outside": (
        _changed_outside,
        lambda desk: history.accept(desk.notes, OWNER, path=A),
    ),
    "notice": (_changed_outside, lambda desk: desk.notes.look_after()),
    "redact": (_edited, lambda desk: history.redact(desk.notes, OWNER, digest(b"one\n"))),
    "change the key": (_edited, lambda desk: desk.notes.journal.change_key()),
    "change the key again": (_rekeyed, lambda desk: desk.notes.journal.change_key()),
    "rotate": (_full, lambda desk: desk.create(B, "two\n")),
    "ask for a call": (lambda desk: None, _ask),
    "approve a call": (
        _ask,
        lambda desk: history.accept(desk.notes, OWNER, txn=_only_proposal(desk)),
    ),
    "make an approved call": (
        _approved,
        lambda desk: approvals.check(desk.notes, CALL, session(1, untrusted=True)),
    ),
    "delete a folder": (
        lambda desk: [desk.create(f"/memories/internal/d/{name}.md") for name in "ab"],
        lambda desk: desk.edit("delete", "/memories/internal/d", recursive=True),
    ),
}


def killed_at(number: int, act: Callable[[], object]) -> str:
    """Do `act` until the point of that number (from 0) and return its name; "" when there are fewer."""
    met: list[str] = []

    def observe(point: str) -> None:
        met.append(point)
        if len(met) > number:
            raise Killed(point)

    points.observe(observe)
    try:
        act()
    except Killed as killed:
        return str(killed)
    finally:
        points.observe(None)
    return ""


def each_kill(template: Path, home: Path, act: Act) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield for each point the state folder of a process killed there, with its tree before the edit."""
    for number in range(100):
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(template, home)
        with Desk(home) as desk:
            if (home / "rotate").exists():
                desk.notes.journal.rotate_bytes = 1
            before = desk.tree()
            point = killed_at(number, lambda: act(desk))
        if not point:
            return
        yield point, before


def _open_and_close(home: Path) -> None:
    Desk(home).notes.close()


def prepared(command: str, tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    """Return a state folder as it is before the command, and the tree as the command leaves it."""
    setup, act = COMMANDS[command]
    template = tmp_path / "template"
    with Desk(template) as desk:
        desk.create(KEPT, "acknowledged\n")
        setup(desk)
        if desk.notes.journal.rotate_bytes == 1:
            (template / "rotate").touch()
    shutil.copytree(template, tmp_path / "done")
    with Desk(tmp_path / "done") as desk:
        act(desk)
        return template, desk.tree()


def check(home: Path, before: dict[str, bytes], after: dict[str, bytes], command: str) -> None:
    """Hold what recovery made against what must be."""
    with Desk(home) as desk:
        tree = desk.tree()
        outside = command in {"accept from outside", "notice"}
        if not outside:
            desk.check_sound()
        assert tree["private/kept.md"] == b"acknowledged\n"
        if command == "delete a folder":
            assert set(after) <= set(tree) <= set(before)
        else:
            assert tree in (before, after)
        assert not list((home / "notes").rglob("*.tmp"))
        assert not desk.notes.journal.state.intents
        waiting = {path.stem for path in (home / "journal/pending").glob("*")}
        assert waiting == set(desk.notes.journal.state.proposals)
        desk.create("/memories/internal/next.md")  # and it goes on


@pytest.mark.parametrize("command", COMMANDS)
def test_case_53_a_kill_at_any_point_leaves_the_edit_done_or_undone_n01(tmp_path, command):
    act = COMMANDS[command][1]
    template, after = prepared(command, tmp_path)
    met = []
    for point, before in each_kill(template, tmp_path / "state", act):
        met.append(point)
        check(tmp_path / "state", before, after, command)
    assert len(met) >= 2, met
    assert met[-1] == "notes: head written" or command == "rotate"


@pytest.mark.parametrize("command", COMMANDS)
def test_case_53_a_kill_inside_recovery_is_recovered_from_too(tmp_path, command):
    act = COMMANDS[command][1]
    template, after = prepared(command, tmp_path)
    home, killed = tmp_path / "state", tmp_path / "killed"
    for _, before in each_kill(template, home, act):
        for number in range(10):
            shutil.rmtree(killed, ignore_errors=True)
            shutil.copytree(home, killed)
            if not killed_at(number, partial(_open_and_close, killed)):
                break
            check(killed, before, after, command)


@pytest.mark.parametrize("command", ["create", "str_replace", "delete", "rename"])
def test_case_53_a_torn_last_line_at_any_length_is_recovered_from_n05(tmp_path, command):
    act = COMMANDS[command][1]
    template, after = prepared(command, tmp_path)
    home, torn = tmp_path / "state", tmp_path / "torn"
    for point, before in each_kill(template, home, act):
        if point not in {"notes: intent written", "notes: commit written"}:
            continue
        size = len((home / "journal/journal.jsonl").read_bytes().rstrip(b"\n").rpartition(b"\n")[2])
        for cut in (1, 2, size // 2, size):
            shutil.rmtree(torn, ignore_errors=True)
            shutil.copytree(home, torn)
            with (torn / "journal/journal.jsonl").open("r+b") as file:
                file.truncate(file.seek(0, os.SEEK_END) - cut)
            check(torn, before, after, command)


def test_case_53_where_links_do_the_rename_both_names_are_never_left(tmp_path, monkeypatch):
    monkeypatch.setattr(handles, "_renamed", lambda *_: 38)
    for command in ("create", "rename"):
        act = COMMANDS[command][1]
        template, after = prepared(command, tmp_path / command)
        met = []
        for point, before in each_kill(template, tmp_path / "state", act):
            met.append(point)
            check(tmp_path / "state", before, after, command)
        assert "notes: linked" in met


KILLER = """
import os, signal, sys
from pathlib import Path
from memoryd import points
from tests.support.notes import A, Desk
home, wanted = Path(sys.argv[1]), sys.argv[2]
with Desk(home) as desk:
    points.observe(lambda point: point == wanted and os.kill(os.getpid(), signal.SIGKILL))
    desk.replace(A, "one", "two")
"""


@pytest.mark.parametrize(
    "point",
    ["notes: intent written", "notes: temp written", "notes: renamed", "notes: commit written"],
)
def test_case_53_a_real_kill_is_recovered_from_n01(tmp_path, point):
    home = tmp_path / "state"
    with Desk(home) as desk:
        desk.create(KEPT, "acknowledged\n")
        desk.create(A, "one\n")
        before = desk.tree()
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(home), point], cwd=root, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    after = {**before, "internal/a.md": b"two\n"}
    check(home, before, after, "str_replace")


def test_recovery_takes_no_side_where_somebody_else_wrote(desk):
    desk.create(A, "one\n")
    killed_at(6, lambda: desk.replace(A, "one", "two"))
    desk.outside("internal/a.md", b"theirs\n")
    desk.reopen()
    assert desk.tree() == {"internal/a.md": b"theirs\n"}
    assert desk.faults() == [("internal/a.md", "was changed outside memoryd")]
    with pytest.raises(MemorydError):
        desk.replace(A, "theirs", "ours")
