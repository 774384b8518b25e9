"""The documentation is true: what it names exists, and what exists is named in it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from bxctl import shell
from memoryd import __main__, config, errors
from memoryd.serve import methods

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted(DOCS.rglob("*.md"))]
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))
LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def keys(struct: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """Yield every key of the configuration as its page writes it, such as ``labels.tool.match``."""
    for field in msgspec.structs.fields(struct):
        key = prefix + field.encode_name
        inner = [kind for kind in _types(field.type) if _is_struct(kind)]
        if not inner:
            yield key
        for kind in inner:
            yield from keys(kind, key + ".")


def _types(kind: Any) -> Iterator[Any]:
    yield kind
    for argument in getattr(kind, "__args__", ()):
        yield from _types(argument)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def commands(command: click.Command, path: str = "bxctl") -> Iterator[tuple[str, click.Command]]:
    """Yield every command that a person can type, with what it is."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, f"{path} {name}")


COMMANDS = dict(commands(shell.root()))
LEAVES = [path for path, command in COMMANDS.items() if not isinstance(command, click.Group)]


@pytest.mark.parametrize("key", list(keys(config.Config)))
def test_every_setting_is_documented(key: str):
    table, _, word = key.rpartition(".")
    text = page("configuration.md")
    assert f"`{word}`" in text or f"`{key}`" in text
    assert table in text


@pytest.mark.parametrize("method", sorted(methods.METHODS))
def test_every_method_is_documented(method: str):
    assert f"`{method}`" in page("protocol.md")


@pytest.mark.parametrize("code", sorted(errors.BY_CODE))
def test_every_error_code_is_documented(code: str):
    assert f"`{code}`" in page("protocol.md")


@pytest.mark.parametrize("command", LEAVES)
def test_every_command_is_documented(command: str):
    assert any(command in path.read_text("utf-8") for path in PAGES)


@pytest.mark.parametrize("command", LEAVES)
def test_every_json_output_is_documented(command: str):
    assert f"`{command}" in page("json-output.md")


@pytest.mark.parametrize("path", sorted((ROOT / "memoryd" / "migrations").rglob("*.sql")), ids=str)
def test_every_table_of_the_index_is_explained_where_it_is_made(path: Path):
    for table in re.findall(
        r"CREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?(\w+)", path.read_text()
    ):
        before = path.read_text().split(table)[0]
        assert "--" in before, f"{table} has no comment"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_make_target_named_exists(path: Path):
    named = re.findall(
        r"`make ([a-z][a-z-]*)`|^\s*\$? ?make ([a-z][a-z-]*)", path.read_text("utf-8"), re.MULTILINE
    )
    assert {one or other for one, other in named} <= TARGETS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_named_exists(path: Path):
    for words in re.findall(
        r"\bbxctl(?: --socket [a-z]+| --json)*((?: [a-z][a-z-]*)+)", path.read_text("utf-8")
    ):
        typed = _known_part(words.split())
        assert typed, f"bxctl{words}"


def _known_part(words: list[str]) -> bool:
    """Say whether some first words are a command; a group alone must not be followed by more words."""
    for end in range(len(words), 0, -1):
        command = COMMANDS.get(" ".join(["bxctl", *words[:end]]))
        if command is not None:
            return end == len(words) or not isinstance(command, click.Group)
    return False


FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^(?:\$ )?((?:[A-Z_]+=\S+ )*(?:bxctl|memoryd|make)(?: .*)?)$")
SHELLS = {"console", "sh", "bash", ""}
NAMES = {
    "ID": "abc",
    "LOG": "a.jsonl",
    "N": "3",
    "CLASS": "internal",
    "WORDS...": "words",
    "WHAT": "systemd",
}
"""What stands for the words that a page leaves open."""


