"""What a call's arguments name: paths, and the words of shell commands. Lexically; the disk is never asked.

In: the decoded arguments of one call, and whether the tool is a shell. Out: `Named`: the texts that may be
paths, and the shell words among them. Path rules are matched on these and on nothing else, so that a session
does not turn secret by mentioning a file: content, messages, search patterns and descriptions are no paths.
Where it is unclear, it counts as a path, since a rule can only raise.

What counts (docs/labels.md says it for users):

- under a key that says so (`file_path`, `cwd`, `paths`, ...): any value of one line, whole and in its parts;
- under a key of prose (`content`, `description`, `pattern`, ...): nothing;
- under any other key: a value without spaces that holds a slash, a dot or a tilde;
- in shell commands: each word after POSIX splitting and its parts around ``= : , ; | & < > ( )`` and quotes
  (where the quotes do not close, each run without spaces); scripts inside words (`bash -c "..."`, `$(...)`)
  are split again; the text that `cat`, `tee` or a patch tool takes from a here-document is content;
- in patches: their file lines. An `http(s)` address is no path.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeGuard
from urllib.parse import unquote

from memoryd import commands

PROSE, PATH, WORDS, OTHER = range(1, 5)
"""What the values under a key are."""

_MAX_PATH = 4096
"""PATH_MAX of Linux: what is longer names no file."""

_MAX_DEPTH = 4
_MAX_BASES, _MAX_JOINED = 8, 10_000

_PATH_KEY = re.compile(
    r"(?:path|(?<!pro)file|filename|dir|director(?:y|ie)|folder|cwd|root|uri|glob|include|exclude"
    r"|notebook)s?\Z|(?:source|destination)\Z"
)
_BASE_KEY = re.compile(r"(?:cwd|workdir|workingdir|workingdirectory|path|root|dir|directory)\Z")
_WORDS_KEY = re.compile(r"(?:cmd|command|script)s?|commandline|shellcommand")
_PROSE_KEY = re.compile(
    r"contents?|text|body|messages?|prompt|quer(?:y|ies)|pattern|regex|search|questions?|subject|summary"
    r"|thoughts?|notes?|(?:old|new|insert)(?:str|string|source|text)|filetext|code|activeform|todos?|plan"
    r"|header|label|options|answers?|description|justification|reason|explanation|title|purpose|steps?"
)
_SHELL_PROSE_KEY = re.compile(
    r"description|justification|reason|explanation|title|purpose|thoughts?"
)

_VARIABLE = re.compile(r"\$\{?(\w+)\}?(?=/|\Z)")
_BRACED = re.compile(r"\$\{(\w+)\}")
_SPACE = re.compile(r"\s")
_SCRIPT_FOLLOWS = re.compile(r"-\w*[ce]|--?(?:command|eval|exec|print)|/c", re.IGNORECASE)
_RUNS_ITS_WORDS = frozenset(("eval", "ssh", "su", "watch", "xargs", "parallel", "trap"))
_MOVES = frozenset(("cd", "pushd", "-C", "--chdir", "--directory"))


class Reading(NamedTuple):
    """How a tool's arguments are read."""

    shell: bool = False
    """They hold shell words, wherever their keys do not say otherwise."""
    globs: bool = False
    """The key `pattern` holds a glob of paths."""


