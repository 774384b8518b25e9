"""No method of lessons tells a reader anything of what lies above it, whatever is read or written in between.

Two worlds live through the same visible events; in one of them sessions above the reader fail, mend, save, recall,
are told, rest, are judged and forgotten as well. Every answer that the reader gets must be the same, byte for byte.
"""

import random
from pathlib import Path
from typing import Any

import pytest
import trio

from memoryd import clock
from memoryd.config import Socket
from memoryd.labels import Label
from memoryd.lessons import forget
from tests.support.faculty import TOOLS, Faculty, faculty
from tests.support.teaching import LOW, TS2304

ERRORS = (
    TS2304,
    "tests/a.py:7: ModuleNotFoundError: No module named 'httpx'",
    "zsh: command not found: rg",
    "something the tool said",
)
COMMANDS = ("npm run build", "pytest -q", "rg x", "make")
QUERIES = ("the build fails again", "pytest fails", "command not found", "linter", "fails")
RULES = ("run the linter", "pytest fails without httpx", "rg is not installed: use grep")
HIDDEN = {"high": Label(3, False), "untrusted": Label(0, True), "both": Label(2, True)}
READER = Socket("low", "internal", TOOLS, untrusted="exclude")
STEPS = 40


def act(here: Faculty, chance: random.Random, session: str, label: Label, log: str | None) -> None:
    """Let a session fail, or edit and mend, or rest."""
    world, at = here.world, chance.randrange(len(ERRORS))
    match chance.randrange(4):
        case 0 | 1:
            world.fail(session, text=ERRORS[at], command=COMMANDS[at], label=label, log=log)
        case 2:
            world.edit(session, label=label, log=log)
            world.succeed(session, command=COMMANDS[at], label=label, log=log)
        case _:
            # Of a session that readers below know, only they may see when it rests: both worlds let it.
            world.idle(session if log is None else "elsewhere")


async def hidden(here: Faculty, chance: random.Random, label: Label, number: int) -> None:
    """Do something that nobody below `label` may notice; the world's clock stands still."""
    world = here.world
    now, n = world.now, world.n
    world.n = 10_000 + 100 * number
    session = chance.choice(("s0", "s1", "elsewhere"))
    caller = {"log": f"{chance.choice(('top', 'above'))}.jsonl", "n": 1}
    for name in ("top.jsonl", "above.jsonl"):
        here.keeper.labels[name] = label
    said = {"class": "secret" if label.level == 3 else "private", "untrusted": label.untrusted}
    said = {"class": "public", "untrusted": True} if label.level == 0 else said
    rows = world.all("SELECT row, id FROM lesson WHERE level = ? AND untrusted = ?", *label)
    query = chance.choice(QUERIES)
    match chance.randrange(7):
        case 0 | 1 | 2:
            act(here, chance, session, label, "hidden")
        case 3:
            rule = chance.choice(RULES)
            await here.owner.ask("lessons.save", type="rule", content=rule, label=said, owner=True)
        case 4:
            more = {} if label.level == 0 else {"max_class": said["class"]}
            await here.owner.ask("lessons.recall", query=query, caller=caller, **more)
        case 5:
            asked = {
                "level": max(1, label.level),
                "owner": False,
                "log": caller["log"],
                "label": label,
            }
            await trio.to_thread.run_sync(lambda: here.block(query=query, **asked))
        case _:
            for number_, name in rows[:1]:
                if chance.random() < 0.5:
                    verdict = {"memory_id": name, "verdict": chance.choice(("wrong", "ignore"))}
                    await here.owner.ask("lessons.feedback", **verdict)
                else:
                    forget.delete(world.connection, {number_: name})
    world.now, world.n = now, n


async def asked(here: Faculty, chance: random.Random, hides: list[str], label: Label) -> list[Any]:
    """Return what the reader is told by one of the methods, chosen by chance."""
    lessons = [
        name
        for (name,) in here.world.all(
            "SELECT id FROM lesson WHERE level <= 1 AND untrusted = 0 ORDER BY id"
        )
    ]
    query = chance.choice(QUERIES)
    some = chance.choice(lessons) if lessons else "none"
    caller = {"log": f"s{chance.randrange(3)}.jsonl", "n": 3}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("query", {"query": query, "evidence": True, "include_archived": True, "include_superseded": True}),
        ("query", {"query": query, "full": True, "limit": 2}),
        ("get", {"id": some}),
        ("get", {"id": hides[0] if hides else "none"}),
        ("recall", {"query": query, "caller": caller, "max_class": "internal"}),
        ("recall", {"query": "", "limit": 1}),
        ("status", {}),
        ("why", {"query": query}),
        ("trace", {"query": query, "project": "/w/app", "caller": caller}),
        ("audit", {"verbose": True}),
        ("config", {}),
        ("save", {"type": "rule", "content": chance.choice(RULES), "caller": caller}),
        ("feedback", {"memory_id": some, "verdict": chance.choice(("useful", "wrong", "ignore")), "caller": caller}),
        ("feedback", {"memory_id": hides[0] if hides else "none", "verdict": "useful", "caller": caller}),
        ("idle", {"caller": caller, "end": chance.random() < 0.2}),
    ]  # fmt: skip
    name, args = chance.choice(calls)
    told: list[Any] = [name, await here.answer(f"lessons.{name}", **args)]
    if chance.random() < 0.3:
        told += await through_the_owners_socket(here, chance, label.level)
    if chance.random() < 0.2:
        question = {"owner": False, "level": 1, "untrusted": "exclude", "log": caller["log"],
                    "label": LOW, "query": query}  # fmt: skip
        offered = await trio.to_thread.run_sync(lambda: here.block(**question))
        told += [offered.items, list(offered.refused)]
    return told