def typed(text: str) -> Iterator[str]:
    """Yield each command line of ours that a page has one type: in blocks, and indented as one."""
    for language, block in FENCE.findall(text):
        for line in block.splitlines() if language in SHELLS else ():
            if (found := TYPED.match(line)) and (language != "console" or line.startswith("$ ")):
                yield found[1]
    for line in FENCE.sub("", text).splitlines():
        if line.startswith("    ") and (found := TYPED.match(line[4:])):
            yield found[1]


def mentioned(text: str) -> Iterator[str]:
    """Yield each command of ours in a sentence's code."""
    for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)):
        if TYPED.match(code) and "…" not in code:
            yield code


def calls(line: str) -> Iterator[list[str]]:
    """Yield the commands of a shell's line, each as its words: without comments, variables and where output goes."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.commenters, words.whitespace_split = "#", True
    found: list[str] = []
    for word in [*words, ";"]:
        if word and set(word) <= set("|&;<>()"):
            yield found
            found = []
        elif found or "=" not in word:
            found.append(NAMES.get(word, word))


def wrong(argv: list[str]) -> str:
    """Return what is wrong with a command of ours, nothing where it can be run as it stands."""
    name, *rest = argv
    try:
        if name == "bxctl":
            shell.parse(rest)
        elif name == "memoryd":
            __main__.parser().parse_args(rest)
        elif name == "make":
            targets = [word for word in rest if "=" not in word]
            unknown = {word.partition("=")[0] for word in rest if "=" in word}
            unknown -= set(re.findall(r"\b[A-Z]+\b", MAKEFILE))
            return " ".join(sorted({*targets} - TARGETS | unknown))
    except errors.BadRequest as error:
        return str(error)
    except SystemExit as end:
        return "refused" if end.code else ""
    return ""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_line_can_be_typed_as_it_stands(path: Path, capsys):
    text = path.read_text("utf-8")
    found = {(line, wrong(argv)) for line in typed(text) for argv in calls(line) if argv}
    assert {(line, why) for line, why in found if why} == set()
    named = {(line, wrong(argv)) for line in mentioned(text) for argv in calls(line) if argv}
    assert {(line, why) for line, why in named if why and not why.startswith("missing ")} == set()


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("$ bxctl --socket agent memory search x   # words", True),
        ("MEMORYD_HOME=/x bxctl status --json | jq .behind", True),
        ("memoryd --check-config && systemctl --user reload memoryd", True),
        ("make replay CORPUS=/logs", True),
        ("bxctl memory serch x", False),
        ("bxctl memory search x --limit many", False),
        ("ls; bxctl status --wach", False),
        ("memoryd --chek-config", False),
        ("make everything", False),
        ("make soak YEARS=2", False),
    ],
)
def test_a_line_that_cannot_be_typed_is_noticed(line: str, right: bool, capsys):
    assert all(not wrong(argv) for argv in calls(line.removeprefix("$ ")) if argv) == right


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path):
    links = LINK.findall(path.read_text("utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (path.parent / link).exists()] == []


def anchors(path: Path) -> set[str]:
    """Return what a page's headings are called in a link, as forges name them."""
    heads = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_into_a_page_leads_to_a_heading(path: Path):
    links = re.findall(r"\]\(([^):#]*\.md)?#([^)]+)\)", path.read_text("utf-8"))
    lost = [
        f"{page}#{head}"
        for page, head in links
        if head not in anchors(path.parent / page if page else path)
    ]
    assert lost == []


def test_every_page_is_in_the_index():
    index = page("README.md")
    assert [path.name for path in DOCS.glob("*.md") if f"({path.name})" not in index] == [
        "README.md"
    ]


def test_every_target_explains_itself():
    lines = re.findall(r"^([a-z][a-z-]*):(.*)$", MAKEFILE, re.MULTILINE)
    assert [target for target, rest in lines if "## " not in rest] == []


def test_readme_names_what_a_newcomer_needs():
    for command in ("make demo", "make run", "make gate"):
        assert command in README


def test_the_decision_on_one_table_a_class_is_written_down():
    assert any(
        "one FTS5 table" in path.read_text("utf-8") for path in (DOCS / "decisions").iterdir()
    )
