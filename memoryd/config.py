"""The configuration: one TOML file, every key optional, every mistake named with its place.

In: the environment (where the file lies) and the file. Out: `Loaded`, frozen structs with every default
filled in, and the origin of each value. Unknown keys are refused, so that a typing mistake in `max_class`
cannot mean "no limit". Only the daemon and `bxctl` load it; everything else is handed values.
"""

import difflib
import hashlib
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.labels import Classes, LabelError

SOURCE_KINDS = (
    *("auto", "native", "claude-code", "codex", "opencode", "gemini", "qwen", "pi", "copilot"),
    *("cursor", "kimi", "droid", "aider", "swe-agent", "openhands", "goose", "cline"),
)
GRANTS = (
    *("*", "recall", "recall_open", "memory_view", "memory_create", "memory_str_replace"),
    *("memory_insert", "memory_delete", "memory_rename", "lesson_save", "lesson_query"),
    *("lesson_get", "lesson_recall", "lesson_status", "lesson_why", "lesson_config"),
    *("lesson_feedback", "lesson_trace", "lesson_audit"),
)
_SOCKET_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


class ToolRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a tool's result is worth: `match` globs its name, `args` (a regex) its arguments."""

    match: str
    args: str | None = None
    cls: str = msgspec.field(name="class", default="")
    untrusted: bool = True


class PathRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A class (or `untrusted`) joined onto a result whose call names a path matching `glob`."""

    glob: str
    cls: str | None = msgspec.field(name="class", default=None)
    untrusted: bool = False


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The classes, and the rules that label results."""

    classes: list[str] = msgspec.field(
        default_factory=lambda: ["public", "internal", "private", "secret"]
    )
    profile: Literal["coding", "strict"] = "coding"
    start: str = ""
    tool: list[ToolRule] = []
    path: list[PathRule] = []


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the index may hold, and for how long."""

    max_class: str = ""
    vanished: Literal["keep", "drop"] = "keep"
    keep_days: int = 0


class Lessons(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a session that says nothing counts as idle."""

    idle_after_s: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 900


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folder of session logs."""

    path: str
    kind: str = "auto"
    start: str | None = None
    exclude: list[str] = []


class Socket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A socket: whoever can connect to it may do what it grants, up to its clearance."""

    name: str
    clearance: str
    tools: list[str]
    untrusted: Literal["include", "owner-only", "exclude"] = "include"
    projects: list[str] = msgspec.field(default_factory=lambda: ["*"])
    uids: list[int] = []
    path: str | None = None
    group: str | None = None
    unnamed: str | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. `source` None: the harnesses' own folders are found."""

    labels: Labels = Labels()
    index: Index = Index()
    lessons: Lessons = Lessons()
    source: list[Source] | None = None
    socket: list[Socket] = []


class Loaded(msgspec.Struct, frozen=True):
    """A checked configuration with every default filled in, and where each value came from.

    `origins` maps dotted keys (``labels.tool[0].match``) to ``default`` or ``FILE:LINE``.
    """

    config: Config
    path: Path | None
    origins: dict[str, str]


def load(env: Mapping[str, str]) -> Loaded:
    """Read and check the configuration that `env` names or implies.

    Raises: ConfigError naming file, line, key and what would be right.
    """
    path = paths.config_path(env)
    if path is None:
        return Loaded(_Checked(Config(), Place("", "")).config, None, {})
    named = bool(env.get("MEMORYD_CONFIG"))
    try:
        text = _read_private(path)
    except FileNotFoundError:
        if named:
            raise ConfigError(
                f"{path}: no such file", remedy="create it or unset MEMORYD_CONFIG"
            ) from None
        return Loaded(_Checked(Config(), Place("", "")).config, None, {})
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", remedy="make it readable for you") from None
    return parse(text, path)


def parse(text: str, path: Path) -> Loaded:
    """Check the text of a configuration file. Raises: ConfigError as `load` does."""
    place = Place(str(path), text)
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}", remedy="correct the TOML at that place") from None
    try:
        config = msgspec.convert(tree, Config)
    except msgspec.ValidationError as error:
        raise _explained(str(error), place) from None
    return Loaded(_Checked(config, place).config, path, place.origins(tree))


def _read_private(path: Path) -> str:
    """Return the file's text. Raises: ConfigError when others may write it; OSError."""
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path} is not a regular file", remedy="put a TOML file there")
        if found.st_uid not in (os.geteuid(), 0) or found.st_mode & 0o022:
            raise ConfigError(
                f"{path} can be written by others, who could raise their own clearance",
                remedy=f"run: chmod go-w '{path}' (and own it)",
            )
        try:
            return file.read().decode("utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"{path}: byte {error.start} is not UTF-8", remedy="save the file as UTF-8"
            ) from None


