"""How far a lesson is to be believed: always derived from what was observed, never stored.

Human opinion moves the figure but writes neither evidence nor recurrence.
"""

LOWEST, HIGHEST = 0.05, 0.95


def confidence(evidence: int, recurrence: int, useful: int, against: int) -> float:
    """Return 0.5 + 0.1·evidence − 0.15·recurrence + 0.05·useful − 0.1·against, within 0.05 to 0.95.

    `evidence`: proven fixes; `recurrence`: charged failures after it; `against`: `wrong` and `outdated`.
    """
    raw = 0.5 + 0.1 * evidence - 0.15 * recurrence + 0.05 * useful - 0.1 * against
    return round(min(HIGHEST, max(LOWEST, raw)), 2)
