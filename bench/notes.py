"""Notes: listing ten thousand, and editing one of them.

In: nothing (the notes are made here, in the system's temporary folder). Out: rows against fixed targets. An
edit is wall time, since it waits for the disk (two rounds of syncs: what its promise costs); a listing waits
for nothing, and is CPU time, which a busy machine does not stretch.
"""

import statistics
import tempfile
from pathlib import Path

from bench.row import Row, cpu_seconds, percentile, wall_seconds
from memoryd.labels import Classes
from memoryd.notes import history, reading
from memoryd.notes.desk import Notes, owner_asks
from memoryd.notes.reading import View
from memoryd.notes.request import Edit

CLASSES = Classes(f"c{number}" for number in range(8))
NOTES = 10_000
EDITS = 200
OWNER = owner_asks(CLASSES)


def _fill(home: Path) -> None:
    """Make the notes as an editor would, which is quick, then accept some of them."""
    for number in range(NOTES):
        folder = home / "notes" / f"c{number % 8}" / f"topic-{number // 8 % 25}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        note = folder / f"{number}.md"
        note.write_text(f"---\ntitle: Note {number}\n---\n" + f"line {number}\n" * 20)
        note.chmod(0o600)


def rows(corpus: Path) -> list[Row]:
    """Return the rows of notes; `corpus` is not used."""
    with tempfile.TemporaryDirectory(prefix="bench-notes-") as folder:
        home = Path(folder)
        for name in ("notes", *(f"notes/{each}" for each in CLASSES.names)):
            (home / name).mkdir(mode=0o700)
        _fill(home)
        notes = Notes(home, CLASSES)
        try:
            return [_listing(notes), _editing(notes)]
        finally:
            notes.close()


def _listing(notes: Notes) -> Row:
    view = View(CLASSES.top, owner=True)

    def listed() -> None:
        told = reading.listing(notes, view, limit=NOTES)
        if len(told["notes"]) != NOTES:
            raise AssertionError("notes are missing")

    first = wall_seconds(listed)
    wall = statistics.median(wall_seconds(listed) for _ in range(5))
    again = statistics.median(cpu_seconds(listed) for _ in range(5))
    detail = f"CPU; wall {1_000 * wall:.0f} ms; the first, which reads them all, {first:.1f} s"
    return Row("list 10,000 notes", "fixed", 1_000 * again, 100, unit="ms", detail=detail)


def _editing(notes: Notes) -> Row:
    path = "/memories/c1/topic-0/1.md"
    history.accept(notes, OWNER, path=path)
    taken = []
    for number in range(EDITS):
        edit = Edit(
            command="str_replace",
            path=path,
            arguments={
                "old_str": "---\nline 1\n" if number == 0 else f"at {number - 1}\n",
                "new_str": f"---\nat {number}\n" if number == 0 else f"at {number}\n",
            },
        )
        taken.append(1_000 * wall_seconds(lambda edit=edit: notes.edit(edit, OWNER)))
    detail = f"{EDITS} edits among {NOTES:,} notes, p95 {percentile(taken, 0.95):.1f} ms"
    return Row("edit a note, p50", "fixed", percentile(taken, 0.5), 10, unit="ms", detail=detail)
