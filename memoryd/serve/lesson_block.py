"""What the lessons give to a memory block: planned, and written into the ledger in the same transaction.

In: the block's question. Out: `Offered`: a suggestion that waits for the session, the lessons that the gate let
in, in order, and what it refused. The plan measures its text as the block renders it, so that what is planned is
told, and what is told is in the ledger. A question on behalf of no session is a look: it writes nothing.
"""

from collections.abc import Iterator
from typing import Protocol

import apsw
import trio

from memoryd import clock
from memoryd.index import Known
from memoryd.labels import LOWEST, Classes
from memoryd.lessons import ledger, plan
from memoryd.lessons.plan import Plan
from memoryd.lessons.reader import Reader
from memoryd.recall.block import Item, Left, Offered, Question
from memoryd.serve.lesson_reads import Who
from memoryd.serve.tutor import Tutor

SUGGESTION = "suggestion"
"""What the item of a suggestion is called, as no lesson can be."""


class Named(Protocol):
    """Who knows which session's log it is."""

    def named(self, log: str) -> list[tuple[int, Known]]:
        """Return the logs at this path."""

    def known(self) -> dict[int, Known]:
        """Return all logs."""


class BlockLessons:
    """The lessons as the block sees them."""

    def __init__(self, tutor: Tutor, keeper: Named, classes: Classes) -> None:
        self._tutor, self._keeper, self._classes = tutor, keeper, classes

    def offered(self, question: Question) -> Offered:
        """Return what a block may tell of lessons; from a worker thread. Without a database: nothing."""
        if not self._tutor.served:
            return Offered()
        session, project = self._session(question)
        owner = question.owner and question.level == self._classes.top and question.log is None
        reader = Reader(question.level, question.untrusted, question.projects, owner=owner)
        given = Who(reader, session, project, question.label or LOWEST)
        asked = given.ask(question.query, question.hook, clock.now_ms())

        def work(connection: apsw.Connection) -> Offered:
            told = ledger.block if session else plan.plan
            return _offered(reader, told(connection, reader, asked))

        return trio.from_thread.run(self._tutor.write, work)

    def _session(self, question: Question) -> tuple[str, str]:
        """Return the session that is told, and its project: by its log, or by name.

        Whoever is not the owner can name only a session that has no log yet: what others were told is not
        theirs to find out, or to say.
        """
        session, project = question.session, question.project
        if session is not None and not question.owner:
            others = {one.session for one in self._keeper.known().values()}
            session = None if session in others else session
        for _, one in [] if question.log is None else self._keeper.named(question.log)[:1]:
            session, project = one.session, project or one.project
        return session or "", project or ""


def _offered(reader: Reader, planned: Plan) -> Offered:
    return Offered(
        items=tuple(_items(planned)),
        refused=tuple(
            Left("lesson", one.lesson.id, one.reason, one.lesson.label)
            for one in planned.refused
            if reader.owner or reader.covers(one.lesson.label, one.lesson.project)
        ),
        cap=planned.cap + 1,  # the plan counts no line end after the last line; the block does
    )


def _items(planned: Plan) -> Iterator[Item]:
    if planned.suggestion:
        tokens = plan.estimate(plan.block(planned.suggestion, ()))
        yield Item(SUGGESTION, planned.suggestion, tokens, planned.suggested)
    for one in planned.shown:
        yield Item(one.lesson.id, one.text, one.tokens, one.lesson.label)
