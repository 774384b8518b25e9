"""Looks through the whole index, at the start and once a day: a damaged one is set aside and rebuilt.

In: the keeper of the index, its readers. Out: nothing while all is well. Soon after the start tables are held against
each other, which reads the file once; a while later, and then each day, also every word against its text, which
costs half of what a rebuild does and happens in a reader's thread, so that nobody waits for it. A machine that is
switched off each night is looked through as well, and so is what a failing disk has left, within a quarter of an hour.
"""

from typing import Protocol

import structlog
import trio

from memoryd.db import Deadline
from memoryd.errors import MemorydError
from memoryd.index import schema
from memoryd.index.search import Reader
from memoryd.serve.readers import Readers

DAY_S = 86_400.0
"""How long between two looks."""
TABLES_S = 1.0
"""How long after the index is served tables are looked at first: whoever waited for the daemon asks now."""
WORDS_S = 900.0
"""How long after the start words are looked at first: by then the work of the start is done."""

log = structlog.get_logger()


class Keeper(Protocol):
    """Who keeps the index, as an inspector sees it."""

    @property
    def generation(self) -> str:
        """Return the name of what is served; "" where nothing is."""

    async def served(self) -> None:
        """Return once an index is served."""

    async def mended(self) -> None:
        """Return once indexing has gone on after a fault; at once where it has since the last call."""

    async def distrust(self) -> None:
        """Serve nothing, and set the index aside, so that it is rebuilt."""

    async def purge(self) -> None:
        """Have the words of deleted rows taken out of the file."""


async def look_after(keeper: Keeper, readers: Readers, classes: int) -> None:
    """Look soon, a while later, every day, and after each fault of the disk; never returns."""
    await keeper.served()
    await trio.sleep(TABLES_S)
    await keeper.served()
    await look(keeper, readers, classes, words=False)
    await trio.sleep(WORDS_S)
    while True:
        await keeper.served()
        await look(keeper, readers, classes, words=True)
        await trio.sleep(WORDS_S)  # a disk that comes and goes is no reason to look all the time
        with trio.move_on_after(DAY_S - WORDS_S):
            await keeper.mended()


async def look(keeper: Keeper, readers: Readers, classes: int, *, words: bool) -> None:
    """Look once; with `words` also have what was deleted taken out of the file."""
    generation, deadline = keeper.generation, Deadline()

    def work(reader: Reader) -> bool:
        return schema.healthy(reader.connection, classes, deadline, words=words)

    try:
        well = await readers.read(work, deadline)
    except trio.Cancelled:
        deadline.cancel()
        raise
    except MemorydError as error:
        log.warning("the index could not be looked through", code=error.code)
        return
    if generation != keeper.generation:
        return  # another has taken its place meanwhile
    if not well:
        log.warning("the index is damaged; it is set aside and rebuilt")
        await keeper.distrust()
    elif words:
        await keeper.purge()
