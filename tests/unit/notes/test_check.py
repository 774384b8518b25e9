"""The sixteen checks: their order, and those that have no file of their own."""

import pytest

from memoryd.errors import MemorydError
from memoryd.notes.check import TABLE
from memoryd.notes.request import Limits
from tests.support.notes import OWNER, A, B, Desk, digest, session

TOKEN = "ghp_" + "a8Kd03jLq92mZx7Vb5Nw1Rt6Yc4Ue0Ig3Hf2"


def test_the_table_has_sixteen_checks_in_their_order():
    assert [number for number, _, _ in TABLE] == list(range(1, 17))


ORDER = [
    ("args", {"command": "create", "path": "nonsense", "file_text": 3}),
    ("grant", {"command": "insert", "path": "nonsense", "insert_line": 0, "insert_text": ""}),
    ("path", {"command": "create", "path": "/memories/secret/.x", "file_text": "\0"}),
    ("not_found", {"command": "create", "path": "/memories/secret/inbox", "file_text": "\0"}),
    ("reserved", {"command": "create", "path": "/memories/internal/Inbox/A.md", "file_text": "\0"}),
    ("exists", {"command": "create", "path": "/memories/internal/LINK.md", "file_text": "\0"}),
    (
        "unsafe",
        {
            "command": "create",
            "path": "/memories/internal/link.md",
            "file_text": "\0",
            "expect": "0" * 64,
        },
    ),
    (
        "stale",
        {
            "command": "create",
            "path": "/memories/internal/out.md",
            "file_text": "\0",
            "expect": "0" * 64,
        },
    ),
    ("external", {"command": "create", "path": "/memories/internal/out.md", "file_text": "\0"}),
    ("exists", {"command": "create", "path": A, "file_text": "\0"}),
    ("text", {"command": "create", "path": B, "file_text": "\0"}),
    (
        "label",
        {"command": "create", "path": "/memories/public/b.md", "file_text": f"token = {TOKEN}\n"},
    ),
    ("secret", {"command": "create", "path": B, "file_text": f"token = {TOKEN}\n"}),
]


@pytest.mark.parametrize(("check", "edit"), ORDER, ids=[check for check, _ in ORDER])
def test_the_first_check_that_fails_answers_and_nothing_is_written(desk, check, edit):
    desk.create(A)
    desk.file("internal/link.md").symlink_to("/etc/passwd")
    desk.outside("internal/out.md", b"out\n")
    before = desk.tree(), desk.journal_bytes()
    asker = session(1, clearance=1, tools=frozenset({"memory_create"}))
    assert desk.refusal(asker=asker, **edit) == check
    assert (desk.tree(), desk.journal_bytes()) == before


@pytest.mark.parametrize(
    "edit",
    [
        {"command": "nonsense"},
        {"command": "create"},
        {"command": "create", "file_text": None},
        {"command": "create", "file_text": "x", "more": 1},
        {"command": "insert", "insert_line": True, "insert_text": "x"},
        {"command": "insert", "insert_line": "1", "insert_text": "x"},
        {"command": "rename"},
        {"command": "delete", "to": B},
        {"command": "create", "file_text": "x", "recursive": True},
        {"command": "create", "file_text": "x", "expect": "abc"},
        {"command": "create", "file_text": "x", "reason": "x" * 201},
        {"command": "create", "file_text": "x", "reason": "a\nb"},
        {"command": "create", "file_text": "x", "reason": "a\u202eb"},
    ],
    ids=str,
)
def test_check_1_arguments_are_exact(desk, edit):
    assert desk.refusal(path=A, **edit) == "args"


def test_check_2_only_the_owner_may_force(desk):
    desk.create(A)
    assert desk.refusal("delete", A, session(1), force=True) == "grant"


def test_check_2_the_owner_alone_may_restore(desk):
    assert desk.refusal("restore", A, session(1), file_text="x") == "grant"


def test_case_49_the_61st_edit_in_a_minute_is_refused(desk):
    desk.create(A, "0\n")
    asker = session(1)
    for number in range(60):
        desk.replace(A, f"{number}\n", f"{number + 1}\n", asker)
    assert desk.refusal("str_replace", A, asker, old_str="60", new_str="61") == "rate"
    assert (
        desk.refusal("str_replace", A, session(1, client="other"), old_str="no", new_str="")
        == "no_match"
    )
    desk.replace(A, "60", "61")  # the owner is not counted
    desk.now += 60_000
    desk.replace(A, "61", "62", asker)


def test_check_2_edits_of_a_day_are_counted(memoryd_home):
    with Desk(memoryd_home, Limits(edits_a_minute=9, edits_a_day=3)) as desk:
        for number in range(3):
            desk.create(f"/memories/internal/{number}.md", asker=session(1))
        desk.now += 3_600_000
        assert desk.refusal("create", A, session(1), file_text="") == "rate"
        desk.now += 86_400_000
        desk.create(A, asker=session(1))


def test_case_49_the_2001st_note_of_a_class_is_refused(memoryd_home):
    with Desk(memoryd_home, Limits(notes_in_class=2, bytes_in_class=20)) as desk:
        desk.create(A, "0123456789")
        desk.create(B, "01234")
        assert desk.refusal("create", "/memories/internal/c.md", file_text="") == "quota"
        assert desk.refusal("insert", A, insert_line=1, insert_text="012345") == "quota"
        desk.create("/memories/private/c.md", "x")
        assert (
            desk.refusal("rename", "/memories/public/c.md", to="/memories/internal/c.md")
            == "not_found"
        )
        desk.create("/memories/public/c.md", "x")
        assert (
            desk.refusal("rename", "/memories/public/c.md", to="/memories/internal/c.md") == "quota"
        )
        desk.edit("rename", A, to="/memories/internal/d.md")
        desk.edit("delete", B)
        desk.edit("rename", "/memories/public/c.md", to="/memories/internal/c.md")


