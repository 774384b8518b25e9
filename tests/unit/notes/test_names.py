"""Checks 3 to 5: what a path may be (cases 37 and the reference helper's defects)."""

import pytest

from memoryd.errors import CheckFailed, NotFound
from memoryd.notes import names
from memoryd.notes.names import Place
from tests.support.notes import CLASSES, A

BAD = {
    "up": "/memories/internal/../secret/x.md",
    "encoded dots": "/memories/internal/%2e%2e/x.md",
    "encoded slash": "/memories/internal%2Fx.md",
    "encoded backslash": "/memories/internal/a%5cx.md",
    "backslash": "/memories/internal\\x.md",
    "prefix without a slash": "/memoriesX.md",
    "two slashes": "/memories//x.md",
    "two slashes later": "/memories/internal//x.md",
    "slash after a note": "/memories/internal/x.md/",
    "no root": "internal/x.md",
    "absolute": "/etc/passwd",
    "nothing": "",
    "NUL": "/memories/internal/x\0.md",
    "newline and a closing tag": "/memories/internal/x\n</memory>.md",
    "tab": "/memories/internal/a\tb.md",
    "right-to-left override": "/memories/internal/a\u202edm.md",
    "zero width": "/memories/internal/a\u200bb.md",
    "tag character": "/memories/internal/a\U000e0041.md",
    "line separator": "/memories/internal/a\u2028b.md",
    "private use": "/memories/internal/a\ue000.md",
    "half a surrogate pair": "/memories/internal/a\ud800.md",
    "decomposed": "/memories/internal/cafe\u0301.md",
    "composed": "/memories/internal/caf\u00e9.md",
    "look-alike": "/memories/internal/\u0430.md",
    "full width": "/memories/internal/\uff41.md",
    "trailing dot": "/memories/internal/dir./x.md",
    "trailing space": "/memories/internal/dir /x.md",
    "leading space": "/memories/internal/ x.md",
    "device": "/memories/internal/CON.md",
    "device with a number": "/memories/internal/lpt1.notes.md",
    "dot file": "/memories/internal/.hid.md",
    "dot": "/memories/internal/./x.md",
    "65 bytes": "/memories/internal/" + "a" * 62 + ".md",
    "256 bytes": "/memories/internal" + "/" + "/".join(["b" * 60] * 3) + "/" + "c" * 54 + ".md",
    "seven deep": "/memories/internal/a/b/c/d/e/f.md",
    "no .md": "/memories/internal/x.txt",
    "only .md": "/memories/internal/.md",
    "a folder called .md": "/memories/internal/x.md/y.md",
}


@pytest.mark.parametrize("name", BAD)
def test_case_37_a_bad_path_is_refused_and_nothing_is_on_the_disk_n07(desk, name):
    before = desk.tree(), desk.journal_bytes()
    assert desk.refusal("create", BAD[name], file_text="x\n") == "path"
    assert (desk.tree(), desk.journal_bytes()) == before


@pytest.mark.parametrize("name", BAD)
def test_case_37_a_refusal_never_repeats_the_path(desk, name):
    with pytest.raises(CheckFailed) as refused:
        desk.create(BAD[name])
    assert BAD[name] not in str(refused.value) or not BAD[name]
    assert str(desk.home) not in str(refused.value)


@pytest.mark.parametrize(
    "path",
    [
        A,
        "/memories/internal/" + "a" * 61 + ".md",
        "/memories/internal/a/b/c/d/e.md",
        "/memories/internal/Release plan 2.0_final-x.md",
        "/memories/secret/inbox/x.md",
        "/memories/public/MEMORY.md",
        "/memories/internal/console.md",
    ],
)
def test_a_plain_path_is_a_note(desk, path):
    desk.create(path)
    assert desk.tree()[path.removeprefix("/memories/")] == b"text\n"


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("create", "/memories/internal/sub/inbox/x.md"),
        ("create", "/memories/internal/Inbox/x.md"),
        ("create", "/memories/internal/memory.md"),
        ("create", "/memories/internal/MEMORY.md/x.md"),
        ("create", "/memories"),
        ("create", "/memories/internal"),
        ("create", "/memories/internal/inbox"),
        ("delete", "/memories/internal/MEMORY.md"),
        ("rename", "/memories/internal/MEMORY.md"),
    ],
)
def test_check_5_reserved_names_are_kept(desk, command, path):
    desk.create("/memories/internal/MEMORY.md")
    more = {"create": {"file_text": "x\n"}, "delete": {}, "rename": {"to": A}}[command]
    assert desk.refusal(command, path, **more) in {"reserved", "path"}
    assert set(desk.tree()) == {"internal/MEMORY.md"}


def test_check_5_nothing_is_moved_onto_the_index_note(desk):
    desk.create(A)
    assert desk.refusal("rename", A, to="/memories/internal/MEMORY.md") == "reserved"


def test_check_4_a_class_above_the_clearance_is_absent_n12():
    for path in ("/memories/secret/x.md", "/memories/nonsense/x.md"):
        with pytest.raises(NotFound) as refused:
            names.parse(path, CLASSES, 1)
        assert refused.value.data == {"check": "not_found"}


def test_check_3_comes_before_check_4():
    """A hidden class and a class that is none are refused alike, whatever follows them."""
    for name in ("secret", "nonsense"):
        with pytest.raises(CheckFailed, match="has a part"):
            names.parse(f"/memories/{name}/.x.md", CLASSES, 1)


@pytest.mark.parametrize("path", ["/memories", "/memories/"])
def test_the_root_is_the_folder_of_all_classes(path):
    assert names.parse(path, CLASSES, 0) is None


def test_a_folder_may_end_in_a_slash():
    assert names.parse("/memories/internal/a/", CLASSES, 3) == Place(1, ("a",))


def test_check_6_twins_that_differ_in_case_are_refused(desk):
    desk.create("/memories/internal/Build/a.md")
    assert desk.refusal("create", "/memories/internal/build/b.md", file_text="x") == "exists"
    assert desk.refusal("create", "/memories/internal/Build/A.md", file_text="x") == "exists"
    desk.create("/memories/private/build/b.md")  # in another class it reveals nothing
    assert (
        desk.refusal("rename", "/memories/private/build/b.md", to="/memories/private/Build/c.md")
        == "exists"
    )