class Place:
    """Finds the line of a key, since TOML parsers tell lines only for broken syntax."""

    def __init__(self, name: str, text: str) -> None:
        """Index the keys of `text`, the content of the file called `name`."""
        self.name = name
        self._lines: dict[str, int] = {}
        counts: dict[str, int] = {}
        table = ""
        for number, line in enumerate(text.splitlines(), 1):
            if header := re.match(r"\s*(\[\[?)\s*([\w.\"' -]+?)\s*\]\]?\s*(?:#.*)?$", line):
                table = header[2].replace(" ", "").replace('"', "").replace("'", "")
                if header[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    table = f"{table}[{counts[table]}]"
                self._lines.setdefault(table, number)
            elif key := re.match(r"\s*([\w\"'.-]+)\s*=", line):
                word = key[1].replace('"', "").replace("'", "")
                self._lines.setdefault(f"{table}.{word}" if table else word, number)

    def of(self, key: str) -> str:
        """Return ``FILE:LINE`` for a dotted key, or for the nearest thing around it."""
        probe = key
        while probe:
            if probe in self._lines:
                return f"{self.name}:{self._lines[probe]}"
            shorter = re.sub(r"(\[\d+\]|\.[^.\[]+)$", "", probe)
            probe = "" if shorter == probe else shorter
        return self.name or "the built-in configuration"

    def origins(self, tree: object, key: str = "") -> dict[str, str]:
        """Return dotted key to ``FILE:LINE`` for every value that the file gives."""
        found: dict[str, str] = {}
        if isinstance(tree, dict):
            for name, value in tree.items():
                found |= self.origins(value, f"{key}.{name}" if key else name)
        elif isinstance(tree, list) and tree and all(isinstance(item, dict) for item in tree):
            for number, item in enumerate(tree):
                found |= self.origins(item, f"{key}[{number}]")
        else:
            found[key] = self.of(key)
        return found


def _explained(problem: str, place: Place) -> ConfigError:
    """Turn a validator's sentence into file, line, key and what would be right."""
    message, _, where = problem.partition(" - at `$")
    key = where.rstrip("`").lstrip(".")
    if unknown := re.search(r"unknown field `(.*)`", message):
        full = f"{key}.{unknown[1]}" if key else unknown[1]
        known = _known_keys(key)
        near = difflib.get_close_matches(unknown[1], known, 1)
        hint = f"did you mean `{near[0]}`?" if near else "known here: " + ", ".join(known)
        return ConfigError(f"{place.of(full)}: unknown key `{full}`", remedy=hint, key=full)
    wanted = message.replace("`", "").replace("Object missing required field", "missing key")
    return ConfigError(
        f"{place.of(key)}: `{key or 'file'}`: {wanted[0].lower()}{wanted[1:]}",
        remedy="see docs/configuration.md for its type",
        key=key,
    )


def _known_keys(key: str) -> list[str]:
    tables: dict[str, type[msgspec.Struct]] = {
        "": Config,
        "labels": Labels,
        "labels.tool": ToolRule,
        "labels.path": PathRule,
        "index": Index,
        "source": Source,
        "socket": Socket,
    }
    struct = tables.get(re.sub(r"\[(\d+|\.\.\.)\]", "", key), Config)
    return [field.encode_name for field in msgspec.structs.fields(struct)]


class _Checked:
    """Fills in the defaults that depend on other keys and checks what types cannot say."""

    def __init__(self, config: Config, place: Place) -> None:
        self.place = place
        try:
            self.classes = Classes(config.labels.classes)
        except LabelError as error:
            raise self.wrong(
                "labels.classes", str(error), "list 1 to 8 names, low to high"
            ) from None
        labels = self.labels(config.labels)
        index = self.index(config.index)
        sources = self.sources(config.source)
        sockets = self.sockets(config.socket)
        self.config = Config(labels, index, config.lessons, sources, sockets)

    def wrong(self, key: str, problem: str, remedy: str) -> ConfigError:
        return ConfigError(f"{self.place.of(key)}: `{key}`: {problem}", remedy=remedy, key=key)

    def class_name(self, key: str, name: str) -> str:
        if name not in self.classes.names:
            raise self.wrong(
                key, f"no class {name!r}", f"choose one of {', '.join(self.classes.names)}"
            )
        return name

    def labels(self, labels: Labels) -> Labels:
        start = self.class_name("labels.start", labels.start or self.classes.names[0])
        for number, rule in enumerate(labels.tool):
            key = f"labels.tool[{number}]"
            self.class_name(f"{key}.class", rule.cls)
            if rule.args is not None:
                self.regex(f"{key}.args", rule.args)
        for number, path in enumerate(labels.path):
            key = f"labels.path[{number}]"
            if path.cls is not None:
                self.class_name(f"{key}.class", path.cls)
            elif not path.untrusted:
                raise self.wrong(
                    key, "raises nothing", "give it a class, untrusted = true, or both"
                )
        return msgspec.structs.replace(labels, start=start)

    def regex(self, key: str, pattern: str) -> None:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise self.wrong(key, f"no regular expression: {error}", "correct it") from None

    def index(self, index: Index) -> Index:
        name = index.max_class or ("private" if "private" in self.classes.names else "")
        if not name:
            raise self.wrong(
                "index.max_class",
                "has no default for these classes",
                f"set it to one of {', '.join(self.classes.names)}",
            )
        if not 0 <= index.keep_days <= 36_500:
            raise self.wrong(
                "index.keep_days", "out of range", "give days from 0 (for ever) to 36500"
            )
        return msgspec.structs.replace(index, max_class=self.class_name("index.max_class", name))

    def sources(self, sources: list[Source] | None) -> list[Source] | None:
        for number, source in enumerate(sources or []):
            key = f"source[{number}]"
            if source.kind not in SOURCE_KINDS:
                raise self.wrong(
                    f"{key}.kind",
                    f"no such kind {source.kind!r}",
                    f"choose one of {', '.join(SOURCE_KINDS)}",
                )
            if not source.path.startswith(("/", "~/")) and source.path != "~":
                raise self.wrong(f"{key}.path", "is not absolute", "start it with / or ~/")
            if source.start is not None:
                self.class_name(f"{key}.start", source.start)
        return sources

    def sockets(self, sockets: list[Socket]) -> list[Socket]:
        if not sockets:
            names = self.classes.names
            agents = "internal" if "internal" in names else names[0]
            return [
                Socket("memoryd", names[-1], ["*"]),
                Socket("agent", agents, ["recall", "memory_view", "memory_create"]),
            ]
        seen: set[str] = set()
        for number, socket in enumerate(sockets):
            self.socket(f"socket[{number}]", socket)
            if socket.name in seen:
                raise self.wrong(f"socket[{number}].name", "is used twice", "give each its own")
            seen.add(socket.name)
        return sockets

    def socket(self, key: str, socket: Socket) -> None:
        if not _SOCKET_NAME.fullmatch(socket.name):
            raise self.wrong(f"{key}.name", "is no socket name", "use a-z, 0-9, - and _")
        self.class_name(f"{key}.clearance", socket.clearance)
        if socket.unnamed is not None:
            unnamed = self.class_name(f"{key}.unnamed", socket.unnamed)
            if self.classes.level(unnamed) < self.classes.level(socket.clearance):
                raise self.wrong(f"{key}.unnamed", "is below the clearance", "raise it to that")
        for tool in socket.tools:
            if tool not in GRANTS:
                near = difflib.get_close_matches(tool, GRANTS, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(GRANTS)}"
                raise self.wrong(f"{key}.tools", f"no such grant {tool!r}", hint)
        if not socket.projects:
            raise self.wrong(f"{key}.projects", "is empty", 'leave it out, or write ["*"]')
        if any(uid < 0 for uid in socket.uids):
            raise self.wrong(f"{key}.uids", "holds a negative number", "list numeric user ids")
        if socket.path is not None and not socket.path.startswith("/"):
            raise self.wrong(f"{key}.path", "is not absolute", "start it with /")


def effective(loaded: Loaded) -> list[tuple[str, object, str]]:
    """Return (dotted key, value, origin) of every setting in force, in the file's own order."""
    rows: list[tuple[str, object, str]] = []

    def walk(tree: object, key: str) -> None:
        if isinstance(tree, dict):
            for name, value in tree.items():
                walk(value, f"{key}.{name}" if key else name)
        elif isinstance(tree, list) and tree and all(isinstance(item, dict) for item in tree):
            for number, item in enumerate(tree):
                walk(item, f"{key}[{number}]")
        else:
            rows.append((key, tree, loaded.origins.get(key, "default")))

    walk(msgspec.to_builtins(loaded.config), "")
    return rows


def fingerprint(loaded: Config) -> str:
    """Return 16 hexadecimal digits that differ between two configurations that say different things."""
    content = msgspec.json.encode(loaded, order="sorted")
    return hashlib.blake2b(content, digest_size=8).hexdigest()
