r"""Notes in a throw-away state folder, with a clock that stands still and short ways to edit.

::

    with Desk(home) as desk:
        desk.create("/memories/internal/a.md", "one\n")
        assert desk.tree() == {"internal/a.md": b"one\n"}
        desk.check_sound()
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from memoryd.errors import MemorydError
from memoryd.labels import Classes, Label
from memoryd.notes.desk import Notes, owner_asks
from memoryd.notes.request import Asker, Edit, Limits
from memoryd.notes.verify import verify

CLASSES = Classes(("public", "internal", "private", "secret"))
OWNER = owner_asks(CLASSES)
START_MS = 1_767_225_600_000
A = "/memories/internal/a.md"
B = "/memories/internal/b.md"


def session(
    level: int, *, untrusted: bool = False, log: str | None = "s.jsonl", **more: Any
) -> Asker:
    """Return an asking session whose label is (level, untrusted), on a socket of top clearance."""
    told = {"client": "agent", "clearance": CLASSES.top, **more}
    return Asker(session=Label(level, untrusted), log=log, n=7, **told)


class Desk:
    """Open notes; `now` is the clock. Closing writes nothing, as a kill does not."""

    def __init__(self, home: Path, limits: Limits | None = None) -> None:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.home, self.limits, self.now = home, limits, START_MS
        self.notes = self._open()

    def _open(self) -> Notes:
        return Notes(self.home, CLASSES, limits=self.limits, clock=lambda: self.now)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.notes.close()

    def reopen(self) -> None:
        """Close and start again, with recovery."""
        self.notes.close()
        self.notes = self._open()

    def edit(self, command: str, path: str, asker: Asker = OWNER, **more: Any) -> dict[str, Any]:
        """Do one edit."""
        fields = {"to", "expect", "reason", "force", "recursive"}
        own = {name: more.pop(name) for name in list(more) if name in fields}
        return self.notes.edit(Edit(command=command, path=path, arguments=more, **own), asker)

    def create(
        self, path: str, text: str = "text\n", asker: Asker = OWNER, **more: Any
    ) -> dict[str, Any]:
        """Create a note."""
        return self.edit("create", path, asker, file_text=text, **more)

    def replace(
        self, path: str, old: str, new: str, asker: Asker = OWNER, **more: Any
    ) -> dict[str, Any]:
        """Replace text in a note."""
        return self.edit("str_replace", path, asker, old_str=old, new_str=new, **more)

    def refusal(self, command: str, path: str, asker: Asker = OWNER, **more: Any) -> str:
        """Return the name of the check that refuses an edit; "" when none does.

        A proposal is "pending", what a trusted session must ask for is "ask".
        """
        try:
            self.edit(command, path, asker, **more)
        except MemorydError as error:
            proposed = error.code == "pending" and error.data["check"] == "untrusted"
            return "pending" if proposed else str(error.data["check"])
        return ""

    def file(self, path: str) -> Path:
        """Return where a note lies, by its shown or stored path."""
        return self.home / "notes" / path.removeprefix("/memories/")

    def outside(self, path: str, content: bytes) -> Path:
        """Write a note as an editor would."""
        file = self.file(path)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o600)
        return file

    def tree(self) -> dict[str, bytes]:
        """Return every file below the notes, half-written ones too."""
        root = self.home / "notes"
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    def replayed(self) -> dict[str, str]:
        """Return path to hash of every note, as the journal tells."""
        return {path: held.hash for path, held in self.notes.journal.state.live.items()}

    def on_disk(self) -> dict[str, str]:
        """Return path to hash of every file."""
        return {path: digest(content) for path, content in self.tree().items()}

    def faults(self) -> list[tuple[str, str]]:
        """Return what verify finds."""
        return [(fault.where, fault.what) for fault in verify(self.notes.store, self.notes.journal)]

    def check_sound(self) -> None:
        """Hold the journal against the disk: equal, and nothing wrong with either."""
        assert self.replayed() == self.on_disk()
        assert self.faults() == []

    def journal_bytes(self) -> bytes:
        """Return the current journal file."""
        path = self.home / "journal" / "journal.jsonl"
        return path.read_bytes() if path.exists() else b""

    def every_byte(self) -> bytes:
        """Return every byte of the state folder."""
        return b"\0".join(path.read_bytes() for path in self.home.rglob("*") if path.is_file())


def refused(work: Callable[[], object]) -> MemorydError | None:
    """Return the error with which `work` is refused, None when it is done."""
    try:
        work()
    except MemorydError as error:
        return error
    return None


def digest(content: bytes) -> str:
    """Return the hash under which contents are known."""
    return hashlib.sha256(content).hexdigest()