class Named:
    """What the arguments of one call name."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.paths: list[str] = []
        """Texts that may be paths, as written."""
        self.words: list[str] = []
        """Words of shell commands, without spaces in them."""
        self.bases: list[str] = []
        """Folders that relative paths may start from."""

    def places(self) -> Iterator[str]:
        """Yield every path once, then every relative one below each folder named beside it."""
        paths = [path for path in dict.fromkeys(self.paths) if len(path) <= _MAX_PATH]
        yield from paths
        for base in self.bases[:_MAX_BASES]:
            for path in paths[:_MAX_JOINED]:
                if not path.startswith(("/", "~", "$")):
                    yield f"{base}/{path}"

    def text(self, text: str, kind: int) -> None:
        """Take one argument value."""
        if kind == WORDS:
            self.script(text, 0)
        elif kind == PATH and "\n" not in text:
            self.paths.append(commands.ADDRESS.sub("", text))
            for run in text.split():
                self.paths.extend(commands.parts(run))
        elif kind != PROSE:
            if _SPACE.search(text):
                self.paths.extend(commands.patch_files(text))
            elif any(mark in text for mark in "/.~\\"):
                self.paths.extend(commands.parts(text))

    def script(self, text: str, depth: int) -> None:
        """Take a shell command of any number of lines."""
        text = _BRACED.sub(r"$\1", text.replace("\\\n", ""))
        self.paths.extend(commands.patch_files(text))
        text = "\n".join(commands.without_content(text))
        self.argv(commands.words(text), depth)
        if ":\\" in text:  # POSIX splitting eats the backslashes of C:\Users
            self.argv(text.replace("\\", "/").split(), _MAX_DEPTH)

    def argv(self, words: list[str], depth: int) -> None:
        """Take the words of a command; a word that is itself a script is split again."""
        before, runs = "", False
        for word in words:
            if not _SPACE.search(word):
                parts = commands.parts(word)
                self.paths.extend(parts)
                self.words.extend(parts)
                if before in _MOVES:
                    self.bases.append(word)
            else:
                self._spaced(word, depth, is_script=runs or bool(_SCRIPT_FOLLOWS.fullmatch(before)))
            runs = runs or posixpath.basename(word) in _RUNS_ITS_WORDS
            before = word

    def _spaced(self, word: str, depth: int, *, is_script: bool) -> None:
        """Take a quoted word with spaces: a path as a whole, a patch, or a script."""
        self.paths.extend(
            commands.patch_files(word) if "\n" in word else [commands.ADDRESS.sub(" ", word)]
        )
        if depth < _MAX_DEPTH:
            for script in [word] if is_script else list(commands.substitutions(word)):
                self.script(script, depth + 1)


def named(args: object, how: Reading) -> Named:
    """Return what `args` (decoded JSON, or raw text) names, read as `how` says."""
    found = Named()
    if isinstance(args, str) and not how.shell and (files := commands.patch_files(args)):
        found.paths.extend(files)
        return found
    stack: list[tuple[object, int, bool]] = [(args, WORDS, False)]
    while stack:
        value, kind, base = stack.pop()
        if isinstance(value, str):
            found.text(value, kind)
            if base:
                found.bases.append(value)
        elif isinstance(value, dict):
            for key, item in value.items():
                own = below(kind, kind_of(key, how), how)
                stack.append((item, own, own == PATH and bool(_BASE_KEY.match(_plain(key)))))
        elif isinstance(value, list):
            if kind == WORDS and _is_argv(value):
                found.argv(value, 0)
            else:
                stack.extend((item, kind, False) for item in value)
    return found


def _is_argv(items: list[object]) -> TypeGuard[list[str]]:
    """Say whether a list is one command's words, and not a list of commands."""
    return all(isinstance(item, str) for item in items) and not _SPACE.search(str(*items[:1]))


def kind_of(key: str, how: Reading) -> int:
    """Return what the values under `key` are: PROSE, PATH, WORDS or OTHER (in a shell, WORDS)."""
    plain = _plain(key)
    if _PATH_KEY.search(plain) or (how.globs and plain == "pattern"):
        return PATH
    if _WORDS_KEY.fullmatch(plain):
        return WORDS
    if (_SHELL_PROSE_KEY if how.shell else _PROSE_KEY).fullmatch(plain):
        return PROSE
    return WORDS if how.shell else OTHER


def below(outer: int, inner: int, how: Reading) -> int:
    """Return what values under a key of kind `inner` are within a value of kind `outer`.

    What stands inside prose is prose, unless its own key says that it is a path or a command.
    """
    return PROSE if outer == PROSE and inner == (WORDS if how.shell else OTHER) else inner


def _plain(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def normal(path: str, variables: Mapping[str, str]) -> str:
    """Return `path` for comparing: folders for `~` and variables, no ``//``, ``.``, ``..``, no case (`fold`).

    `variables` maps ``HOME`` and the like to folders; one that it does not know stays as it is written.
    """
    if path[:5].lower() == "file:":
        path = unquote(path[5:])
    if path == "~" or path.startswith("~/"):
        path = f"{variables.get('HOME', '~')}{path[1:]}"
    elif (named := _VARIABLE.match(path)) and named[1] in variables:
        path = variables[named[1]] + path[named.end() :]
    path = posixpath.normpath(path.replace("\\", "/"))
    return fold("/" + path.lstrip("/") if path.startswith("//") else path)


def fold(text: str) -> str:
    """Return `text` without case and with one form for each accented letter (Unicode caseless matching)."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
