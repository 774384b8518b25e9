"""Ask the daemon, a connection a question: a restart of it in between is not noticed.

In: a method and its arguments. Out: the answer, or the daemon's error. A question that was sent is not sent again: an
edit may have been made. One that could not be sent, because nobody listens just now, waits a moment first.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from memoryd.client import Client
from memoryd.errors import Busy, Unavailable

PATIENCE_S = 1.5
"""How long a daemon that is being restarted is waited for; harnesses give a list of tools five seconds."""
PAUSE_S = 0.05
LOOK_S = 0.25
"""How often a daemon that is down is looked for, once somebody has been told so."""
ANSWER_MS = 30_000


class Link:
    """The way to one socket; `connect` makes a connection, or raises what a person is told."""

    def __init__(self, connect: Callable[[], Client]) -> None:
        """Keep how to connect; nothing is opened yet."""
        self._connect = connect

    async def ask(self, method: str, /, **args: Any) -> Any:
        """Return the answer. Raises: MemorydError."""
        return (await self._asked(method, args))[1]

    async def server(self) -> dict[str, Any]:
        """Return the daemon's answer to ``hello``. Raises: MemorydError."""
        return (await self._asked(None, {}))[0]

    async def there(self) -> None:
        """Return once the daemon answers. Raises: MemorydError for what waiting does not mend."""
        while True:
            try:
                await anyio.to_thread.run_sync(self._connect_once)
            except (Unavailable, Busy):
                await anyio.sleep(LOOK_S)
            else:
                return

    def _connect_once(self) -> None:
        self._connect().close()

    async def _asked(self, method: str | None, args: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        memory = await self._connected()
        with memory:  # closing it takes the question back, where the harness cancels it
            if method is None:
                return memory.server, None
            call = partial(memory.call, method, deadline_ms=ANSWER_MS, **args)
            return memory.server, await anyio.to_thread.run_sync(call, abandon_on_cancel=True)

    async def _connected(self) -> Client:
        ends = anyio.current_time() + PATIENCE_S
        while True:
            try:
                return await anyio.to_thread.run_sync(self._connect)
            except (Unavailable, Busy):
                if anyio.current_time() >= ends:
                    raise
                await anyio.sleep(PAUSE_S)
