"""The nine settings and the counters that no table can give.

In: a connection. Out: settings as text, clamped when they are used; counters as deltas, written in the
transaction of what they count. A value that a person sets is checked by name; one that is stored is never
believed.
"""

from math import isfinite

import apsw

from memoryd.errors import BadRequest

DEFAULTS: dict[str, str] = {
    "quality_gate_enabled": "1",
    "lesson_snippet_injection": "1",
    "patternminer_enabled": "0",
    "tool_calls_dedup_enabled": "0",
    "llm_reflection_enabled": "0",
    "cross_project_enabled": "0",
    "deterministic_retrieval": "0",
    "pre_prompt_budget_tokens": "900",
    "archive_after_days": "30",
}
LEAST_BUDGET, MOST_BUDGET = 100, 4_000
COMPACTING_BUDGET = 2_000
METRICS = (
    *("tokens_injected_pre_prompt", "tokens_injected_compacting", "reflections_throttled"),
    *("duplicate_suppressions", "tool_calls_deduped", "patterns_mined", "patterns_causal"),
    *("causal_links", "memories_superseded", "injections_total", "injections_effective"),
    *("injections_ineffective", "patterns_promoted_new", "injections_inconclusive"),
    *("injections_blocked_seen", "injections_blocked_weak", "injections_blocked_recurrence"),
    *("injections_blocked_stale", "injections_blocked_ignored", "feedback_positive_total"),
    *("feedback_negative_total", "memories_archived"),
)


def every(connection: apsw.Connection) -> dict[str, str]:
    """Return all settings as they are stored, sorted by name; a missing one has its default."""
    stored = {str(k): str(v) for k, v in connection.execute("SELECT key, value FROM setting")}
    return dict(sorted((DEFAULTS | stored).items()))


def put(connection: apsw.Connection, key: str, value: str) -> None:
    """Store a setting. Raises: BadRequest that names an unknown key, or what its value must be."""
    if key not in DEFAULTS:
        raise BadRequest(f"there is no setting {key}", remedy=f"one of {', '.join(DEFAULTS)}")
    if key in ("pre_prompt_budget_tokens", "archive_after_days"):
        if _number(value) is None:
            raise BadRequest(f"{key} must be a number", remedy=f"its default is {DEFAULTS[key]}")
    elif value not in ("0", "1"):
        raise BadRequest(f"{key} must be 0 or 1", remedy=f"its default is {DEFAULTS[key]}")
    connection.execute(
        "INSERT INTO setting VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        (key, value),
    )


def on(connection: apsw.Connection, key: str) -> bool:
    """Say whether a setting is on: exactly ``1``."""
    return _stored(connection, key) == "1"


def budget(connection: apsw.Connection) -> int:
    """Return the tokens of a block before a prompt: rounded, 100 to 4,000; 900 for what is no number."""
    number = _number(_stored(connection, "pre_prompt_budget_tokens"))
    return 900 if number is None else max(LEAST_BUDGET, min(MOST_BUDGET, round(number)))


def archive_days(connection: apsw.Connection) -> float | None:
    """Return after how many days a stale lesson is archived; None: never. What is no number: 30."""
    number = _number(_stored(connection, "archive_after_days"))
    days = 30.0 if number is None else number
    return days if days > 0 else None


def count(connection: apsw.Connection, key: str, by: int = 1) -> None:
    """Add to a counter."""
    if by:
        connection.execute(
            "INSERT INTO metric VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
            (key, by),
        )


def counters(connection: apsw.Connection) -> dict[str, int]:
    """Return every counter."""
    stored = {str(k): int(v) for k, v in connection.execute("SELECT key, value FROM metric")}
    return {key: stored.get(key, 0) for key in METRICS}


def _stored(connection: apsw.Connection, key: str) -> str:
    found = connection.execute("SELECT value FROM setting WHERE key = ?", (key,)).get
    return DEFAULTS[key] if found is None else str(found)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) else None
