"""The configuration: defaults, and every mistake named with file, line, key and what would be right."""

from pathlib import Path

import msgspec
import pytest

from memoryd import config
from memoryd.errors import ConfigError

FILE = Path("/etc/somewhere/memoryd.toml")


def test_defaults_are_the_documented_ones(tmp_path: Path) -> None:
    loaded = config.load({"HOME": str(tmp_path)})
    assert loaded.path is None
    assert loaded.config.labels.classes == ["public", "internal", "private", "secret"]
    assert (loaded.config.labels.start, loaded.config.labels.profile) == ("public", "coding")
    assert loaded.config.index == config.Index("private", "keep", 0)
    assert loaded.config.source is None
    owner, agent = loaded.config.socket
    assert (owner.name, owner.clearance, owner.tools) == ("memoryd", "secret", ["*"])
    assert (agent.name, agent.clearance) == ("agent", "internal")
    assert agent.tools == ["recall", "memory_view", "memory_create"]


def test_a_socket_table_replaces_both_defaults() -> None:
    text = '[[socket]]\nname = "one"\nclearance = "public"\ntools = ["recall"]\n'
    assert [socket.name for socket in config.parse(text, FILE).config.socket] == ["one"]


MISTAKES = {
    "C03 typo of a key": ('[index]\nmax_clas = "private"', 2, "index.max_clas", "max_class"),
    "C04 unknown max_class": ('[index]\nmax_class = "Secret"', 2, "index.max_class", "secret"),
    "C10 negative days": ("[index]\nkeep_days = -1", 2, "index.keep_days", "0"),
    "wrong type": ('[index]\nkeep_days = "x"', 2, "index.keep_days", "docs/configuration.md"),
    "unknown profile": ('[labels]\nprofile = "lax"', 2, "labels.profile", "docs/configuration.md"),
    "unknown start": ('[labels]\n\nstart = "low"', 3, "labels.start", "public"),
    "class name form": ('[labels]\nclasses = ["Public"]', 2, "labels.classes", "low to high"),
    "class twice": ('[labels]\nclasses = ["a", "a"]', 2, "labels.classes", "low to high"),
    "nine classes": (f"[labels]\nclasses = {list('abcdefghi')}", 2, "labels.classes", "1 to 8"),
    "rule without class": ('[[labels.tool]]\nmatch = "x"', 1, "labels.tool[0].class", "public"),
    "rule's regex": (
        '[[labels.tool]]\nmatch = "x"\nclass = "public"\nargs = "("',
        4,
        "labels.tool[0].args",
        "correct it",
    ),
    "path rule that does nothing": ('[[labels.path]]\nglob = "x"', 1, "labels.path[0]", "class"),
    "source without path": ('[[source]]\nkind = "auto"', 1, "source[0]", "docs/configuration.md"),
    "source kind": ('[[source]]\npath = "/x"\nkind = "vim"', 3, "source[0].kind", "codex"),
    "relative source": ('[[source]]\npath = "logs"', 2, "source[0].path", "/"),
    "source start": ('[[source]]\npath = "/x"\nstart = "no"', 3, "source[0].start", "public"),
    "second socket's grant": (
        (
            '[[socket]]\nname = "a"\nclearance = "public"\ntools = []\n'
            '[[socket]]\nname = "b"\nclearance = "public"\ntools = ["recal"]'
        ),
        8,
        "socket[1].tools",
        "recall",
    ),
    "socket twice": (
        '[[socket]]\nname = "a"\nclearance = "public"\ntools = []\n' * 2,
        6,
        "socket[1].name",
        "own",
    ),
    "socket name": (
        '[[socket]]\nname = "../x"\nclearance = "public"\ntools = []',
        2,
        "socket[0].name",
        "a-z",
    ),
    "socket clearance": (
        '[[socket]]\nname = "a"\nclearance = "top"\ntools = []',
        3,
        "socket[0].clearance",
        "secret",
    ),
    "a lesson's tool that is none": (
        '[[socket]]\nname = "a"\nclearance = "public"\ntools = ["lesson_qurey"]',
        4,
        "socket[0].tools",
        "lesson_query",
    ),
    "class of unnamed sessions": (
        '[[socket]]\nname = "a"\nclearance = "public"\ntools = []\nunnamed = "top"',
        5,
        "socket[0].unnamed",
        "secret",
    ),
    "unnamed sessions below what they may read": (
        '[[socket]]\nname = "a"\nclearance = "private"\ntools = []\nunnamed = "internal"',
        5,
        "socket[0].unnamed",
        "raise it",
    ),
    "socket without projects": (
        '[[socket]]\nname = "a"\nclearance = "public"\ntools = []\nprojects = []',
        5,
        "socket[0].projects",
        "leave it out",
    ),
    "negative uid": (
        '[[socket]]\nname = "a"\nclearance = "public"\ntools = []\nuids = [-1]',
        5,
        "socket[0].uids",
        "numeric",
    ),
    "relative socket path": (
        '[[socket]]\nname = "a"\nclearance = "public"\ntools = []\npath = "x"',
        5,
        "socket[0].path",
        "/",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_names_file_line_key_and_what_would_be_right_c03_c04_c10(name: str) -> None:
    text, line, key, remedy = MISTAKES[name]
    with pytest.raises(ConfigError) as caught:
        config.parse(text, FILE)
    assert f"{FILE}:{line}: " in caught.value.message
    assert f"`{key}`" in caught.value.message
    assert remedy in caught.value.remedy
    assert caught.value.exit_code == 78


def test_c02_broken_toml_names_line_and_column() -> None:
    with pytest.raises(ConfigError, match=r"line 2, column 1"):
        config.parse("[index]\n=", FILE)


def test_classes_of_ones_own_need_a_max_class_of_ones_own() -> None:
    with pytest.raises(ConfigError, match=r"index\.max_class"):
        config.parse('[labels]\nclasses = ["low", "high"]', FILE)
    loaded = config.parse('[labels]\nclasses = ["low", "high"]\n[index]\nmax_class = "low"', FILE)
    assert [socket.clearance for socket in loaded.config.socket] == ["high", "low"]
    assert loaded.config.labels.start == "low"


def test_c06_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memoryd.toml"
    path.write_text("")
    path.chmod(0o666)
    with pytest.raises(ConfigError, match="written by others"):
        config.load({"HOME": str(tmp_path), "MEMORYD_CONFIG": str(path)})
    path.chmod(0o600)
    assert config.load({"HOME": str(tmp_path), "MEMORYD_CONFIG": str(path)}).path == path


def test_c01_a_named_file_must_exist_and_an_implied_one_need_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        config.load({"HOME": str(tmp_path), "MEMORYD_CONFIG": str(tmp_path / "none.toml")})
    assert config.load({"HOME": str(tmp_path)}).origins == {}


def test_bad_utf8_and_a_folder_are_named(tmp_path: Path) -> None:
    path = tmp_path / "memoryd.toml"
    path.write_bytes(b"# \xff")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="byte 2 is not UTF-8"):
        config.load({"HOME": str(tmp_path), "MEMORYD_CONFIG": str(path)})
    with pytest.raises(ConfigError):
        config.load({"HOME": str(tmp_path), "MEMORYD_CONFIG": str(tmp_path)})


def test_effective_tells_every_value_and_its_origin() -> None:
    loaded = config.parse('[index]\nmax_class = "internal"\n', FILE)
    rows = {key: (value, origin) for key, value, origin in config.effective(loaded)}
    assert rows["index.max_class"] == ("internal", f"{FILE}:2")
    assert rows["index.vanished"] == ("keep", "default")
    assert rows["socket[1].clearance"] == ("internal", "default")


@pytest.mark.parametrize(
    "struct", [config.Labels, config.Index, config.Source, config.Socket, config.ToolRule]
)
def test_every_table_refuses_unknown_keys(struct: type[msgspec.Struct]) -> None:
    assert struct.__struct_config__.forbid_unknown_fields
