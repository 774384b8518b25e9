"""`bxctl status`: one screen that says whether memoryd is well, once or again and again.

In: the daemon's own account of itself. Out: up or not, how far behind, what it holds, what is wrong and what
to do about it (`status_views`).
"""

from bxctl import output, safe
from bxctl.context import Context
from bxctl.grammar import Command, Option
from bxctl.status_views import asked, screen
from memoryd import clock

STATUS_VERSION = 1


def status(context: Context, *, watch: bool) -> int:
    """Print what the daemon says of itself, once or until Ctrl-C. Raises: Unavailable when it is down."""
    if watch:
        from bxctl.watch import watched

        return watched(context)
    told, server = asked(context)
    if context.out.json:
        context.out.value("status", STATUS_VERSION, {**told, "versions": server["versions"]})
    else:
        context.out.show(screen(told, server, clock.now_ms()))
    _tell_versions(str(server["versions"]["memoryd"]))
    return 0


def _tell_versions(theirs: str) -> None:
    """Say so where the daemon is another version than this program, as after half an upgrade."""
    from importlib.metadata import version

    if theirs != (ours := version("memoryd")):
        output.say(f"memoryd is {safe.line(theirs)}, bxctl is {ours}; restart memoryd")


COMMANDS = (
    Command(
        "status",
        status,
        """Say whether memoryd is up, how far behind, what it holds and what is wrong.

Other sockets than the owner's are told only whether it is ready and how many rows they see.""",
        (
            ("bxctl status", "one screen"),
            ("bxctl status --watch", "the same each second, with how far long work is"),
            ("bxctl status --json | jq .behind", "how much is not indexed yet"),
        ),
        (Option("watch", "Draw it anew each second until Ctrl-C; on a terminal only."),),
    ),
)
