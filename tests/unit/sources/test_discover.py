"""Logs are found and told apart by what they hold; nothing is guessed, followed or waited for."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from memoryd import config
from memoryd.sources import ADAPTERS, Root, discover
from memoryd.sources.discover import Memory
from tests.support import logs

CLAUDE = logs.encoded(*logs.dated(logs.claude_user("hello")))
CODEX = logs.encoded(logs.codex_meta(), logs.codex_user("hello"))
NATIVE = logs.encoded(logs.native_session("n"), logs.native_owner("hello"))


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def looked(
    folder: Path, kind: str = "auto", memory: Memory | None = None, **more
) -> discover.Found:
    return discover.discover([Root(kind, folder, **more)], memory)


def found(folder: Path, **more) -> dict[str, str]:
    return {log.log: log.adapter.id for log in looked(folder, **more).logs}


def skipped(folder: Path, **more) -> dict[str, str]:
    return {str(one.path.relative_to(folder)): one.reason for one in looked(folder, **more).skipped}


def test_the_format_is_told_by_the_content_wherever_the_file_lies(tmp_path):
    put(tmp_path / "codex" / "a.jsonl", CLAUDE)
    put(tmp_path / "claude" / "deep" / "er" / "b.jsonl", CODEX)
    put(tmp_path / "c.jsonl", NATIVE)
    assert found(tmp_path) == {
        "c.jsonl": "native",
        "claude/deep/er/b.jsonl": "codex",
        "codex/a.jsonl": "claude-code",
    }


def test_damage_at_the_start_does_not_hide_the_format(tmp_path):
    put(tmp_path / "a.jsonl", b"\xef\xbb\xbf" + b"broken\n" + b"\0" * 9 + CLAUDE[:-1] + CLAUDE)
    put(tmp_path / "b.jsonl", b'{"kind":"owner","text":"\xff"}\n42\n{"n":1e999}\n' + NATIVE)
    assert found(tmp_path) == {"a.jsonl": "claude-code", "b.jsonl": "native"}


def test_a_first_line_too_long_to_read_does_not_hide_the_format(tmp_path):
    put(tmp_path / "a.jsonl", b'{"type":"user","x":"' + b"y" * (9 << 20) + b'"}\n' + CLAUDE)
    assert found(tmp_path) == {"a.jsonl": "claude-code"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b'{"type":"us',
        b'{"type":"mode","mode":"x"}\n',
        b"\xef\xbb\xbf",
    ],
)
def test_a_file_with_too_little_in_it_is_undecided_and_looked_at_again(content, tmp_path):
    log = put(tmp_path / "a.jsonl", content)
    memory: Memory = {}
    assert looked(tmp_path, memory=memory) == discover.Found(undecided=[log])
    log.write_bytes(content + (b"" if content.endswith(b"\n") else b"\n") + CLAUDE)
    assert [one.adapter.id for one in looked(tmp_path, memory=memory).logs] == ["claude-code"]


def test_a_header_that_several_formats_could_have_is_undecided(tmp_path):
    log = put(tmp_path / "a.jsonl", b'{"kind":"main","sessionId":"x"}\n')
    assert looked(tmp_path) == discover.Found(undecided=[log])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"type":"session","version":3,"id":"pi"}\n', "no format that is known"),
        (b'{"role":"user","content":"x"}\n', "no format that is known"),
        (b"words\nmore words\n", "holds no JSON object"),
        (b"[1]\n[2]\n", "holds no JSON object"),
    ],
)
def test_a_file_of_no_known_format_is_named(content, reason, tmp_path):
    put(tmp_path / "a.jsonl", content)
    assert found(tmp_path) == {}
    assert skipped(tmp_path) == {"a.jsonl": reason}


def test_a_single_record_among_others_claims_nothing(tmp_path):
    put(tmp_path / "a.jsonl", b'{"type":"message","id":"pi"}\n' * 2 + CLAUDE)
    assert skipped(tmp_path) == {"a.jsonl": "no format that is known"}


def test_the_first_sure_record_decides_whatever_comes_after_it(tmp_path):
    put(tmp_path / "a.jsonl", CLAUDE[: CLAUDE.index(b"\n") + 1])
    early = found(tmp_path)
    put(tmp_path / "a.jsonl", CLAUDE[: CLAUDE.index(b"\n") + 1] + CODEX * 20)
    assert found(tmp_path) == early == {"a.jsonl": "claude-code"}


def test_a_large_log_is_told_by_its_beginning(tmp_path, monkeypatch):
    put(tmp_path / "a.jsonl", CLAUDE * 20_000)
    taken = []

    def pread(descriptor: int, size: int, offset: int) -> bytes:
        taken.append(size)
        return os.pread(descriptor, size, offset)

    monkeypatch.setattr("memoryd.sources.lines.os", SimpleNamespace(pread=pread))
    assert found(tmp_path) == {"a.jsonl": "claude-code"}
    assert sum(taken) < 100_000


def test_a_source_that_holds_another_format_than_it_says_is_named(tmp_path):
    put(tmp_path / "a.jsonl", CODEX)
    assert found(tmp_path, kind="codex") == {"a.jsonl": "codex"}
    assert found(tmp_path, kind="native") == {}
    [reason] = skipped(tmp_path, kind="native").values()
    assert "codex" in reason
    assert "native" in reason


def test_compressed_logs_are_named_and_other_files_are_not(tmp_path):
    put(tmp_path / "a.jsonl.zst", b"x")
    put(tmp_path / "b.md", CLAUDE)
    put(tmp_path / "c.meta.json", b'{"agentType": "x"}')
    assert skipped(tmp_path) == {
        "a.jsonl.zst": "compressed logs are not read",
        "c.meta.json": "no format that is known",
    }
    assert found(tmp_path) == {}


# ---------------------------------------------------------------- what must not be followed


def test_links_are_followed_neither_to_files_nor_to_folders(tmp_path):
    outside = put(tmp_path / "outside" / "a.jsonl", CLAUDE)
    root = tmp_path / "root"
    root.mkdir()
    (root / "file.jsonl").symlink_to(outside)
    (root / "dangling.jsonl").symlink_to(root / "nowhere")
    (root / "folder").symlink_to(outside.parent)
    assert found(root) == {}
    assert skipped(root) == {"file.jsonl": "a symbolic link", "dangling.jsonl": "a symbolic link"}


def test_a_root_may_be_a_link_itself(tmp_path):
    put(tmp_path / "real" / "a.jsonl", CLAUDE)
    (tmp_path / "root").symlink_to(tmp_path / "real")
    assert found(tmp_path / "root") == {"a.jsonl": "claude-code"}


def test_pipes_sockets_and_folders_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.jsonl"))
        assert skipped(tmp_path) == {
            "pipe.jsonl": "not a regular file",
            "socket.jsonl": "not a regular file",
        }
    with pytest.raises(OSError, match="not a regular file"):
        discover.open_below(tmp_path, "pipe.jsonl")


def test_a_log_is_opened_through_no_link_below_the_root(tmp_path):
    put(tmp_path / "root" / "real" / "a.jsonl", CLAUDE)
    (tmp_path / "root" / "link").symlink_to("real")
    (tmp_path / "root" / "a.jsonl").symlink_to("real/a.jsonl")
    os.close(discover.open_below(tmp_path / "root", "real/a.jsonl"))
    for log in ("link/a.jsonl", "a.jsonl"):
        with pytest.raises(OSError, match=r"symbolic|directory"):
            discover.open_below(tmp_path / "root", log)


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_an_open_log_keeps_no_other_descriptor(tmp_path):
    put(tmp_path / "a" / "b" / "c.jsonl", CLAUDE)
    before = descriptors()
    [log] = discover.logs([Root("auto", tmp_path)])
    assert descriptors() == before
    opened = discover.open_log(log)
    try:
        assert os.pread(opened, 10, 0) == CLAUDE[:10]
        assert len(descriptors()) == len(before) + 1
    finally:
        os.close(opened)


def test_a_name_that_is_no_utf_8_is_named(tmp_path):
    put(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl")), CLAUDE)
    assert list(skipped(tmp_path).values()) == ["its name is not UTF-8"]


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """A folder of a user who may not read everything, which root may, and that user's rights."""
    with tempfile.TemporaryDirectory(prefix="md-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if os.geteuid() != 0:
            yield folder
            return
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(0)


def test_what_may_not_be_read_is_named_and_costs_only_itself(nobodys):
    put(nobodys / "a.jsonl", CLAUDE)
    put(nobodys / "b.jsonl", CLAUDE).chmod(0o000)
    put(nobodys / "closed" / "c.jsonl", CLAUDE).parent.chmod(0o000)
    try:
        assert found(nobodys) == {"a.jsonl": "claude-code"}
        assert skipped(nobodys) == {"b.jsonl": "permission denied", "closed": "permission denied"}
    finally:
        (nobodys / "closed").chmod(0o700)


# ---------------------------------------------------------------- what is wanted


def test_a_folder_that_is_not_there_holds_nothing(tmp_path):
    assert looked(tmp_path / "nowhere") == discover.Found()


def test_a_root_that_is_a_file_is_named(tmp_path):
    put(tmp_path / "a.jsonl", CLAUDE)
    assert [one.reason for one in looked(tmp_path / "a.jsonl").skipped] == ["not a directory"]


@pytest.mark.parametrize(
    "glob",
    ["*/scratch/*", "scratch/*", "*.jsonl", "scratch/x/a.jsonl", "{root}/scratch/*", "*/x/*"],
)
def test_excluded_logs_are_not_opened(glob, tmp_path):
    log = put(tmp_path / "scratch" / "x" / "a.jsonl", CLAUDE)
    memory: Memory = {}
    glob = glob.format(root=tmp_path)
    assert looked(tmp_path, memory=memory, exclude=(glob,)) == discover.Found()
    assert memory == {}
    assert discover.log_at(log, [Root("auto", tmp_path, exclude=(glob,))]) is None


@pytest.mark.parametrize("glob", ["scratch", "*/Scratch/*", "x/*", "a.jsonl", "/scratch/*.json"])
def test_other_globs_exclude_nothing(glob, tmp_path):
    put(tmp_path / "scratch" / "x" / "a.jsonl", CLAUDE)
    assert found(tmp_path, exclude=(glob,)) == {"scratch/x/a.jsonl": "claude-code"}


def test_a_file_in_two_roots_belongs_to_the_first(tmp_path):
    put(tmp_path / "a" / "b.jsonl", CLAUDE)
    outer, inner = Root("auto", tmp_path), Root("auto", tmp_path / "a")
    assert [log.root for log in discover.logs([outer, inner])] == [outer]
    assert [log.root for log in discover.logs([inner, outer])] == [inner]
    assert discover.log_at(tmp_path / "a" / "b.jsonl", [inner, outer]).root == inner


def test_a_known_file_that_only_grew_is_not_opened_again(tmp_path, monkeypatch):
    log = put(tmp_path / "a.jsonl", CLAUDE)
    put(tmp_path / "foreign.jsonl", b'{"x":1}\n')
    memory: Memory = {}
    first = looked(tmp_path, memory=memory)
    monkeypatch.setattr(discover, "open_below", lambda *_: pytest.fail("opened again"))
    with log.open("ab") as file:
        file.write(CLAUDE)
    assert looked(tmp_path, memory=memory) == first
    assert discover.log_at(log, [Root("auto", tmp_path)], memory) == first.logs[0]


@pytest.mark.parametrize("how", ["replaced", "shorter"])
def test_a_known_file_that_is_another_now_is_looked_at_again(how, tmp_path):
    log = put(tmp_path / "a.jsonl", CLAUDE * 9)
    memory: Memory = {}
    looked(tmp_path, memory=memory)
    if how == "replaced":
        put(tmp_path / "new", CODEX * 99).rename(log)
    else:
        log.write_bytes(CODEX)
    assert [one.adapter.id for one in looked(tmp_path, memory=memory).logs] == ["codex"]


def test_what_is_gone_is_forgotten(tmp_path):
    log = put(tmp_path / "a.jsonl", CLAUDE)
    memory: Memory = {}
    looked(tmp_path, memory=memory)
    log.unlink()
    looked(tmp_path, memory=memory)
    assert memory == {}


def test_one_log_is_found_as_all_are(tmp_path):
    put(tmp_path / "p" / "a.jsonl", CLAUDE)
    put(tmp_path / "p" / "foreign.jsonl", b'{"x":1}\n')
    roots = [Root("auto", tmp_path / "p")]
    assert [discover.log_at(tmp_path / "p" / "a.jsonl", roots)] == discover.logs(roots)
    for nothing in ("p", "p/b.jsonl", "p/foreign.jsonl", "other.jsonl", "p/a.md"):
        assert discover.log_at(tmp_path / nothing, roots) is None


# ---------------------------------------------------------------- roots, trust


def sources(*given: config.Source) -> list[Root]:
    env = {"HOME": "/home/ada"}
    return discover.roots(list(given), state=Path("/state"), home=Path("/home/ada"), env=env)


def test_a_source_that_names_the_own_sessions_says_which_are_wanted_and_how_they_start():
    said = config.Source("/state/sessions", "native", start="private", exclude=["*/scratch/*"])
    (root,) = sources(said)
    assert (root.kind, root.trusted, root.start) == ("native", True, "private")
    assert [log for log in ("p/a.jsonl", "scratch/a.jsonl") if discover.excluded(root, log)] == [
        "scratch/a.jsonl"
    ]


def test_without_configuration_the_harnesses_own_folders_are_read():
    env = {"HOME": "/home/ada"}
    roots = discover.roots(None, state=Path("/state"), home=Path("/home/ada"), env=env)
    assert [(root.kind, str(root.path), root.trusted) for root in roots] == [
        ("native", "/state/sessions", True),
        ("claude-code", "/home/ada/.claude/projects", False),
        ("codex", "/home/ada/.codex/sessions", False),
        ("codex", "/home/ada/.codex/archived_sessions", False),
        ("opencode", "/home/ada/.local/share/opencode", False),
        ("gemini", "/home/ada/.gemini/tmp", False),
        ("qwen", "/home/ada/.qwen/projects", False),
        ("pi", "/home/ada/.pi/agent/sessions", False),
        ("pi", "/home/ada/.openclaw/agents", False),
        ("copilot", "/home/ada/.copilot/session-state", False),
        ("cursor", "/home/ada/.cursor/projects", False),
        ("kimi", "/home/ada/.kimi/sessions", False),
        ("kimi", "/home/ada/.kimi-code/sessions", False),
        ("droid", "/home/ada/.factory/sessions", False),
        ("openhands", "/home/ada/.openhands/conversations", False),
        ("goose", "/home/ada/.local/share/goose/sessions", False),
        *(
            ("cline", f"/home/ada/{editor}/User/globalStorage/{extension}/tasks", False)
            for editor in (".config/Code", ".config/Cursor", ".vscode-server/data")
            for extension in ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline")
        ),
        ("cline", "/home/ada/.cline/data/tasks", False),
    ]


def test_configured_sources_replace_what_would_be_found_but_not_the_states_own_sessions():
    roots = sources(
        config.Source("~/logs", "codex", "internal", ["*/x/*"]),
        config.Source("/var/logs"),
        config.Source("/state/sessions", "auto"),
    )
    assert roots == [
        Root("native", Path("/state/sessions"), trusted=True),
        Root("codex", Path("/home/ada/logs"), "internal", ("*/x/*",)),
        Root("auto", Path("/var/logs")),
    ]


def test_no_root_that_contains_the_state_reads_what_memoryd_keeps_there(tmp_path):
    state = tmp_path / "state"
    put(state / "sessions" / "a.jsonl", NATIVE)
    put(state / "journal" / "journal.jsonl", NATIVE)
    put(tmp_path / "b.jsonl", NATIVE)
    roots = [Root("native", state / "sessions", trusted=True), Root("auto", tmp_path)]
    assert [str(log.path.relative_to(tmp_path)) for log in discover.logs(roots)] == [
        "state/sessions/a.jsonl",
        "b.jsonl",
    ]
    assert discover.log_at(state / "journal" / "journal.jsonl", roots) is None


def trusted(state: Path) -> list[bool]:
    roots = [Root("native", state / "sessions", trusted=True)]
    whole = [log.root.trusted for log in discover.logs(roots)]
    at = discover.log_at(state / "sessions" / "p" / "a.jsonl", roots)
    assert [at.root.trusted] == whole
    return whole


@pytest.mark.parametrize("widened", ["sessions", "sessions/p", "sessions/p/a.jsonl"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_labels_count_only_where_nobody_else_can_write(widened, mode, tmp_path):
    put(tmp_path / "sessions" / "p" / "a.jsonl", NATIVE)
    assert trusted(tmp_path) == [True]
    path = tmp_path / widened
    path.chmod(path.stat().st_mode | mode)
    assert trusted(tmp_path) == [False]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("given", ["sessions", "sessions/p", "sessions/p/a.jsonl"])
def test_labels_count_only_in_the_owners_own_files(given, tmp_path):
    put(tmp_path / "sessions" / "p" / "a.jsonl", NATIVE)
    os.chown(tmp_path / given, 65534, 65534)
    assert trusted(tmp_path) == [False]


def test_labels_count_nowhere_else(tmp_path):
    put(tmp_path / "a.jsonl", NATIVE)
    [log] = discover.logs([Root("auto", tmp_path)])
    assert (log.adapter, log.root.trusted) == (ADAPTERS["native"], False)
