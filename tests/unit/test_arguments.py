"""What arguments name: the words of commands, the files of patches, one spelling for each path."""

import pytest

from memoryd.arguments import Reading, named, normal
from memoryd.commands import parts, patch_files, substitutions, without_content, words

SHELL = Reading(shell=True)
VARIABLES = {"HOME": "/home/ada", "MEMORYD_HOME": "/srv/mem"}


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("/a/b", "/a/b"),
        ("//a///b/./c/../d/", "/a/b/d"),
        ("a/../../b", "../b"),
        ("", "."),
        ("~", "/home/ada"),
        ("~/x", "/home/ada/x"),
        ("~bob/x", "~bob/x"),
        ("$HOME/x", "/home/ada/x"),
        ("${HOME}/x", "/home/ada/x"),
        ("$HOMELESS/x", "$homeless/x"),
        ("$MEMORYD_HOME/notes", "/srv/mem/notes"),
        ("FILE:///A/b%20c", "/a/b c"),
        ("C:\\Users\\Ada", "c:/users/ada"),
        ("/STRASSE/ß", "/strasse/ss"),
        ("/e\u0301", "/é"),
    ],
)
def test_a_path_has_one_spelling(written, path):
    assert normal(written, VARIABLES) == path


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("cat 'a b' c", ["cat", "a b", "c"]),
        ("echo it's", ["echo", "it's"]),
        ("a\nb\tc", ["a", "b", "c"]),
        ("", []),
    ],
)
def test_a_command_is_split_as_a_shell_does_or_at_spaces(command, found):
    assert words(command) == found


def test_a_very_long_command_is_split_at_spaces():
    assert words("'a b' " * 20_000)[:2] == ["'a", "b'"]


def test_a_word_has_parts_and_addresses_have_none():
    assert parts("--file=a.py") == ["--file=a.py", "--file", "a.py"]
    assert parts("a.py") == ["a.py"]
    assert parts("https://x/y.pem") == []
    assert parts("url=HTTP://x/y,z.py") == ["url=", "url"]


def test_scripts_stand_in_substitutions_nested_or_not_closed():
    assert list(substitutions("a $(b $(c)) `d` e")) == ["b $(c)", "d"]
    assert list(substitutions("$(a b")) == ["a b"]
    assert list(substitutions("no script")) == []


def test_a_here_document_that_is_written_is_left_out_and_one_that_is_run_is_not():
    written = "cat > a <<'EOF'\nin\n  EOF\nafter"
    assert list(without_content(written)) == ["cat > a <<'EOF'", "  EOF", "after"]
    for run in (
        "bash <<X\nin\nX",
        "cat <<X | sh\nin\nX",
        "cat <<X\nin",
        "cat <<<X\nin\nX",
        "x << 2\nin\n2",
    ):
        assert "in" in list(without_content(run))
    assert list(without_content("cat <<X\na $(b)\nX")) == ["cat <<X", "b", "X"]
    assert list(without_content("cat <<'X'\na $(b)\nX")) == ["cat <<'X'", "X"]


def test_both_forms_of_patch_tell_their_files():
    assert patch_files("*** Begin Patch\n*** Add File: a b.py\n+x\n*** Move to: c.py\n") == [
        "a b.py",
        "c.py",
    ]
    assert patch_files("diff --git a/x b/y\n--- a/x\t2026\n+++ b/y\n@@\n-+++ z\n") == [
        "x",
        "y",
        "x",
        "y",
    ]
    assert patch_files("--- /dev/null\n+++ b/new\n") == ["/dev/null", "new"]
    assert patch_files("no *** Update File: x here\n++ y") == []


def test_relative_paths_are_also_tried_below_the_folders_named_beside_them():
    found = named({"cmd": "cd sub && cat x /y", "workdir": "/w"}, SHELL)
    places = set(found.places())
    assert {"x", "/y", "/w", "sub", "/w/x", "sub/x"} <= places
    assert "/w//y" not in places


def test_words_of_scripts_within_words_are_words():
    assert "b.py" in named({"command": "bash -c 'cat b.py'"}, SHELL).words
    assert "b.py" in named({"command": ["sh", "-c", "cat b.py"]}, SHELL).words
    assert "b.py" not in named({"command": "git commit -m 'cat b.py'"}, SHELL).words


def test_what_is_no_argument_object_is_read_too():
    for args in (None, 3, [], {}, "", True, 1.5):
        assert list(named(args, SHELL).places()) == []
    assert list(named("cat a.py", Reading()).places()) == ["cat", "a.py"]


def test_a_path_longer_than_a_system_takes_is_none():
    assert list(named({"file_path": "a/" * 2048}, Reading()).places()) == ["a/" * 2048]
    assert list(named({"file_path": "a/" * 2049}, Reading()).places()) == []
