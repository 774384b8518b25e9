"""The corpus on which memoryd and its peers are held side by side: sessions as Claude Code keeps them.

In: a home folder, how many sessions and how many records each. Out: `HOME/.claude/projects/...`, and what was
hidden there (`Made`): 24 needles, each with the one session that holds it, of eight kinds; words that only a
result, only thinking or only a secret in a call's arguments holds, which no index should have. One line is cut
in its middle, one result is about 1 MB long. The same arguments give the same bytes, so does each machine.
"""

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from memoryd.clock import rfc3339

SESSIONS, RECORDS, PROJECTS = 200, 100, 12
NEEDLES = 24
PROBES = 10
BEGAN_MS = 1_760_000_000_000
HOUR_MS = 3_600_000
_CUT, _LONG = 11, 9
"""Sessions with a line cut in its middle, and with a very long result."""
_THINGS = """ledger beacon turbine harbour lattice pigment quarry orchard rivet saddle trellis vessel walnut
anvil bellows cabinet dynamo easel furnace gasket hinge inlet jigsaw kettle lantern magnet nozzle oboe pulley
quilt rudder spindle thimble urn valve winch yoke zipper archive bracket canal derrick estuary ferry girder
hopper ingot jetty kiln lever mortar notch outlet piston quay ratchet sluice tenon utensil vault wharf axle
barrel crank drum flange gauge hatch iron joint knob latch mast nail oar plank rack shaft tray wedge""".split()
_DEEDS = """adjust balance calibrate detach empty fasten grind hoist inspect join knead loosen mount notch
oil paint rinse sand tighten unload varnish weld bend clamp drill engrave fold glue heat index jam level mix
order press question repair seal test undo vent wash""".split()
_KINDS = """brittle crooked dented early faded greasy hollow inner jagged leaky mild narrow oval patchy quiet
rusty shallow tarnished uneven vacant warped worn blunt cold dusty exposed frail grey heavy idle""".split()
_SMALL = """the a of and then we it should before after with from which when because into please can you
why does not any more here again still this that both all now only""".split()
_FILES = (
    "src/{t}/{d}_{t}.py tests/test_{t}.py crates/{t}/src/{d}.rs web/{t}/{d}.tsx docs/{t}.md".split()
)
_SOUNDS = "bo cha du fei gli hu jo kre la mi nu pra qui ro sle ti vu wa xe zo".split()
_SAFE = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
_TOOLS = ("Bash", "Read", "Edit", "Grep", "WebFetch")


class Needle(msgspec.Struct, frozen=True):
    """What is asked, and the session that answers it."""

    kind: str
    query: str
    session: str


class Made(msgspec.Struct, frozen=True):
    """What lies in a corpus: how many lines, what is to be found, and what is not (probes by kind)."""

    records: int
    needles: list[Needle]
    probes: Mapping[str, list[str]]


class Draw:
    """Draws words, sentences and names from one random generator."""

    def __init__(self, seed: int) -> None:
        """Start from `seed`."""
        self.rng = random.Random(seed)

    def name(self) -> str:
        """Return a word that stands nowhere else."""
        return "".join(self.rng.choices(_SOUNDS, k=5)) + f"{self.rng.randrange(1_000):03d}"

    def uuid(self) -> str:
        """Return a UUID."""
        return str(UUID(int=self.rng.getrandbits(128), version=4))

    def file(self) -> str:
        """Return the path of a file."""
        return self.rng.choice(_FILES).format(t=self.rng.choice(_THINGS), d=self.rng.choice(_DEEDS))

    def sentence(self) -> str:
        """Return 6 to 18 words, now and then with a path."""
        pools = self.rng.choices(
            (_SMALL, _THINGS, _DEEDS, _KINDS), (45, 28, 15, 12), k=self.rng.randint(6, 18)
        )
        words = [self.rng.choice(pool) for pool in pools]
        words += [f"`{self.file()}`"] if self.rng.random() < 0.25 else []
        return " ".join(words).capitalize() + self.rng.choice(".?!")

    def text(self, most: int) -> str:
        """Return one to `most` sentences."""
        return " ".join(self.sentence() for _ in range(self.rng.randint(1, most)))


def needle(kind: str, draw: Draw) -> tuple[str, tuple[str, ...]]:
    """Return a question of a kind, and the sentences that hold its answer, twenty records apart."""
    one, other = draw.name(), draw.name()
    thing, deed = draw.rng.choice(_THINGS), draw.rng.choice(_DEEDS)
    cjk = "".join(chr(draw.rng.randrange(0x4E00, 0x9FA0)) for _ in range(6))
    cyrillic = "".join(chr(draw.rng.randrange(0x430, 0x450)) for _ in range(9))
    return {
        "rare word": (one, (f"The project goes by {one} until the release.",)),
        "phrase": (f"{one} {other} {thing}", (f"Nobody greased the {one} {other} {thing}.",)),
        "identifier": (f"{one}_{deed}_{thing}", (f"`{one}_{deed}_{thing}()` runs twice.",)),
        "path": (f"src/{one}/{thing}.py", (f"See src/{one}/{thing}.py, line 12.",)),
        "error": (f"KeyError: '{one}'", (f"It ends with KeyError: '{one}' at start.",)),
        "Chinese": (cjk, (f"关于{cjk}的问题还在",)),
        "Cyrillic": (cyrillic, (f"Когда {cyrillic} остановится?",)),
        "words apart": (f"{one} {other}", (f"Leave {one} alone.", f"And think of {other}.")),
    }[kind]