def test_case_47_a_stale_expect_conflicts_and_says_what_is_there_n02(desk):
    now = desk.create(A, "one\n")["hash"]
    with pytest.raises(MemorydError) as refused:
        desk.replace(A, "one", "two", expect="0" * 64)
    assert refused.value.code == "conflict"
    assert refused.value.data == {"check": "stale", "hash": now}
    desk.replace(A, "one", "two", expect=now)
    assert desk.refusal("delete", A, expect=now) == "stale"
    assert desk.refusal("rename", A, to=B, expect=now) == "stale"


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("str_replace", {"old_str": "one", "new_str": "one"}),
        ("insert", {"insert_line": 1, "insert_text": ""}),
    ],
)
def test_case_48_an_edit_that_changes_nothing_is_done_already(desk, command, more):
    desk.create(A, "one\n")
    before = desk.journal_bytes()
    told = desk.edit(command, A, session(1, untrusted=True), **more)
    assert (told["status"], told["changed"], told["txn"]) == ("unchanged", False, None)
    assert desk.journal_bytes() == before


def test_case_46_a_secret_is_refused_with_kind_and_line_and_its_text_is_nowhere(desk):
    with pytest.raises(MemorydError) as refused:
        desk.create(A, f"first\nsecond {TOKEN}\n")
    assert refused.value.data == {"check": "secret", "kind": "token", "line": 2}
    assert TOKEN not in str(refused.value) + repr(refused.value.data)
    desk.create(A, "plain\n")
    assert desk.refusal("insert", A, insert_line=1, insert_text=TOKEN) == "secret"
    assert (
        desk.refusal("insert", A, session(1, untrusted=True), insert_line=1, insert_text=TOKEN)
        == "secret"
    )
    assert desk.refusal("delete", A, reason=f"because {TOKEN}") == "secret"
    assert desk.refusal("create", f"/memories/internal/{TOKEN}.md", file_text="x") == "secret"
    assert TOKEN.encode() not in desk.every_byte()


def test_case_46_the_owner_may_force_a_secret_and_others_may_then_edit_around_it(desk):
    desk.create(A, f"one\n{TOKEN}\n", force=True)
    desk.replace(A, "one", "two", session(1))
    assert desk.refusal("insert", A, session(1), insert_line=0, insert_text=TOKEN.swapcase()) in {
        "secret",
        "",
    }
    other = "ghp_" + TOKEN[4:][::-1]
    assert desk.refusal("insert", A, session(1), insert_line=0, insert_text=other) == "secret"


def test_a_whole_folder_is_deleted_only_if_every_note_in_it_may_be(desk):
    for name in ("a", "sub/b", "sub/deep/c"):
        desk.create(f"/memories/internal/dir/{name}.md")
    folder = "/memories/internal/dir"
    assert desk.refusal("delete", folder, recursive=False) == "path"
    assert desk.refusal("delete", folder, session(2), recursive=True) == "label"
    assert desk.refusal("delete", folder, session(1, untrusted=True), recursive=True) == "untrusted"
    assert desk.refusal("delete", folder, session(1, tools=frozenset()), recursive=True) == "grant"
    odd = desk.file("internal/dir/sub/link.md")
    odd.symlink_to(desk.file("internal/dir/a.md"))
    assert desk.refusal("delete", folder, recursive=True) == "unsafe"
    odd.unlink()
    assert len(desk.tree()) == 3
    assert desk.refusal("delete", folder, session(1), recursive=True) == "ask"
    told = desk.edit("delete", folder, recursive=True)
    assert (told["count"], len(set(told["txns"]))) == (3, 3)
    assert desk.tree() == {}
    assert not desk.file("internal/dir").exists()
    desk.check_sound()


@pytest.mark.parametrize("path", ["/memories", "/memories/internal", "/memories/internal/inbox"])
def test_folders_that_every_class_has_cannot_be_deleted(desk, path):
    assert desk.refusal("delete", path, recursive=True) == "reserved"
    assert desk.file("internal/inbox").is_dir()


def test_a_folder_that_is_not_there_is_not_found(desk):
    assert desk.refusal("delete", "/memories/internal/none", recursive=True) == "not_found"


def test_answers_say_hash_label_and_the_lines_around(desk):
    told = desk.create("/memories/private/inbox/a.md", "one\ntwo\n")
    assert told["label"] == {"class": "private", "untrusted": True}
    told = desk.replace("/memories/private/inbox/a.md", "two", "three")
    assert told["hash"] == digest(b"one\nthree\n")
    assert told["text"] == "edited /memories/private/inbox/a.md\n     1\tone\n     2\tthree"


def test_no_refusal_names_a_path_of_the_host(desk):
    desk.file("internal/link.md").symlink_to("/etc/passwd")
    for command, path, more in [
        ("create", "/memories/internal/link.md", {"file_text": "x"}),
        ("delete", A, {}),
        ("rename", A, {"to": B}),
    ]:
        with pytest.raises(MemorydError) as refused:
            desk.edit(command, path, OWNER, **more)
        assert str(desk.home) not in str(refused.value) + repr(refused.value.data)
