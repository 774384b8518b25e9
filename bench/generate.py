"""Write a deterministic corpus of session logs: `python -m bench.generate FOLDER RECORDS [SEED]`.

Out: FOLDER/sessions/PROJECT/*.jsonl (native, labelled results) and FOLDER/claude/PROJECT/*.jsonl (Claude
Code's shape), about half the sessions each, and FOLDER/queries.json with words by how common they are.
Words follow a Zipf law over an invented vocabulary (the shape of real text's posting lists); three in
ten records are tool results, which must never reach the index and are the bulk of the bytes. The same
arguments give the same bytes.
"""

import itertools
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from memoryd.clock import rfc3339

START_MS = 1_760_000_000_000
VOCABULARY = 120_000
EXPONENT = 1.05
MEAN_SESSION = 200
CLASSES = ("public", "internal", "private", "secret")
RESULT_WEIGHTS = (90, 7, 2.25, 0.75)
TOOLS = {
    "Bash": 34,
    "Read": 24,
    "Edit": 16,
    "Grep": 10,
    "Glob": 5,
    "WebFetch": 4,
    "Write": 5,
    "Task": 2,
}
CONSONANTS = "b c d f g h k l m n p r s t v br dr gr pl st tr sh ch".split()
VOWELS = "a e i o u ai ea ou".split()


def vocabulary(rng: random.Random) -> list[str]:
    """Return `VOCABULARY` distinct words; one in ten is a snake_case, one in twenty a camelCase name."""
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        parts = [
            rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(rng.choice((2, 2, 3, 3, 4)))
        ]
        shape = rng.random()
        if shape < 0.10:
            parts.insert(1, "_")
        elif shape < 0.15:
            parts[-1] = parts[-1].capitalize()
        words["".join(parts)] = None
    return list(words)


