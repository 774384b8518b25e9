"""The quick look never misses: with it or without it, every call's label is the same."""

import re
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from memoryd import config
from memoryd.arguments import Reading, fold, named, normal
from memoryd.hints import Hints
from memoryd.profiles import PROFILES
from memoryd.records import Called
from memoryd.rules import Rules

OWNER = """
[[labels.tool]]
match = "Mystery*"
args = "known"
class = "private"
untrusted = true
[[labels.path]]
glob = "~/plans/**"
class = "private"
[[labels.path]]
glob = "/home/*/Mail/[ab]*"
class = "private"
[[labels.path]]
glob = "*/ada/letters"
class = "private"
"""


class Patient(Rules):
    """The same rules, taking every call's arguments apart and trying every path."""

    def __init__(self, settings: config.Config, *, state: Path, home: Path) -> None:
        super().__init__(settings, state=state, home=home)
        self._hints = Hints([""], None)  # every run hints at everything
        self._places.hint = None


SETTINGS = config.parse(OWNER, Path("/x.toml")).config
PLACES = {"state": Path("/home/ada/.local/state/memoryd"), "home": Path("/home/ada")}
QUICK, SLOW = Rules(SETTINGS, **PLACES), Patient(SETTINGS, **PLACES)

pieces = st.sampled_from([
    ".env", ".e", "nv", "'", '"', "\\", "\n", "\\\n", " ", "\t", "\u00a0", "/", "~", "$HOME", "${HOME}",
    "..", ".", "curl", "git", "clone", "http://", "https://x/", "plans", "Mail", "ada", "letters", "/home/",
    "node_modules", ".ssh", "id_rsa", "bxctl", "memoryd", "$MEMORYD_HOME", "notes", "secret", "bash", "-c",
    "cd", "eval", "$(", ")", "`", "<<EOF", "EOF", "cat", "*** Update File: ", "+++ b/", "a", "=", ";", ":",
    "file:", "%2Eenv", "C:\\", "É", "e\u0301", "İ",
])  # fmt: skip
texts = st.lists(pieces, max_size=9).map("".join)
keys = st.sampled_from([
    "command", "file_path", "content", "path", "pattern", "q", "cwd", "description", "curl", "todos",
])  # fmt: skip
trees = st.recursive(
    texts | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)
tools = st.sampled_from(["Read", "Bash", "shell", "Glob", "apply_patch", "mcp__x__y", "Mystery"])


@given(tools, trees)
@example("Bash", {"command": "cat ~/pl''ans/x"})
@example("Bash", {"command": "cd ~; cat letters"})
@example("Read", {"path": ["~", "letters"]})
@example("Read", {"file_path": "file:///home/ada/%70lans/x"})
def test_the_quick_look_changes_no_label(tool: str, args: object) -> None:
    assert QUICK.result(tool, args) == SLOW.result(tool, args)
    assert QUICK.paths(tool, args) == SLOW.paths(tool, args)


@given(st.lists(st.tuples(tools, trees, st.booleans()), max_size=20), st.booleans())
@example([("Mystery", {"q": word}, False) for word in ("known", "other")] * 5, False)
@example([("Bash", {"command": "curl x"}, False)] * 9, False)
@example([("Bash", {"description": "curl x"}, False)] * 9, False)
@example([("Read", {"paths": ["/w/.ssh/x"]}, False)] * 9, False)
@example(
    [("Bash", {"command": word}, False) for word in ("ls", "cat 'x\\", "\n.env'", "cu\\\nrl x")]
    * 3,
    False,
)
@example(
    [("Read", {"file_path": word}, False) for word in ("a", "É/.e'n'v", "~/plans/x", "$HOME/x")]
    * 3,
    True,
)
def test_many_calls_at_once_are_worth_what_each_is_alone(
    asked: list[tuple[str, object, bool]], stated: bool
) -> None:
    calls = [Called(0, None, tool, args, hosted) for tool, args, hosted in asked]
    assert QUICK.of_calls(calls, stated=stated) == [
        SLOW.hosted(call.tool, call.args)
        if call.hosted
        else (SLOW.paths if stated else SLOW.result)(call.tool, call.args)
        for call in calls
    ]


@given(texts)
def test_a_text_is_taken_apart_without_failing_and_normalised(text: str) -> None:
    for how in (Reading(), Reading(shell=True), Reading(globs=True)):
        for path in named({"command": text, "path": text, "q": text}, how).places():
            plain = normal(path, {"HOME": "/home/ada"})
            assert plain == fold(plain)
            assert "//" not in plain
            assert not plain.startswith("~/")


@given(st.lists(pieces, max_size=12).map(" ".join))
def test_whatever_a_profiles_pattern_matches_holds_its_hint(text: str) -> None:
    for profile in PROFILES.values():
        for row in profile.tools:
            if row.args is not None and row.hint is not None and re.search(row.args, text):
                assert any(re.search(row.hint, run) for run in text.split())
