"""What a prompt would be told: one function for the block, for `trace` and for a replay.

In: a connection that is only read, a reader, and `Ask`. Out: `Plan`: the text, what is in it, what was refused
and why. Whoever shows the text writes the ledger with the same plan (`memoryd.lessons.ledger`), in one
transaction; `trace` does not, and so predicts exactly the next block.
"""

from collections.abc import Sequence

import apsw
import msgspec

from memoryd import quoting
from memoryd.labels import LOWEST, Label
from memoryd.lessons import gate, rank, settings, suggest
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson

HOOKS = ("pre_prompt", "compacting", "pull")
HEADING = "# lessons"
_TOP = 7


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A question on behalf of a session. `cap` None: the setting's tokens (2,000 when compacting).

    `label`: the session's own, joined with all that decides what it is told. Readers below that learn nothing
    of the telling: no row of the ledger, no refusal, no bump.
    """

    query: str
    session: str
    project: str
    now: int
    hook: str = "pre_prompt"
    cap: int | None = None
    label: Label = LOWEST


class Shown(msgspec.Struct, frozen=True):
    """A lesson that is let in, its text (not quoted yet), and what that costs in tokens once it is."""

    lesson: Lesson
    text: str
    tokens: int


class Refused(msgspec.Struct, frozen=True):
    """A lesson that is not shown, and why."""

    lesson: Lesson
    reason: str


class Plan(msgspec.Struct, frozen=True):
    """What to tell. `text` "" is nothing; `label` is the join of all that stands in it."""

    ask: Ask
    cap: int
    shown: tuple[Shown, ...]
    refused: tuple[Refused, ...]
    suggestion: str
    text: str
    tokens: int
    label: Label
    suggested: Label = LOWEST
    """The label of the suggestion."""


def estimate(text: str) -> int:
    """Return about how many tokens a model makes of `text`: UTF-8 bytes over 3.5, rounded up."""
    return _tokens(_bytes(text))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _tokens(size: int) -> int:
    return -(-2 * size // 7)


def plan(connection: apsw.Connection, reader: Reader, ask: Ask) -> Plan:
    """Return what `ask` is to be told. Changes nothing."""
    cap = _cap(connection, ask)
    here = circumstances(connection, reader, ask)
    wide = Reader(_TOP, "include", ("*",), owner=True) if reader.owner else None
    fits = rank.candidates(
        connection,
        _injectable(reader),
        ask.query,
        ask.now,
        project=ask.project,
        sees=wide or reader,
    )
    judged = gate.judge([one.lesson for one in fits], here)
    heading = suggest.text(connection, reader, ask.session)
    heading = heading if estimate(block(heading, [])) <= cap else ""
    snippet = settings.on(connection, "lesson_snippet_injection")
    shown, over = _fill(
        [lesson for lesson, reason in judged if reason is None], cap, heading, snippet
    )
    refused = tuple(Refused(lesson, reason) for lesson, reason in judged if reason is not None)
    text = block(heading, shown)
    label = suggested = suggest.label(connection, reader, ask.session) if heading else LOWEST
    for one in shown:
        label = label.join(one.lesson.label)
    return Plan(
        ask, cap, tuple(shown), refused + tuple(over), heading, text, estimate(text), label, suggested
    )  # fmt: skip


def circumstances(connection: apsw.Connection, reader: Reader, ask: Ask) -> gate.Circumstances:
    """Return what the gate must know, from the ledger and the calls: a restart forgets nothing.

    A question on behalf of no session ("") has been told nothing.
    """
    told = list(
        connection.execute(
            "SELECT lesson, fingerprint, max(at) FROM injection WHERE session = ? GROUP BY lesson",
            (ask.session or None,),
        )
    )
    latest: dict[str, int] = {}
    for _, fingerprint, at in told:
        latest[str(fingerprint)] = max(int(at), latest.get(str(fingerprint), 0))
    recurred = [
        fingerprint
        for fingerprint, at in latest.items()
        if connection.execute(
            f"SELECT 1 FROM failed WHERE session = ? AND error = ? AND at >= ? "
            f"AND {reader.where('failed')} LIMIT 1",
            (ask.session, fingerprint, at),
        ).get
    ]
    return gate.Circumstances(
        reader,
        ask.project,
        frozenset(str(lesson) for lesson, _, _ in told),
        frozenset(recurred),
        settings.on(connection, "quality_gate_enabled"),
        settings.on(connection, "cross_project_enabled"),
    )


def _injectable(reader: Reader) -> Reader:
    return msgspec.structs.replace(reader, untrusted="exclude")


def _cap(connection: apsw.Connection, ask: Ask) -> int:
    usual = settings.COMPACTING_BUDGET if ask.hook == "compacting" else settings.budget(connection)
    return usual if ask.cap is None else max(0, ask.cap)


def _fill(
    lessons: list[Lesson], cap: int, heading: str, snippet: bool
) -> tuple[list[Shown], list[Refused]]:
    """Take lessons in order while the whole block stays within `cap`; what does not fit is refused."""
    shown: list[Shown] = []
    over: list[Refused] = []
    taken = _bytes(block(heading, []) or HEADING)
    for lesson in lessons:
        text = printed(lesson, snippet=snippet)
        size = _bytes("\n".join(_lines(lesson.id, text)))
        if _tokens(taken + 1 + size) > cap:
            over.append(Refused(lesson, gate.BUDGET))
        else:
            shown.append(Shown(lesson, text, _tokens(size)))
            taken += 1 + size
    return shown, over


def printed(lesson: Lesson, *, snippet: bool) -> str:
    """Return a lesson as a block tells it: its type, its first two lines and its fix, or the whole."""
    lines = [line.strip() for line in lesson.content.splitlines() if line.strip()]
    if snippet:
        first = lines[:2]
        lines = first + [line for line in lines[2:] if line.startswith("Fixed by:")][:1]
    if lesson.type == "error" and lesson.fix_args:
        lines.append(f"Fixed by: {lesson.fix_args}")
    mark = " (low confidence)" if gate.low_confidence(lesson) else ""
    return "\n".join((f"[{lesson.type}]{mark}", *lines))


def escaped(text: str) -> str:
    """Return `text` so that it can close no tag and open none."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def block(suggestion: str, shown: Sequence[Shown]) -> str:
    """Return the lessons' part of a memory block, line by line what `recall.block` makes of it.

    Each line of stored text is quoted (`memoryd.quoting`), so that it can close nothing and open nothing.
    """
    told = [("suggestion", suggestion)] if suggestion else []
    told += [(one.lesson.id, one.text) for one in shown]
    lines = [line for name, text in told for line in _lines(name, text)]
    return "\n".join((HEADING, *lines)) if lines else ""


def _lines(name: str, text: str) -> list[str]:
    return [f"## {name}", *quoting.quoted(text)]


def as_value(planned: Plan, reader: Reader) -> dict[str, object]:
    """Return a plan as `trace` tells it: ids, types, tokens and reasons; of hidden lessons only to the owner."""
    told = [
        one
        for one in planned.refused
        if reader.owner or reader.covers(one.lesson.label, one.lesson.project)
    ]
    return {
        "query": planned.ask.query,
        "hook": planned.ask.hook,
        "tag": "memory" if planned.ask.hook == "compacting" else "context",
        "cap": planned.cap,
        "would_inject": bool(planned.text),
        "total_tokens": planned.tokens,
        "text": planned.text,
        "suggestion": planned.suggestion,
        "admitted": [
            {"id": o.lesson.id, "type": o.lesson.type, "tokens": o.tokens, "decision": "admitted"}
            for o in planned.shown
        ],
        "blocked": [
            {"id": o.lesson.id, "type": o.lesson.type, "tokens": estimate(o.lesson.content),
             "decision": "blocked", "reason": o.reason}
            for o in told
        ],
    }  # fmt: skip