KINDS = "rare word,phrase,identifier,path,error,Chinese,Cyrillic,words apart".split(",")


def write(
    home: Path,
    *,
    sessions: int = SESSIONS,
    records: int = RECORDS,
    began_ms: int = BEGAN_MS,
    seed: int = 11,
) -> Made:
    """Write the corpus into `home`, which may exist; sessions begin an hour apart from `began_ms` on."""
    draw = Draw(seed)
    needles: list[Needle] = []
    probes: dict[str, list[str]] = {"secrets": [], "results": [], "thinking": []}
    written = 0
    every = max(1, sessions // NEEDLES)
    for number in range(sessions):
        session, project = draw.uuid(), f"/home/dev/p{number % PROJECTS:02d}"
        planted: dict[int, str] = {}
        if number % every == 0 and len(needles) < NEEDLES:
            kind = KINDS[len(needles) % len(KINDS)]
            query, told = needle(kind, draw)
            at = 4 * draw.rng.randrange(2, records // 4 - 6)
            planted = {at + 20 * place: sentence for place, sentence in enumerate(told)}
            needles.append(Needle(kind, query, session))
        hidden = {}
        if number % (sessions // PROBES or 1) == 1:
            hidden = {kind: draw.name() for kind in ("results", "thinking")}
            hidden["secrets"] = "sk-ant-api03-" + "".join(draw.rng.choices(_SAFE, k=40))
            for kind, word in hidden.items():
                probes[kind].append(word)
        began = began_ms + number * HOUR_MS
        lines = list(_session(draw, _Told(session, project, records, planted, hidden, began)))
        if number == _CUT and every > 1:  # a needle behind it would be above what is told
            lines.insert(5, '{"type":"user","message":{"role":"user","content":"cut here')
        if number == _LONG:
            lines[6] = lines[6].replace('"content": "', '"content": "' + "long output " * 90_000, 1)
        folder = home / ".claude" / "projects" / project.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{session}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        written += len(lines)
    return Made(written, needles, probes)


class _Told(msgspec.Struct, frozen=True):
    """One session: its name, folder, records, sentences and probes to be planted, and when it began."""

    session: str
    project: str
    records: int
    planted: Mapping[int, str]
    hidden: Mapping[str, str]
    began: int


def _session(draw: Draw, told: _Told) -> Iterator[str]:
    """Yield the lines of a session: a prompt, a call, its result, a reply, and so on."""
    moment, parent, call = told.began, None, ""
    for at in range(told.records):
        extra = told.planted.get(at, "")
        match at % 4:
            case 0:
                role, content = "user", f"{draw.text(4)} {extra}".strip()
            case 1:
                role, call = "assistant", f"toolu_{draw.uuid()[:16]}"
                content = [_call(draw, call, told.hidden.get("secrets") if at == 1 else None)]
            case 2:
                role = "user"
                word = told.hidden.get("results", "") if at == 10 else ""
                output = "\n".join(draw.sentence() for _ in range(draw.rng.randint(3, 25))) + word
                content = [{"type": "tool_result", "tool_use_id": call, "content": output}]
            case _:
                role, content = "assistant", [{"type": "text", "text": draw.text(5)}]
                if at == 15 and "thinking" in told.hidden:
                    thought = f"What if {told.hidden['thinking']} did it?"
                    content.insert(0, {"type": "thinking", "thinking": thought, "signature": "x"})
        moment += draw.rng.randint(1_000, 40_000)
        record = _record(told, role, content) | {"parentUuid": parent, "uuid": draw.uuid()}
        yield json.dumps(record | {"timestamp": rfc3339(moment)}, ensure_ascii=False)
        parent = record["uuid"]


def _call(draw: Draw, call: str, secret: str | None) -> dict[str, Any]:
    tool = "Bash" if secret else draw.rng.choice(_TOOLS)
    args = {"file_path": f"/home/dev/{draw.file()}"}
    if tool == "Bash":
        done = f"export API_KEY={secret} && ./deploy.sh" if secret else f"pytest -q {draw.file()}"
        args = {"command": done, "description": draw.sentence()}
    return {"type": "tool_use", "id": call, "name": tool, "input": args}


def _record(told: _Told, role: str, content: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"type": "message", "model": "model", "stop_reason": None}
    return {
        "isSidechain": False,
        "userType": "external",
        "cwd": told.project,
        "sessionId": told.session,
        "version": "2.1.0",
        "gitBranch": "main",
        "type": role,
        "message": message,
    }
