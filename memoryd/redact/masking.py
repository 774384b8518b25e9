"""Finds what is secret in a text, and masks it: the calls that the rest of memoryd makes.

In: text about to be indexed, or a tool's arguments. Out: the same with `<redacted>` for each secret, or
the kind and place of each. Masking what is masked changes nothing, and a text alone gives what it gives in
a batch, so that an index grown line by line equals a rebuilt one.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from memoryd.redact import assigned, shapes, sieve
from memoryd.redact.names import Telling, telling
from memoryd.redact.values import Seen, is_literal

MASK = "<redacted>"
PATH = "<path>"
ASSIGNED = "assignment"

_ROUNDS = 8  # one does, and a second to see that it did; never endless

_FLAG_LIKE = re.compile(r"-{1,2}[\w-]{2,80}")


class Finding(NamedTuple):
    """A secret's kind and place in a text (characters, end not included); never the secret."""

    kind: str
    start: int
    end: int


def find(text: str) -> list[Finding]:
    """Return where secrets stand, in order, none overlapping another.

    Kinds: ``private``, ``private-key``, ``token``, ``userinfo``, ``assignment``.
    """
    return _find(text, needles) if (needles := sieve.needles(text)) else []


def secrets(text: str) -> str:
    """Return `text` with every secret masked."""
    return _mask(text, needles) if (needles := sieve.needles(text)) else text


def secrets_many(texts: list[str]) -> list[str]:
    """Return each text with its secrets masked: as `secrets`, at a twentieth of the cost for ordinary text."""
    doubtful = sieve.suspects(texts)
    if not doubtful:
        return texts
    masked = list(texts)
    for at, needles in doubtful.items():
        masked[at] = _mask(texts[at], needles)
    return masked


def _find(text: str, needles: Collection[str]) -> list[Finding]:
    found = [
        Finding(kind, *span)
        for kind, needle, search in shapes.SHAPES
        if not needle or needle in needles
        for span in search(text, needles)
    ]
    found += [Finding(ASSIGNED, *span) for span in assigned.spans(text, needles)]
    return _apart(found) if len(found) > 1 else found


def _apart(found: list[Finding]) -> list[Finding]:
    """Return the findings in order; those that overlap become one, of the kind that begins first."""
    apart: list[Finding] = []
    for next_one in sorted(found, key=lambda one: (one.start, -one.end)):
        if apart and next_one.start < apart[-1].end:
            apart[-1] = apart[-1]._replace(end=max(apart[-1].end, next_one.end))
        else:
            apart.append(next_one)
    return apart


def _mask(text: str, needles: Collection[str]) -> str:
    """Mask until nothing is found: what a mask brings together is looked at again."""
    for _ in range(_ROUNDS):
        if not (found := _find(text, needles)):
            break
        text = "".join(_pieces(text, found))
    return text


def _pieces(text: str, found: list[Finding]) -> Iterator[str]:
    at = 0
    for kind, start, end in found:
        yield text[at:start]
        yield _blank(text[start:end]) if kind == shapes.PRIVATE else MASK
        at = end
    yield text[at:]


def _blank(block: str) -> str:
    return f"<private: redacted {shapes.private_length(block)} chars>"


def arguments(args: object) -> object:
    """Return decoded JSON with the values under telling keys masked; the same object where there are none.

    Call it before the keys are dropped. A flag (`["--token", "x"]`) and a name (`{"name": "API_KEY",
    "value": "x"}`) tell like a key. What stands inside longer texts is left to `secrets`.
    """
    if type(args) is dict and _plain(args):
        return args  # nearly every call's
    if isinstance(args, Mapping):
        return _object(args)
    return _list(args) if isinstance(args, list) else args


def _object(args: Mapping[str, object]) -> object:
    named = args.get("name", args.get("key"))
    masked: dict[str, object] = {}
    changed = False
    for key, value in args.items():
        name = named if key.lower() == "value" and isinstance(named, str) else key
        masked[key] = _argument(name, value)
        changed = changed or masked[key] is not value
    return masked if changed else args


_MOST_NAMES = 16
_SCALARS = frozenset((str, int, float, bool, type(None)))


def _plain(args: Mapping[str, object]) -> bool:
    """Say whether no key tells anything and no value holds another: nearly every call's arguments."""
    if len(args) > _MOST_NAMES or not _SCALARS.issuperset(map(type, args.values())):
        return False
    return _tell_nothing(tuple(args))


@lru_cache(maxsize=1024)
def _tell_nothing(keys: tuple[str, ...]) -> bool:
    """Say whether no name tells of a secret; a tool's calls have the same names again and again."""
    return all(telling(key) is Telling.NOTHING and key.lower() != "value" for key in keys)


def _list(args: list[object]) -> object:
    masked: list[object] = []
    flag = ""
    for value in args:
        masked.append(_argument(flag, value) if flag else arguments(value))
        flag = value if isinstance(value, str) and _FLAG_LIKE.fullmatch(value) else ""
    return masked if any(new is not old for new, old in zip(masked, args, strict=True)) else args


def _argument(name: str, value: object) -> object:
    """Return the value of one argument, masked where its name tells that it is a secret."""
    if isinstance(value, str):
        return MASK if _is_secret(name, value) else value
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return MASK if _is_secret(name, str(value)) else value
    if isinstance(value, list) and telling(name) is not Telling.NOTHING:
        masked = [_argument(name, one) for one in value]
        return (
            masked if any(new is not old for new, old in zip(masked, value, strict=True)) else value
        )
    return arguments(value)


def _is_secret(name: str, value: str) -> bool:
    tells = telling(name)
    return tells is not Telling.NOTHING and is_literal(Seen(name, tells, "arg", False, True, value))


_ROOTS = (
    "Applications|Library|Users|Volumes|app|data|dev|etc|home|media|mnt|nix|opt|private|proc|root|run|snap"
    "|srv|sys|tmp|usr|var|work|workspace|workspaces"
)
_SEGMENT = r"""[^\s"'`<>|*?:;,()\[\]{}/\\]"""
_PATHS = re.compile(
    rf"""(?x)
      (?<![\w.:/\\~<-]) (?: ~ | /(?:{_ROOTS})(?![\w.-]) ) (?:/{_SEGMENT}*+)*+   # /home/u/x, ~/x
    | (?<!\w) [A-Za-z]:[\\/](?![/\\]) (?:{_SEGMENT}++[\\/]?+)*+                 # C:\x, C:/x
    | (?<![\w:\\]) \\\\{_SEGMENT}++ (?:\\{_SEGMENT}++)++                        # \\host\share
    """
)


def paths(text: str) -> str:
    """Return `text` with absolute paths replaced by `<path>`; URLs and relative paths stay.

    Not part of `secrets`: `src/main.ts` and `/etc/hosts` are what people search for.
    """
    return _PATHS.sub(PATH, text)
