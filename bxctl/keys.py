"""`bxctl keys rotate`: new keys for a state folder whose memoryd is stopped.

In: the lock of the state folder. Out: a new key of the journal, a new key of ids and cursors, an index made with
it. Killed at any moment, a second run finishes what was begun, or nothing had changed.
"""

import os

from bxctl import output
from bxctl.context import Context
from bxctl.grammar import Command
from bxctl.layout import Para, Span
from bxctl.progress import bar

VERSION = 1


def rotate(context: Context) -> int:
    """Change both keys and build the index anew. Raises: Busy while memoryd runs, ConfigError, IOFailed."""
    from memoryd import config, db, index, paths, rotation, state
    from memoryd.notes.desk import Notes

    loaded, home = config.load(context.env), paths.home(context.env)
    db.check_engine()
    os.umask(0o077)  # whatever is made here is its owner's alone
    state.private_folder(home)
    with state.held(home):
        key = state.key_being_changed(home)
        settings = index.from_config(loaded.config, home, key, context.env)
        journal = state.next_key(home) is None
        if journal:
            notes = Notes(home, settings.classes)
            try:
                notes.journal.change_key()
            finally:
                notes.close()
        key, done = rotation.rotate(settings)
        settings = index.from_config(loaded.config, home, key, context.env)
        with bar("building the index", context.out.when) as moved:
            built = rotation.build(settings, lambda now: moved(now.bytes, now.all_bytes))
    told = {"journal": journal, "lessons": done.lessons, "kept": done.kept}
    if context.out.json:
        rows = {"logs": built.logs, "rows": built.counts.indexed}
        context.out.value("rotated", VERSION, {**told, **rows})
        return 0
    names = f"; {done.lessons:,} logs have another name in the lessons"
    context.out.show([Para((Span("the keys are new", "head"), Span(names)))])
    output.say("ids and cursors that were given out until now are unknown; take a new backup")
    return 0


COMMANDS = (
    Command(
        "rotate",
        rotate,
        """Change the keys of the state folder; stop memoryd first.

Ids and cursors are made with one key, the journal of notes is sealed with another. Both become new; the journal's
old one is kept to check older lines with. The index is built anew, ids that were given out are unknown from
then on, and nothing is learned twice. If it is interrupted, run it again.""",
        (("bxctl keys rotate", "after a key, or a backup, may have been seen by others"),),
    ),
)
