"""A field of session logs that are written, broken, rotated and rewritten, all by one seed.

In: folders, a random source. Out: files as a harness, a rotation, a crash or a person would leave them; and
what they hold now, for the oracle. Every word that must reach no file of memoryd holds `CANARY`; every row's
words say the class that they must not be shown below (`sealN`).
"""

import json
import os
import random
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chaos import oracle
from tests.chaos.oracle import Label, Place

CANARY = "canarywren"
CONFIG = """
[labels]
profile = "strict"
[[labels.tool]]
match = "Quiet"
class = "public"
untrusted = false
[[labels.tool]]
match = "Web"
class = "public"
[[labels.tool]]
match = "Vault"
class = "private"
untrusted = false
[index]
max_class = "{most}"
vanished = "{vanished}"
[[source]]
path = "{logs}"
kind = "claude-code"
"""
"""The rules that `oracle.TOOLS` repeats."""
UNIQUE = re.compile(r"row\d+x[0-9a-f]+")
"""A word of a row that stands in no other."""
_WORDS = "amber birch cedar delta ember fjord grove haven islet jetty knoll lagoon maple".split()


class Field:
    """Logs of one format below one folder. `change` does one thing to one of them and tells what.

    `deletes`: they may be removed or renamed. Where vanished logs are kept, what was read of them before that
    stays, and nobody outside can say how much it was.
    """

    def __init__(self, source: str, root: Path, rng: random.Random, *, deletes: bool) -> None:
        self.source, self.root, self.rng, self.deletes = source, root, rng, deletes
        self.peaks: dict[Place, Label] = {}
        self.lock = threading.Lock()
        self._count = 0
        self._open: dict[str, list[str]] = {}
        root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def logs(self) -> dict[Place, bytes]:
        """Return what every log holds now."""
        paths = sorted(self.root.rglob("*.jsonl"))
        return {self.place(path): path.read_bytes() for path in paths}

    def place(self, path: Path) -> Place:
        """Return how a log is called in the index."""
        return self.source, str(self.root), path.relative_to(self.root).as_posix()

    def change(self) -> str:
        """Do one thing to one log; return what, for a person who repeats it."""
        paths = sorted(self.root.rglob("*.jsonl"))
        if not paths or (len(paths) < 6 and self.rng.random() < 0.15):
            return self.begin()
        path = self.rng.choice(paths)
        acts: list[tuple[int, Callable[[Path], None]]] = [
            (60, self.append),
            (8, self.cut),
            (3, self.blank),
            (2, self.nul),
            (2, self.garbage),
            (4, self.truncate),
            (4, self.rewrite),
            (4, self.replace),
            (3 if self.deletes else 0, self.rotate),
            (3 if self.deletes and len(paths) > 2 else 0, self.delete),
        ]
        (act,) = self.rng.choices([act for _, act in acts], [weight for weight, _ in acts])
        act(path)
        return f"{act.__name__} {path.relative_to(self.root)}"

    def begin(self) -> str:
        """Make a new log."""
        self._count += 1
        path = self.root / f"s{self._count}-{self.rng.randrange(1 << 30):x}.jsonl"
        self._write(path, self.first(), os.O_CREAT | os.O_EXCL)
        return f"begin {path.name}"

    def append(self, path: Path) -> None:
        """Add whole records."""
        self._write(path, self.some(path, self.rng.randrange(1, 6)), os.O_APPEND)

    def cut(self, path: Path) -> None:
        """Add records of which the last breaks off anywhere; what comes next is glued to it."""
        data = self.some(path, self.rng.randrange(1, 4))
        self._write(path, data[: self.rng.randrange(1, len(data))], os.O_APPEND)

    def blank(self, path: Path) -> None:
        """End a line, add empty ones and ones of blanks."""
        self._write(path, self.rng.choice([b"\n", b"\r\n", b"\n\n  \n", b" "]), os.O_APPEND)

    def nul(self, path: Path) -> None:
        """Add what a lost write leaves."""
        self._write(path, b"\0" * self.rng.randrange(1, 700) + b"\n", os.O_APPEND)

    def garbage(self, path: Path) -> None:
        """Add a line that is no object, or no UTF-8."""
        lines = [b"5\n", b"[1]\n", b'{"a\n', b"\xff\xfe{}\n", b"}\n", b'"word"\n', b"null\n"]
        self._write(path, self.rng.choice(lines), os.O_APPEND)

    def truncate(self, path: Path) -> None:
        """Cut a log anywhere behind its first line."""
        data = path.read_bytes()
        first = data.find(b"\n") + 1
        os.truncate(path, self.rng.randrange(first, len(data) + 1))

    def rewrite(self, path: Path) -> None:
        """Write a log anew in place, shorter or longer than it was."""
        self._write(path, self.first() + self.some(None, self.rng.randrange(8)), os.O_TRUNC)

    def replace(self, path: Path) -> None:
        """Put another file in a log's place, in one step."""
        new = path.with_suffix(".new")
        self._write(new, self.first() + self.some(None, self.rng.randrange(8)), os.O_CREAT)
        new.rename(path)

    def rotate(self, path: Path) -> None:
        """Give a log another name, and sometimes begin a new one under the old name."""
        self._count += 1
        path.rename(path.with_name(f"{path.stem.split('.')[0]}.{self._count}.jsonl"))
        self.peaks.pop(self.place(path), None)
        if self.rng.random() < 0.5:
            self._write(path, self.first(), os.O_CREAT | os.O_EXCL)

    def delete(self, path: Path) -> None:
        """Remove a log."""
        path.unlink()
        self.peaks.pop(self.place(path), None)

    def _write(self, path: Path, data: bytes, how: int) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | how, 0o600)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)

    def first(self) -> bytes:
        """Return the record that tells a log's format."""
        return _line(self._session() if self.source == "native" else self._user("hello"))

    def some(self, path: Path | None, number: int) -> bytes:
        """Return records that may follow in a log; their words tell its label so far."""
        label = (0, False)
        if path is not None:
            data = path.read_bytes()
            label = oracle.read(self.source, path.name, data, label, oracle.TOP).label
        made: list[dict[str, Any]] = []
        for _ in range(number):
            made += self._next(label)
        return b"".join(map(_line, made))

    def _next(self, label: Label) -> list[dict[str, Any]]:
        dice, words = self.rng.random(), self.words(label)
        if dice < 0.35:
            return [self._user(words)]
        if dice < 0.6:
            return [self._assistant(words)]
        if dice < 0.65 and self.source == "claude-code":
            return [self._thinking()]
        tool = self.rng.choices(["Quiet", "Web", "Vault", "Odd"], [12, 2, 1, 0.3])[0]
        call = f"c{self.rng.randrange(1 << 40):x}"
        made = [self._call(tool, call, words)]
        if self.rng.random() < 0.85:
            made.append(self._result(call, tool))
        if self.rng.random() < 0.05:
            made.append(self._result(f"never{call}", tool))
        return made

    def words(self, label: Label) -> str:
        """Return words of a row, among them the class below which nobody may see them."""
        chosen = " ".join(self.rng.choices(_WORDS, k=self.rng.randrange(2, 9)))
        self._count += 1
        umlaut = " März\u2028" if self.rng.random() < 0.1 else ""
        return f"{chosen}{umlaut} seal{label[0]} row{self._count}x{self.rng.randrange(1 << 24):x}"

    def _stamp(self) -> str:
        return f"2026-01-02T03:04:{self.rng.randrange(60):02}.000Z"

    def _session(self) -> dict[str, Any]:
        name = f"n{self.rng.randrange(1 << 30):x}"
        return {"kind": "session", "session": name, "project": "/home/ada/shop", "agent": "loop"}

    def _user(self, words: str) -> dict[str, Any]:
        if self.source == "native":
            return {"kind": "owner", "ts": self._stamp(), "text": words}
        return self._claude("user", words)

    def _assistant(self, words: str) -> dict[str, Any]:
        if self.source == "native":
            kind = "summary" if self.rng.random() < 0.1 else "assistant"
            return {"kind": kind, "ts": self._stamp(), "text": words}
        return self._claude("assistant", [{"type": "text", "text": words}])

    def _thinking(self) -> dict[str, Any]:
        thought = {"type": "thinking", "thinking": f"{CANARY} thought", "signature": "x"}
        return self._claude(
            "assistant", [thought, {"type": "text", "text": self.words((0, False))}]
        )

    def _call(self, tool: str, call: str, words: str) -> dict[str, Any]:
        args = {"q": words}
        if self.rng.random() < 0.2:
            args["password"] = f"{CANARY}{self.rng.randrange(1 << 30):x}"
        if self.source == "native":
            return {
                "kind": "tool_call",
                "ts": self._stamp(),
                "call": call,
                "tool": tool,
                "args": args,
            }
        return self._claude(
            "assistant", [{"type": "tool_use", "id": call, "name": tool, "input": args}]
        )

    def _result(self, call: str, tool: str) -> dict[str, Any]:
        text = f"{CANARY} of a result {self.rng.randrange(1 << 30):x}"
        if self.source == "native":
            level, untrusted = oracle.TOOLS.get(tool, oracle.WORST)
            made = {"kind": "tool_result", "ts": self._stamp(), "call": call, "ok": True}
            label = {"class": oracle.CLASSES[level], "untrusted": untrusted}
            return {**made, **label, "text": text}
        block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": False}
        return self._claude("user", [block], toolUseResult={"stdout": text})

    def _claude(self, kind: str, content: object, **more: object) -> dict[str, Any]:
        self._count += 1
        return {
            "type": kind,
            "sessionId": f"claude{self._count % 3}",
            "uuid": f"u{self._count}-{self.rng.randrange(1 << 40):x}",
            "parentUuid": None,
            "timestamp": self._stamp(),
            "cwd": "/home/ada/shop",
            "isSidechain": False,
            "message": {"role": kind, "content": content},
            **more,
        }


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
