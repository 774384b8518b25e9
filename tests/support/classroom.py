"""An index that follows small logs and a learner beside it, without a daemon.

::

    room = Classroom(user_home)
    room.write("a.jsonl", native("s1", fail("c1", "make"), ...))
    room.learn()                                 # catch up, learn, let quiet sessions rest
    assert room.rows("SELECT ...") == [...]
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from memoryd.clock import rfc3339
from memoryd.index import Index
from memoryd.lessons import store
from memoryd.serve.learning import Learner
from tests.support.indexing import World

START = 1_769_936_400_000
TS2304 = "src/main.ts(3,5): error TS2304: Cannot find name 'foo'."


class Script:
    """A native log in the making; each line is a second after the one before."""

    def __init__(self, session: str, project: str = "/w/app", *, at: int = START) -> None:
        self.now = at
        self.lines: list[dict[str, Any]] = []
        self.calls = 0
        self.add("session", session=session, project=project, agent="native")

    def add(self, kind: str, **fields: Any) -> "Script":
        self.now += 1_000
        self.lines.append({"kind": kind, "ts": rfc3339(self.now), **fields})
        return self

    def later(self, ms: int) -> "Script":
        self.now += ms
        return self

    def owner(self, text: str) -> "Script":
        return self.add("owner", text=text)

    def call(self, command: str, *, ok: bool, text: str = "", cls: str = "public",
             untrusted: bool = False, tool: str = "bash") -> "Script":  # fmt: skip
        self.calls += 1
        name = f"c{self.calls}"
        args = {"command": command} if tool == "bash" else {"filePath": command}
        self.add("tool_call", call=name, tool=tool, args=args)
        label = {"class": cls, "untrusted": untrusted}
        return self.add("tool_result", call=name, ok=ok, text=text, **label)

    def fail(self, command: str = "npm run build", text: str = TS2304, **more: Any) -> "Script":
        return self.call(command, ok=False, text=text, **more)

    def good(self, command: str = "npm run build", **more: Any) -> "Script":
        return self.call(command, ok=True, **more)

    def edit(self, path: str = "src/main.ts", **more: Any) -> "Script":
        return self.call(path, ok=True, tool="edit", **more)

    def end(self) -> "Script":
        return self.add("end")


def text(lines: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


class Classroom:
    """A state folder whose `sessions/` are followed."""

    def __init__(self, user: Path, *, idle_after_s: float = 900) -> None:
        self.world = World(user)
        self.idle_after_s = idle_after_s
        self.open()

    def open(self) -> None:
        """Open index and lessons, as a daemon does at its start."""
        settings = self.world.settings()
        self.index = Index(settings)
        self.index.listened = True
        self.path = settings.home / store.NAME
        connection = store.opened(self.path)
        self.learner = Learner(
            settings, connection, self.index.known, idle_after_s=self.idle_after_s
        )

    def close(self) -> None:
        self.index.close()
        self.learner.connection.close()

    def again(self) -> None:
        """End as a kill would between two commits, and start again."""
        self.close()
        self.open()

    def write(self, name: str, script: Script, *, upto: int | None = None) -> None:
        """Write a log as it is once `upto` lines of it are written."""
        path = self.world.sessions / name
        path.write_text(text(script.lines[:upto]), "utf-8")

    def append(self, name: str, script: Script, first: int, upto: int) -> None:
        with (self.world.sessions / name).open("a", encoding="utf-8") as file:
            file.write(text(script.lines[first:upto]))

    def read(self) -> None:
        """Let the index read all there is, and hand on what it heard."""
        self.index.sweep()
        while self.index.catch_up()[1]:
            pass
        self.learner.hear(self.index.take_told())

    def learn(self, now: int | None = None) -> None:
        """Read, learn, look for what was missed; at `now` let quiet sessions rest."""
        self.read()
        self.learner.look(self.index.known(), all_read=True)
        self.study()
        if now is not None:
            while self.learner.due(now) == 0:
                pass

    def study(self) -> None:
        while self.learner.step():
            pass

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return list(self.learner.connection.execute(sql))

    def told(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that was learned, without the order in which it was."""
        queries = {
            "lesson": "SELECT id, type, content, project, fingerprint, origin, status, level, untrusted, "
            "relevance, call, fix_args, evidence, recurrence, created_at, updated_at FROM lesson",
            "call": "SELECT * FROM call",
            "fix": "SELECT fingerprint, project, session, at, args, level, untrusted FROM fix",
            "charge": "SELECT * FROM charge",
            "session": "SELECT id, project, last_at, idle_at, ended FROM session",
            "progress": "SELECT * FROM progress",
            "waiting": "SELECT * FROM waiting",
        }
        return {name: sorted(self.rows(sql), key=repr) for name, sql in queries.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            self.close()
