"""`bxctl doctor`: is everything on this machine as memoryd needs it, and if not, what to do.

In: the environment. Out: one line a check with its remedy, or JSON; exit code 1 when one failed. Nothing is
changed, and a daemon that is down is itself a finding.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from bxctl import safe
from bxctl.context import Context
from bxctl.grammar import Command
from bxctl.layout import Para, Part, Span, cell

if TYPE_CHECKING:
    from bxctl.doctor.finding import Check, Finding

DOCTOR_VERSION = 1
_STYLES = {"ok": "good", "warn": "class2", "fail": "bad", "skip": "dim"}


def doctor(context: Context) -> int:
    """Print every check; 1 when one failed."""
    from bxctl.doctor import checks

    scene = checks.scene(context)
    found = [(check, checks.looked(check, scene)) for check in checks.CHECKS]
    failed = [check.id for check, finding in found if finding.status == "fail"]
    if context.out.json:
        told = [
            {
                "id": check.id,
                "name": check.name,
                "status": finding.status,
                "detail": finding.detail,
                "remedy": finding.remedy,
            }
            for check, finding in found
        ]
        context.out.value("doctor", DOCTOR_VERSION, {"checks": told, "failed": failed})
    else:
        context.out.show(screen(found))
    return 1 if failed else 0


def screen(found: "Iterable[tuple[Check, Finding]]") -> Iterator[Part]:
    """Yield a line a check, and its remedy below it."""
    for check, finding in found:
        style = _STYLES[finding.status]
        lead = (Span(f"{finding.status:<4}", style), Span(f" {check.id}"))
        yield Para(cell(f"{check.name}: {safe.line(finding.detail)}"), 9, lead)
        if finding.remedy:
            yield Para(cell(f"remedy: {safe.line(finding.remedy)}", "dim"), 9)


COMMANDS = (
    Command(
        "doctor",
        doctor,
        """Check this machine and what memoryd keeps on it; nothing is changed.

One line a check: ok, warn (look at it), fail (a promise cannot be kept), skip (nothing to look at), with what
to do about it. Exits with 1 when a check fails; a daemon that is down is one.""",
        (
            ("bxctl doctor", "seventeen checks"),
            ("bxctl doctor --json | jq .failed", "which failed"),
        ),
    ),
)
