"""What the keeper of the index lets others know: rows that came in, the index that is served, a rebuild.

In: what the keeper has just done. Out: events of the topics ``record``, ``index`` and ``progress``. None of the
last two holds stored text; a rebuild's figures are the owner's alone.
"""

from collections.abc import Iterable

import trio

from memoryd.index.fresh import Fresh
from memoryd.serve.telling import Rebuilding, rebuild_view
from memoryd.serve.topics import Topics

PROGRESS_S = 0.5
"""How often the owner is told how far a rebuild is."""


class Announcer:
    """Tells `topics`; with None nobody follows, and nothing is told."""

    def __init__(self, topics: Topics | None) -> None:
        self._topics = topics

    @property
    def followed(self) -> bool:
        """Say whether somebody wants to know what rows come in."""
        return self._topics is not None and self._topics.wanted("record")

    def rows(self, found: Iterable[Fresh]) -> None:
        """Tell of rows that a committed turn brought."""
        if self._topics is not None:
            self._topics.records(found)

    def index(self, generation: str | None) -> None:
        """Tell which index is served from now on; None: none is."""
        if self._topics is not None:
            self._topics.publish("index", {"generation": generation}, labelled=False)

    async def rebuild(self, job: Rebuilding) -> None:
        """Tell the owner how far a rebuild is, until it has ended."""
        while job.state == "running":
            self.rebuilt(job)
            await trio.sleep(PROGRESS_S)

    def rebuilt(self, job: Rebuilding) -> None:
        """Tell the owner how a rebuild stands now."""
        if self._topics is not None:
            told = rebuild_view(job) or {}
            self._topics.publish("progress", told, owner=True, labelled=False)