BUNDLE = "---\nid: {}\ntype: rule\n---\n\n{}\n"


async def through_the_owners_socket(here: Faculty, chance: random.Random, above: int) -> list[Any]:
    """Return what the owner's own methods tell a session below, and how they refuse the reader's socket."""
    session, kind = f"s{chance.randrange(3)}", chance.choice(("okf", "markdown"))
    caller, low = {"log": f"{session}.jsonl", "n": 3}, {"class": "public", "untrusted": False}
    bundle = BUNDLE.format(here.known_id, chance.choice(RULES))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("export", {"format": kind, "max_class": "internal"}),
        ("export", {"format": kind, "caller": caller}),
        ("propose", {"project": "/w/app", "file": str(here.file), "caller": caller}),
        ("import", {"bundle": bundle, "label": low, "caller": caller}),
        ("import", {"bundle": bundle, "caller": caller}),
    ]
    if above:  # what is untrusted is told there to a session of its class
        calls.append(("retrospective", {"caller": caller}))
    name, args = chance.choice(calls)
    error, answer = await here.owner.answer(f"lessons.{name}", **args)
    told: list[Any] = [name, error, answer]
    if answer is not None and "file_path" in answer:
        path = trio.Path(answer.pop("file_path"))
        told += [path.name, await path.read_text("utf-8")]
    if (
        name == "import"
    ):  # what is not there yet gets an id of its own time; its words are what counts
        told.append(
            here.world.all(
                "SELECT type, content, fingerprint, project FROM lesson WHERE origin = 'imported' "
                "AND level = 0 AND untrusted = 0 ORDER BY content"
            )
        )
    asked_of = [*calls, ("config", {"action": "set", "key": "archive_after_days", "value": "3"}),
                ("retrospective", {"session": "hidden"}), ("retrospective", {"session": session})]  # fmt: skip
    name, args = chance.choice(asked_of)
    return [*told, name, await here.answer(f"lessons.{name}", **args)]


def without_hidden_id(told: list[Any], hides: list[str]) -> str:
    """Return an answer as text; a hidden id that was asked for is a name like any other."""
    text = repr(told)
    for name in hides:
        text = text.replace(name, "none")
    return text


def differing(one: str, other: str) -> str:
    """Return where two answers part."""
    at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    return (
        f"{one[:30]} … {one[max(0, at - 150) : at + 60]!r} … {other[max(0, at - 20) : at + 60]!r}"
    )


@pytest.mark.parametrize("label", list(HIDDEN), ids=list(HIDDEN))
@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 20))]
)
async def test_what_is_hidden_changes_no_byte_of_any_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, label: str
) -> None:
    homes = [tmp_path / name for name in ("plain", "mixed")]
    for home in homes:
        home.mkdir()
    async with faculty(homes[0], READER) as plain, faculty(homes[1], READER) as mixed:
        plain.file = mixed.file = tmp_path / "AGENTS.md"
        secret = random.Random(f"{seed} {label}")
        monkeypatch.setattr(clock, "now_ms", lambda: plain.world.now)
        for step in range(STEPS):
            for number in range(2):
                await hidden(mixed, secret, HIDDEN[label], 2 * step + number)
            hides = [
                name
                for (name,) in mixed.world.all(
                    "SELECT id FROM lesson WHERE level > 1 OR untrusted = 1 ORDER BY id LIMIT 1"
                )
            ]
            told = []
            plain.known_id = mixed.known_id = hides[0] if hides else "none"
            for here in (plain, mixed):
                chance = random.Random(f"{seed} {step}")
                if chance.random() < 0.6:
                    act(here, chance, f"s{chance.randrange(3)}", LOW, None)
                told.append(
                    await asked(here, chance, hides if here is mixed else [], HIDDEN[label])
                )
            plainly, mixedly = without_hidden_id(told[0], []), without_hidden_id(told[1], hides)
            assert plainly == mixedly, differing(plainly, mixedly)
            plain.world.now = mixed.world.now = plain.world.now + 1_000
        assert plain.world.now == mixed.world.now
        counts = [here.world.one("count(*)", "1") for here in (plain, mixed)]
        assert counts[1] > counts[0] > 0
