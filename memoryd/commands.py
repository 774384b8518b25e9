"""Shell commands and patches, taken apart as text: words, scripts inside words, files of a patch.

In: a command or a patch. Out: its words, parts of words, scripts, file names. Nothing is run and no shell is
imitated beyond POSIX splitting; what is asked is only which names stand in a text where a shell would take
them for names. The text that `cat`, `tee`, `git commit` or a patch tool takes from a here-document is content
that is written, not run, and names nothing.
"""

import re
import shlex
from bisect import bisect_left
from collections.abc import Iterator

_MAX_SPLIT = 64 * 1024
"""Commands longer than this are cut at spaces only: shlex takes microseconds a character."""

ADDRESS = re.compile(r"https?://[^\s\"']*", re.IGNORECASE)
_PARTS = re.compile(r"[=:,;|&<>(){}@\"'`*?]+")
_HERE = re.compile(r"(?<!<)<<-?(?!<)\s*(['\"]?)([\w.+-]+)\1")
_TAKES_CONTENT = re.compile(
    r"(?:^|[\s;&(`])(?:cat|tee|apply_?patch|patch|git\s+(?:apply|commit|tag|notes))\b"
)
_RUNS_CONTENT = re.compile(
    r"\||\b(?:bash|sh|zsh|dash|ksh|fish|eval|source|exec|ssh|su|sudo|xargs|python[\d.]*|node|perl|ruby|php)\b"
)
_PATCH_MARK = re.compile(r"^(?:\*\*\* |\+\+\+ |--- |diff --git |rename (?:from|to) )", re.MULTILINE)
_PATCH_FILE = re.compile(
    r"^(?:\*\*\* (?:(?:Add|Update|Delete) File|Move to):|\+\+\+|---|rename (?:from|to)) +(?P<one>\S[^\n\t]*)"
    r"|^diff --git (?P<two>\S[^\n]*)",
    re.MULTILINE,
)


def words(text: str) -> list[str]:
    """Return the words of a command after POSIX splitting, or its runs without spaces where that fails."""
    if len(text) > _MAX_SPLIT:
        return text.split()
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def parts(word: str) -> list[str]:
    """Return a word without spaces, and what stands between its separators; addresses are left out."""
    word = ADDRESS.sub("", word)
    found = [part for part in _PARTS.split(word) if part]
    return found if found in ([word], []) else [word, *found]


def substitutions(text: str) -> Iterator[str]:
    """Yield what stands in ``$(...)`` and in backquotes; where one does not close, the rest of the text."""
    at = text.find("$(")
    while at >= 0:
        end, open_ = at + 2, 1
        while end < len(text) and open_:
            open_ += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield text[at + 2 : end - 1 if not open_ else end]
        at = text.find("$(", end)
    yield from text.split("`")[1::2]


def without_content(text: str) -> Iterator[str]:
    """Yield the lines of a script without the here-documents that are written or committed, not run."""
    if "<<" not in text or len(text) > _MAX_SPLIT:
        yield text
        return
    lines = text.split("\n")
    places: dict[str, list[int]] = {}
    for n, line in enumerate(lines):
        places.setdefault(line.strip().rstrip(")\"'`;"), []).append(n)
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        yield line
        here = _HERE.search(line)
        if here and _TAKES_CONTENT.search(line[: here.start()]) and not _RUNS_CONTENT.search(line):
            ends = places.get(here[2], [])
            after = bisect_left(ends, at)
            if after < len(ends):  # else it never ends, and was no here-document
                if not here[1]:  # the shell expands substitutions in the body
                    yield from substitutions("\n".join(lines[at : ends[after]]))
                at = ends[after]  # that line may close what the command opened


def patch_files(text: str) -> list[str]:
    """Return the files that the file lines of a patch name, in either form of patch; [] for other text."""
    if not _PATCH_MARK.search(text):
        return []
    files: list[str] = []
    for line in _PATCH_FILE.finditer(text):
        for name in [line["one"]] if line["one"] else line["two"].split():
            bare = name.strip().strip('"')
            files.append(bare[2:] if bare.startswith(("a/", "b/")) else bare)
    return files
