"""`bxctl mcp`: the memory as a server of the Model Context Protocol, on standard input and output.

In: requests of a harness. Out: protocol, and nothing else on standard output. It asks a socket like any client, an
agent's one by default: a server that a model uses must not hold the owner's.
"""

import gc
import importlib.metadata
import importlib.util
import os
import signal
from pathlib import Path

from bxctl.context import Context
from bxctl.grammar import Command, Option
from memoryd.errors import Unavailable

AGENTS_SOCKET = "agent"


def mcp(context: Context, *, log: str | None) -> int:
    """Serve until standard input ends. Raises: Unavailable where the extra is not installed."""
    if importlib.util.find_spec("mcp") is None:
        raise Unavailable(
            "bxctl mcp needs the official SDK, which is not installed",
            remedy="pip install 'memoryd[mcp]'",
        )
    asking = context._replace(socket=context.socket or AGENTS_SOCKET)
    # The SDK makes some hundred thousand lasting objects; looking through them for rubbish costs a tenth of it.
    gc.disable()
    # A plugin of somebody else's in this environment has no business in here, and costs a start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # A thread of the SDK's waits in a read of standard input, and Python would wait for it before it ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from memoryd.mcp.server import serve

    gc.freeze()
    gc.enable()
    serve(asking.daemon, named(str(asking.socket)), importlib.metadata.version("memoryd"), log)
    return 0


def named(socket: str) -> str:
    """Return the server's name, which carries its socket's: ``memoryd-agent``."""
    return f"memoryd-{Path(socket).stem}"


COMMANDS = (
    Command(
        "mcp",
        mcp,
        "Serve the memory over the Model Context Protocol, on standard input and output.\n\n"
        "Asks the socket `agent` unless --socket names another. Needs the extra memoryd[mcp].",
        (
            ("bxctl mcp", "through the socket `agent`"),
            ("bxctl mcp --socket reader", "through another one; the server is memoryd-reader"),
        ),
        (
            Option(
                "log",
                "The session's own log, below its folder of logs: its label decides what it may write.",
                "LOG",
            ),
        ),
    ),
)
