"""What lessons look like to a person: listings, a lesson, figures, what a block would tell and what not.

In: decoded answers (docs/protocol.md). Out: parts of `bxctl.layout`; every stored text passes `bxctl.safe`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from bxctl import safe, views
from bxctl.layout import BLANK, Cell, Grid, Para, Part, Span, cell, joined

Answer = dict[str, Any]
_REASONS = {
    "seen_this_session": "this session was told it",
    "ignored": "somebody chose to ignore it",
    "stale": "it is no longer active",
    "recurrence": "its error came again after it was told",
    "weak": "it says too little",
    "above_clearance": "it is above the session's class",
    "untrusted": "it is untrusted: call it useful first",
    "other_project": "it is another project's",
    "duplicate": "a better one of the same error is told",
    "budget": "it does not fit",
}


def line(text: str) -> Iterator[Part]:
    """Yield one line."""
    yield Para(cell(safe.line(text)))


def saved(told: Answer, classes: Sequence[str]) -> Iterator[Part]:
    """Yield the new lesson's id and label."""
    yield Para(joined((cell(told["id"], "id"), views.label(told["label"], classes)), "  "))


def listing(lessons: Sequence[Answer]) -> Iterator[Part]:
    """Yield lessons: type, how sure, id, and what each says."""
    for number, lesson in enumerate(lessons):
        if number:
            yield BLANK
        sure = f"{lesson['confidence']:.0%} sure" if "confidence" in lesson else ""
        yield Para(
            joined((cell(lesson["type"], "head"), cell(sure), cell(lesson["id"], "id")), "  ")
        )
        yield Para(cell(safe.text(lesson.get("content") or lesson.get("snippet") or "")), 2)


def whole(lesson: Answer, classes: Sequence[str]) -> Iterator[Part]:
    """Yield a lesson: its text, then what is known of it, a line each."""
    head = (
        cell(lesson["type"], "head"),
        cell(lesson["status"]),
        views.label(lesson["label"], classes),
        cell(lesson["id"], "id"),
    )
    yield Para(joined(head, "  "))
    yield Para(cell(safe.text(lesson["content"])), 2)
    yield BLANK
    told = (
        ("fixed by", lesson["fix_args"]),
        ("sure", _sure(lesson)),
        ("project", lesson["project_id"]),
        ("session", lesson["source_session"]),
        ("learned", lesson["created_at"]),
        ("verified", lesson["last_verified_at"]),
        ("origin", lesson["origin"]),
        ("replaced by", lesson["superseded_by"]),
    )  # fmt: skip
    yield _pairs((name, value) for name, value in told if value)


def figures(answer: Answer) -> Iterator[Part]:
    """Yield the figures at a glance."""
    kinds = ", ".join(
        f"{answer[f'memories_{name}']:,} {word}"
        for name, word in (("reflector", "observed"), ("causal", "proven"), ("pattern", "mined"),
                           ("agent", "written"))
    )  # fmt: skip
    yield Para((Span(f"{answer['memories']:,} lessons", "head"), Span(f" ({kinds})")))
    yield BLANK
    yield _pairs(
        (
            ("calls seen", f"{answer['tool_calls']:,}"),
            ("told", f"{answer['injections_total']:,} times"),
            ("helped", f"{answer['injections_effective']:,}"),
            ("did not", f"{answer['injections_ineffective']:,}"),
            ("nobody can say", f"{answer['injections_inconclusive']:,}"),
            ("not settled", f"{answer['injections_unmeasured']:,}"),
            ("prevented", f"{answer['injections_prevented']:,}"),
            ("precision", _rate(answer["precision_rate"])),
            ("coverage", _rate(answer["coverage_rate"])),
            ("refused", _counted(answer["blocked"])),
            (
                "opinions",
                f"{answer['feedback']['positive']} for, {answer['feedback']['negative']} against",
            ),
            (
                "out of use",
                f"{answer['memories_ignored']} ignored, {answer['memories_archived']} archived",
            ),
        )
    )


def account(answer: Answer) -> Iterator[Part]:
    """Yield the whole account, a group a paragraph."""
    for name, group in answer.items():
        if not isinstance(group, dict) or name == "label":
            continue
        yield Para(cell(safe.line(name), "head"))
        yield _pairs(
            (key, _counted(value) if isinstance(value, dict) else _plain(value))
            for key, value in group.items()
        )


def explained(answer: Answer) -> Iterator[Part]:
    """Yield why: the summary, then each failure and fix in order of time."""
    yield Para(cell(safe.text(answer["summary"]), "head"))
    yield Para(cell(f"sure: {_sure(answer)}"))
    for rule in answer["related_rules"]:
        yield Para(cell(safe.line(rule)))
    yield BLANK
    rows = [
        (
            cell(seen["event"], "bad" if seen["event"] == "failure" else "good"),
            cell(seen["ts"]),
            cell(safe.line(seen["session"]), "dim"),
        )
        for seen in answer["trace"]
    ]
    yield Grid(("", "", ""), rows, give=frozenset({2}))


def judged(answer: Answer) -> Iterator[Part]:
    """Yield what a verdict came to."""
    told = f"{answer['verdict']}; {answer['status']}, {answer['confidence']:.0%} sure"
    yield Para(joined((cell(told), cell(safe.line(answer["memory_id"]), "id")), "  "))


def traced(answer: Answer) -> Iterator[Part]:
    """Yield the text that would be told, then what would not be and why."""
    if answer.get("message"):
        yield Para(cell(safe.line(answer["message"])))
        return
    if answer["text"]:
        yield Para(cell(safe.text(answer["text"])))
        yield Para(cell(f"{answer['total_tokens']} of {answer['cap']} tokens", "dim"))
    else:
        yield Para(cell("nothing would be told", "dim"))
    rows = [
        (
            cell(safe.line(one["id"]), "id"),
            cell(one["type"]),
            cell(_REASONS.get(one["reason"], one["reason"])),
        )
        for one in answer["blocked"]
    ]
    if rows:
        yield BLANK
        yield Para(cell("not told:", "head"))
        yield Grid(("", "", ""), rows, give=frozenset({2}))


def settings(answer: Answer) -> Iterator[Part]:
    """Yield a setting a line."""
    rows = [(cell(safe.line(key)), cell(safe.line(value))) for key, value in answer.items()]
    yield Grid(("", ""), rows, indent=2)


def draft(answer: Answer) -> Iterator[Part]:
    """Yield the difference that a proposal would make."""
    for text in answer["diff"].splitlines():
        style = {"+": "good", "-": "bad"}.get(text[:1], "dim")
        yield Para(cell(safe.line(text), style))
    if answer["lines"] and "label" in answer:
        told = safe.line(answer["label"]["class"])
        yield Para(
            cell(f"from lessons of class {told}: whoever reads the file will know them", "dim")
        )


def _sure(told: Answer) -> str:
    counts = f"{told['evidence_count']} fixes, {told['recurrence_count']} returns"
    return f"{told['confidence']:.0%} ({counts})"


def _pairs(found: Any) -> Grid:
    rows: list[tuple[Cell, ...]] = [
        (cell(safe.line(str(name).replace("_", " ")), "dim"), cell(safe.line(str(value))))
        for name, value in found
    ]
    return Grid(("", ""), rows, give=frozenset({1}), indent=2)


def _counted(counts: dict[str, Any]) -> str:
    told = [f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items() if number]
    return ", ".join(told) or "none"


def _plain(value: object) -> str:
    return "nothing to divide by" if value is None else _short(value)


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _rate(rate: float | None) -> str:
    return "nothing was measured" if rate is None else f"{rate:.0%}"
