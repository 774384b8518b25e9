"""Where in a call's arguments a rule could find anything: a quick look before the close one.

In: the arguments. Out: `ARGS`, `PLACE`, both or 0. Never misses: what `arguments.named` and the patterns find
is made of runs without spaces, and each run must hold what the hint patterns search for. A text without any of
the plain words that those patterns need is told by looking for the words alone. Runs that hold nothing are
remembered, and logs repeat themselves: most other commands are told by set lookups, at a tenth of the time of
searching them.
"""

import re
from collections.abc import Iterable

from memoryd.arguments import PROSE, WORDS, Reading, below, fold, kind_of
from memoryd.redact.sieve import held

ARGS, PLACE = 1, 2
"""A profile's `args` pattern could match; a path rule, or a word about memoryd itself, could."""

_MAX_KEPT = 32 * 1024
"""Entries of each lookup; they grow with what logs hold, and a full one is emptied."""

_MAX_RUN = 256
"""Longer runs are looked at each time."""

_DEEP = (dict, list)
_QUOTES = str.maketrans("", "", "'\"\\")


class Hints:
    """Tells what a call's arguments hint at, by the runs that were looked at before."""

    def __init__(self, args_hints: Iterable[str], place_hint: re.Pattern[str] | None) -> None:
        """Take patterns that search one run; `place_hint` None: every run could name a place."""
        self._args_hints = [re.compile(hint) for hint in args_hints]
        self._place_hint = place_hint
        needed = [_needed(hint.pattern) for hint in self._args_hints]
        self._args_needed = [] if None in needed else [word for one in needed for word in one or ()]
        self._place_needed = None if place_hint is None else _needed(place_hint.pattern)
        self._place_words = {word.encode(): word for word in self._place_needed or ()}
        self._args_words = {word.lower().encode(): word for word in self._args_needed}
        self._boring: set[str] = set()
        self._kinds: tuple[dict[str, int], ...] = ({}, {}, {}, {})

    def of(self, args: object, how: Reading, *, everywhere: bool) -> int:
        """Return `ARGS`, `PLACE`, both or 0: what a closer look at `args` could find.

        `everywhere`: `args` patterns are about these arguments, so that prose counts for those. Without it
        `ARGS` may be missing.
        """
        if not isinstance(args, dict):
            return self._deep(args, WORDS, how, everywhere)
        found, boring, kinds = 0, self._boring, self._kinds[how.shell + 2 * how.globs]
        prose = ARGS if everywhere else 0
        for key, value in args.items():
            kind = kinds.get(key) or self._kind(key, how)
            if kind < 0:
                found |= ARGS
                kind = -kind
            if isinstance(value, str):
                if value in boring:
                    continue
                wanted = (prose if kind == PROSE else prose | PLACE) & ~found
                if wanted:
                    found |= self._text(value, wanted)
            elif isinstance(value, dict | list):
                found |= self._deep(value, kind, how, everywhere)
        return found

    def doubtful(self, asked: Iterable[tuple[object, Reading, bool]]) -> set[int]:
        """Return the places of those arguments (each with its reading, and `everywhere`) that may hint at anything.

        Says of none that it hints at nothing where `of` finds something; all others are told by one search for
        each word that a hint needs, through all texts at once.
        """
        found: set[int] = set()
        named: list[tuple[int, str]] = []
        typed: list[tuple[int, str]] = []
        for at, (args, how, everywhere) in enumerate(asked):
            if type(args) is not dict:
                found.add(at)
                continue
            kinds = self._kinds[how.shell + 2 * how.globs]
            for key, value in args.items():
                kind = kinds.get(key) or self._kind(key, how)
                if kind < 0 or isinstance(value, _DEEP):
                    found.add(at)
                elif isinstance(value, str):
                    if kind != PROSE:
                        named.append((at, value))
                    if everywhere:
                        typed.append((at, value))
        if named:
            found |= self._naming(named)
        if typed:
            found |= self._typing(typed)
        return found

    def _naming(self, texts: list[tuple[int, str]]) -> set[int]:
        """Return those of the numbered texts that may name a place."""
        if not self._place_needed:
            return {at for at, _ in texts}
        plain = [_unquoted(text) for _, text in texts]
        found = held(plain, self._place_words)
        hint = self._place_hint
        return {texts[row][0] for row in found if hint is None or hint.search(plain[row])}

    def _typing(self, texts: list[tuple[int, str]]) -> set[int]:
        """Return those of the numbered texts that an `args` pattern may match."""
        if not self._args_needed:
            return {at for at, _ in texts}
        whole = [_joined(text) for _, text in texts]
        found = held(whole, self._args_words)
        hints = self._args_hints
        return {texts[row][0] for row in found if any(hint.search(whole[row]) for hint in hints)}

    def _deep(self, args: object, kind: int, how: Reading, everywhere: bool) -> int:
        """Do the same for arguments of any shape, as `arguments.named` walks them."""
        found, kinds, stack = 0, self._kinds[how.shell + 2 * how.globs], [(args, kind)]
        prose = ARGS if everywhere else 0
        while stack:
            value, kind = stack.pop()
            if isinstance(value, str):
                wanted = (prose if kind == PROSE else prose | PLACE) & ~found
                if wanted:
                    found |= self._text(value, wanted)
            elif isinstance(value, dict):
                for key, item in value.items():
                    own = kinds.get(key) or self._kind(key, how)
                    found |= ARGS if own < 0 else 0
                    stack.append((item, below(kind, abs(own), how)))
            elif isinstance(value, list):
                stack.extend((item, kind) for item in value)
        return found

    def _kind(self, key: str, how: Reading) -> int:
        """Return the kind of the values under `key`, negative where the key itself hints at `args`."""
        kind = kind_of(key, how)
        if any(hint.search(key) for hint in self._args_hints):
            kind = -kind
        kinds = self._kinds[how.shell + 2 * how.globs]
        if len(kinds) >= _MAX_KEPT:
            kinds.clear()
        kinds[key] = kind
        return kind

    def _text(self, text: str, wanted: int) -> int:
        """Return what of `wanted` the runs of a text hint at; a shell's line continuation joins two of them."""
        text = _joined(text)
        if self._place_needed and self._without_needed(text, self._place_needed, wanted):
            return 0
        runs = text.split()
        if self._boring.issuperset(runs):
            return 0
        found = 0
        for run in runs:
            if run not in self._boring:
                found |= self._run(run)
        return found & wanted

    def _without_needed(self, text: str, place_needed: list[str], wanted: int) -> bool:
        """Say whether no run of `text` can hint at what is wanted, by the words that every hint needs."""
        if wanted & ARGS:
            if not self._args_needed:
                return False
            for word in self._args_needed:
                if word in text:
                    if any(hint.search(text) for hint in self._args_hints):
                        return False
                    break
        if not wanted & PLACE:
            return True
        return not any(map(_unquoted(text).__contains__, place_needed))

    def _run(self, run: str) -> int:
        """Look at one run without spaces, and remember it if there is nothing in it."""
        found = ARGS if any(hint.search(run) for hint in self._args_hints) else 0
        if self._place_hint is None or self._place_hint.search(fold(run).translate(_QUOTES)):
            found |= PLACE
        if not found and len(run) <= _MAX_RUN:
            if len(self._boring) >= _MAX_KEPT:
                self._boring.clear()
            self._boring.add(run)
        return found