class Writer:
    """Draws text by the Zipf law from one random generator."""

    def __init__(self, seed: int) -> None:
        """Make the vocabulary and the pool from which long results are cut."""
        self.rng = random.Random(seed)
        self.words = vocabulary(self.rng)
        self.weights = list(
            itertools.accumulate(1 / (rank + 2.7) ** EXPONENT for rank in range(VOCABULARY))
        )
        self.pool = " ".join(self.draw(300_000))

    def draw(self, count: int) -> list[str]:
        """Return `count` words, common ones often."""
        return self.rng.choices(self.words, cum_weights=self.weights, k=count)

    def path(self) -> str:
        """Return a file name of two to four folders."""
        names = self.rng.choices(self.words[:20_000], k=self.rng.randint(2, 4))
        return "/".join(names) + self.rng.choice((".py", ".rs", ".ts", ".md", ".toml"))

    def prose(self, median: int) -> str:
        """Return text of around `median` words with a path or a hexadecimal id every 25 words."""
        count = max(2, min(2_000, int(self.rng.lognormvariate(0, 0.9) * median)))
        words = self.draw(count)
        for _ in range(count // 25):
            rare = self.path() if self.rng.random() < 0.5 else f"{self.rng.getrandbits(40):010x}"
            words[self.rng.randrange(count)] = rare
        return " ".join(words)

    def result(self) -> str:
        """Return a tool's output: about 1 kB, one in a thousand 100 kB to 1 MB."""
        size = int(self.rng.lognormvariate(6.9, 1.1))
        if self.rng.random() < 0.001:
            size = self.rng.randint(100_000, 1_000_000)
        start = self.rng.randrange(len(self.pool) // 2)
        whole, rest = divmod(max(20, size), len(self.pool) // 2)
        return self.pool[: len(self.pool) // 2] * whole + self.pool[start : start + rest]

    def arguments(self, tool: str) -> dict[str, Any]:
        """Return arguments as that tool has them."""
        match tool:
            case "Bash":
                return {
                    "command": f"cd {self.path()} && {self.prose(9)}",
                    "description": self.prose(6),
                }
            case "Edit":
                old, new = self.prose(18), self.prose(22)
                return {"file_path": self.path(), "old_string": old, "new_string": new}
            case "Write":
                return {"file_path": self.path(), "content": self.prose(90)}
            case "Grep" | "Glob":
                return {"pattern": self.prose(2), "path": self.path()}
            case "WebFetch":
                return {"url": f"example.invalid/{self.path()}", "prompt": self.prose(12)}
            case "Task":
                return {"description": self.prose(4), "prompt": self.prose(40)}
        return {"file_path": self.path(), "offset": self.rng.randrange(2_000), "limit": 200}


def turns(writer: Writer) -> Iterator[tuple[str, Any]]:
    """Yield (kind, payload) for ever: an owner's message, replies, calls with their results."""
    rng = writer.rng
    while True:
        yield "owner", writer.prose(22)
        for _ in range(rng.choices((0, 1, 2, 4, 8), (10, 25, 30, 25, 10))[0]):
            if rng.random() < 0.5:
                yield "assistant", writer.prose(24)
            tool = rng.choices(list(TOOLS), list(TOOLS.values()))[0]
            yield "call", (tool, writer.arguments(tool))
            label = rng.choices(CLASSES, RESULT_WEIGHTS)[0]
            yield "result", (writer.result(), label, tool == "WebFetch", rng.random() < 0.07)
        yield "assistant", writer.prose(60)


def native(kind: str, payload: Any, stamp: str, call: str) -> dict[str, Any]:
    """Return one record of memoryd's native log."""
    if kind in {"owner", "assistant"}:
        return {"ts": stamp, "kind": kind, "text": payload}
    if kind == "call":
        return {
            "ts": stamp,
            "kind": "tool_call",
            "call": call,
            "tool": payload[0],
            "args": payload[1],
        }
    text, name, untrusted, failed = payload
    own = {"ok": not failed, "class": name, "untrusted": untrusted, "text": text}
    return {"ts": stamp, "kind": "tool_result", "call": call, **own}


def claude(kind: str, payload: Any, stamp: str, call: str) -> dict[str, Any]:
    """Return one record as Claude Code writes it, without the envelope."""
    role = "user" if kind in {"owner", "result"} else "assistant"
    content: Any = payload
    if kind == "assistant":
        content = [{"type": "text", "text": payload}]
    elif kind == "call":
        content = [{"type": "tool_use", "id": call, "name": payload[0], "input": payload[1]}]
    elif kind == "result":
        block = {"tool_use_id": call, "type": "tool_result", "content": payload[0]}
        content = [{**block, "is_error": payload[3]}]
    return {"type": role, "message": {"role": role, "content": content}, "timestamp": stamp}


def session(writer: Writer, size: int, clock: list[float]) -> tuple[str, str, str, list[str]]:
    """Return (shape, project, session id, lines) of one session of `size` records."""
    rng = writer.rng
    shape = rng.choice(("sessions", "claude"))
    project = writer.words[500 + 7 * int(rng.paretovariate(1.2)) % 24]
    name = f"{rng.getrandbits(64):016x}"
    lines = []
    if shape == "sessions":
        head = {"ts": rfc3339(int(clock[0])), "kind": "session", "session": name}
        lines.append(head | {"project": project, "agent": "bench", "parent": None})
    parent, call = None, ""
    for kind, payload in itertools.islice(turns(writer), size):
        clock[0] += rng.expovariate(1 / 20_000)
        stamp = rfc3339(int(clock[0]))
        if kind == "call":
            call = f"call_{rng.getrandbits(48):012x}"
        if shape == "sessions":
            lines.append(native(kind, payload, stamp, call))
            continue
        uuid = str(UUID(int=rng.getrandbits(128), version=4))
        envelope = {
            "uuid": uuid,
            "parentUuid": parent,
            "sessionId": name,
            "cwd": f"/home/dev/{project}",
        }
        lines.append(claude(kind, payload, stamp, call) | envelope | {"isSidechain": False})
        parent = uuid
    return shape, project, name, [json.dumps(line, separators=(",", ":")) for line in lines]


def generate(folder: Path, records: int, seed: int = 1) -> int:
    """Write the corpus into `folder` (which may exist) and return the bytes of all logs."""
    writer = Writer(seed)
    clock = [float(START_MS)]
    written = size_in_bytes = 0
    while written < records:
        size = min(records - written, 4 + int(writer.rng.expovariate(1 / MEAN_SESSION)))
        shape, project, name, lines = session(writer, size, clock)
        target = folder / shape / project / f"{name}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        size_in_bytes += target.write_bytes(("\n".join(lines) + "\n").encode())
        written += size
    words = writer.words
    queries = {
        "common": words[0:10],
        "mid": words[400:800:40],
        "rare": words[20_000:40_000:2_000],
        "mid_common": [f"{words[i]} {words[i % 37]}" for i in range(400, 800, 40)],
        "five_or": [
            " ".join(words[j] for j in (i, 3 * i, 40 + i, 300 + i, 2_000 + i))
            for i in range(2, 22, 2)
        ],
        "twelve": [writer.prose(12) for _ in range(10)],
    }
    (folder / "queries.json").write_text(json.dumps(queries))
    return size_in_bytes


if __name__ == "__main__":
    target_folder, count, *rest = sys.argv[1:]
    total = generate(Path(target_folder), int(count), int(rest[0]) if rest else 1)
    print(f"{count} records, {total / 1e6:.1f} MB in {target_folder}")
