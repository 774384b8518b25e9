"""What is stored: whether the index is sound, and the journal what memoryd left."""

from bxctl.doctor.finding import Finding, Scene, fail, ok, skip, some, warn
from memoryd import db
from memoryd.backup import taking
from memoryd.errors import MemorydError
from memoryd.index import schema

LONGEST_S = 60.0
"""How long the index may be looked at; a larger one is checked by the daemon itself, once a day."""


def rows(scene: Scene) -> Finding:
    """Look at every table, every row count, every word, and that no row is above `max_class` (D7)."""
    settings = scene.settings
    if settings is None or schema.check_file(settings.path):
        return skip("there is no index to look at")
    try:
        connection = db.reader(settings.path)
        try:
            with db.within(connection, db.Deadline(LONGEST_S)):
                schema.check_health(connection, len(settings.classes), words=True)
                above = [
                    settings.classes.name(c)
                    for c in range(settings.max_level + 1, len(settings.classes))
                    if connection.execute(f"SELECT 1 FROM row_{c} LIMIT 1").get
                ]
                count = sum(
                    int(str(connection.execute(f"SELECT count(*) FROM row_{c}").get))
                    for c in range(len(settings.classes))
                )
        finally:
            connection.close()
    except MemorydError as error:
        return fail(error.message, error.remedy or "`bxctl reindex` makes a new one")
    if above:
        return fail(f"there are rows of {some(above)}, above max_class", "`bxctl reindex`")
    return ok(f"{count:,} rows, each where and what it should be")


def journal(scene: Scene) -> Finding:
    """Have the daemon look at the journal's chain, its anchor, and the notes against it (D8)."""
    if scene.call is None or scene.status is None:
        return skip(scene.down)
    if fault := scene.status["notes"]["fault"]:
        return fail(f"notes cannot be edited: {fault}", "`bxctl memory notes verify`")
    try:
        told = scene.call("notes.verify")
    except MemorydError as error:
        return fail(error.message, error.remedy)
    if told["faults"]:
        wrong = some([f"{fault['where']} {fault['what']}" for fault in told["faults"]])
        return fail(wrong, "`bxctl memory notes verify` lists all; `bxctl memory notes pending`")
    return ok(f"{told['lines']:,} lines, sealed one by one, and the notes are as they say")


def backup(scene: Scene) -> Finding:
    """Tell what only memoryd has, which command copies it, and what of it cannot be copied (D17)."""
    if scene.settings is None:
        return skip("there is no state yet")
    linked = [name for name in taking.FOLDERS if (scene.home / name).is_symlink()]
    if linked:
        return warn(
            f"{some(linked)}: a link, which no backup follows", "put the folder itself there"
        )
    sizes = list(taking.sizes(scene.home))
    told = f"{len(sizes):,} files, {sum(sizes) >> 10:,} KiB, exist only here; the index is made from the logs"
    return ok(f"{told}; `bxctl backup FOLDER` copies them while memoryd runs")
