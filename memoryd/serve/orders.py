"""What signals ask of the daemon: SIGTERM and SIGINT to stop, SIGHUP to read the configuration again.

In: trio's receiver of signals. Out: `Orders`, which lives as long as the process, from one
configuration to the next: what comes while one goes down is done once the next is up.
"""

import os
import signal
from collections.abc import AsyncIterator


class Orders:
    """What signals have asked for: to `stop`, or to look at the configuration again."""

    def __init__(self, received: AsyncIterator[int]) -> None:
        self._received = received
        self.stop = self._look = False

    async def given(self) -> None:
        """Return once there is something to do: `stop` is set, or the configuration is to be read again."""
        while not (self.stop or self._look):
            self._take(await anext(self._received))
        self._look = False

    async def while_ending(self) -> None:
        """Take what comes while the daemon goes down: a second wish to stop ends the process as it is.

        Every file is written whole or not at all, so nothing is half done by that.
        """
        while True:
            number = await anext(self._received)
            if self.stop and number != signal.SIGHUP:
                os._exit(1)
            self._take(number)

    def _take(self, number: int) -> None:
        if number == signal.SIGHUP:
            self._look = True
        else:
            self.stop = True
