"""The method `block`: the memory block for whoever asks, and why the rest is not in it.

In: a query, a budget, the session that will be shown it. Out: the block with its label and its items. The notes
give their part here, the lessons theirs through `recall.block.Lessons`. What is untrusted is named among the
rest to the owner alone: a name is text, too.
"""

from typing import Annotated

import msgspec
import structlog
import trio

from memoryd.db import Deadline
from memoryd.index.scope import Scope
from memoryd.labels import Classes, Label
from memoryd.notes.desk import Notes
from memoryd.notes.offered import offers
from memoryd.recall import block
from memoryd.recall.block import Block, Hook, Lessons, Offered, Question
from memoryd.serve.asking import Caller, scope_of
from memoryd.serve.calls import Common, Methods, Slow, fitting
from memoryd.serve.noting import Desk
from memoryd.serve.peers import Asker

Answer = dict[str, object]
Name = Annotated[str, msgspec.Meta(max_length=4_096)]

log = structlog.get_logger()


class BlockArgs(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What the next prompt is about, what it may cost, when and to whom it is shown.

    `session` and `project` name, for the lessons alone, a session that has no log yet.
    """

    query: Name = ""
    budget_tokens: int | None = None
    hook: Hook = "pre_prompt"
    caller: Caller | None = None
    max_class: str | None = None
    session: Name | None = None
    project: Name | None = None


def table(desk: Desk, key: bytes, lessons: Lessons | None) -> Methods:
    """Return the method by its name; which socket grants it is in `peers`."""

    async def run(asker: Asker, args: BlockArgs, deadline: Deadline) -> Answer:
        label = None if args.caller is None else await desk.keeper.label_of(args.caller)
        scope = scope_of(asker.capability, desk.classes, args.max_class, label)
        notes = desk.open()

        def work() -> Answer:
            offered = _offered(lessons, scope, args, label)
            made = _made(notes, offered, key, scope, args)
            deadline.check()
            answer = told(made, desk.classes, owner=scope.owner)
            if made.text:
                ids = [part.id for part in made.parts]
                asking = args.caller.log if args.caller else None
                desk.reads.note(asker, "block", ids, answer["label"], caller=asking)
            return answer

        return await trio.to_thread.run_sync(work)

    return {"block": Slow(fitting(BlockArgs), run)}


def _offered(
    lessons: Lessons | None, scope: Scope, args: BlockArgs, label: Label | None
) -> Offered:
    return Offered() if lessons is None else lessons.offered(_question(scope, args, label))


def _made(notes: Notes, offered: Offered, key: bytes, scope: Scope, args: BlockArgs) -> Block:
    """Return the block for a reader; a socket limited to projects sees no notes."""
    noted = offers(notes, scope.level) if scope.covers_project(None) else []
    made = block.render(noted, offered, key=key, level=scope.level, budget=args.budget_tokens)
    if not made.sound:
        log.error("a memory block did not read back; an empty one was told")
    return made


def _question(scope: Scope, args: BlockArgs, label: Label | None) -> Question:
    compacting = args.hook == "compacting"
    return Question(
        query=args.query,
        hook=args.hook,
        level=scope.level,
        projects=scope.projects,
        owner=scope.owner,
        cap=block.COMPACTING_TOKENS if compacting else block.LESSONS_TOKENS,
        log=None if args.caller is None else args.caller.log,
        session=args.session,
        project=args.project,
        label=label,
        untrusted=scope.untrusted,
    )


def told(made: Block, classes: Classes, *, owner: bool) -> Answer:
    """Return the answer; `label` is that of `text` and its items, and what is left out has its own."""

    def label(one: Label) -> Answer:
        return {"class": classes.name(one.level), "untrusted": one.untrusted}

    return {
        "text": made.text,
        "tokens": made.tokens,
        "label": label(made.label),
        "items": [
            {
                "kind": part.kind,
                "id": part.id,
                "tokens": part.tokens,
                "cut": part.cut,
                "label": label(part.label),
            }
            for part in made.parts
        ],
        "blocked": [
            {"kind": left.kind, "id": left.id, "reason": left.reason, "label": label(left.label)}
            for left in made.left
            if owner or not left.label.untrusted
        ],
    }