def _joined(text: str) -> str:
    """Return a text with the lines of shell commands joined that go on in the next one."""
    return text.replace("\\\n", "") if "\\\n" in text else text


def _unquoted(text: str) -> str:
    """Return a text as places are looked for in it: folded, its lines joined, without quotes."""
    folded = fold(_joined(text))
    if "'" in folded or '"' in folded or "\\" in folded:
        return folded.translate(_QUOTES)
    return folded


_OPTIONAL = re.compile(r"(?:\\.|[^\\])[?*]")
_SPECIAL = re.compile(r"\\[AbBdDsSwWZ]|[()\[\]{}+^$.]")
_ESCAPED, _HELD = re.compile(r"\\([^A-Za-z0-9])"), re.compile("\1(....)\2")


def _needed(pattern: str) -> list[str] | None:
    """Return words of which every match of `pattern` holds one; None where it may match without any.

    For patterns of alternatives, plain text and ``?``: each alternative needs its longest plain run.
    """
    words = []
    for piece in pattern.replace("(?:", "(").split("|"):
        plain = _ESCAPED.sub(lambda found: f"\1{ord(found[1]):04x}\2", _OPTIONAL.sub("\0", piece))
        runs = _SPECIAL.sub("\0", plain).split("\0")
        whole = [_HELD.sub(lambda found: chr(int(found[1], 16)), run) for run in runs]
        word = max(whole, key=len)
        if not word:
            return None
        words.append(word)
    return words
