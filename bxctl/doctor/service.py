"""The service: its configuration, whether it follows the logs, who can get round it, what waits for the owner."""

from datetime import date
from pathlib import Path

from bxctl.doctor.finding import Finding, Scene, fail, ok, skip, some, warn
from memoryd import clock, config, db
from memoryd.errors import MemorydError
from memoryd.index import schema

_BEHIND_BYTES = 64 << 20


def configuration(scene: Scene) -> Finding:
    """Look whether the configuration can be used, is the daemon's, and lies where no agent writes (D3)."""
    if scene.wrong is not None or scene.loaded is None:
        return scene.wrong or skip("there is none")
    where = scene.loaded.path
    if where is not None and scene.settings is not None:
        tops = [scene.home / "notes", *(root.path for root in scene.settings.roots)]
        if any(where.resolve().is_relative_to(top.resolve()) for top in tops):
            return fail(f"{where} lies where agents write", "move it, and set MEMORYD_CONFIG")
    told = "built-in defaults" if where is None else str(where)
    ours = config.fingerprint(scene.loaded.config)
    if scene.status is not None and scene.status["config"] != ours:
        return warn(f"memoryd runs with other settings than {told} says", "restart memoryd")
    return ok(told)


def index(scene: Scene) -> Finding:
    """Look whether the index is there and of these settings (D5)."""
    if scene.settings is None:
        return skip("there is no state yet")
    try:
        why = schema.check_file(scene.settings.path)
        if why:
            return fail(f"the index is {why}", "`bxctl reindex` makes a new one")
        connection = db.reader(scene.settings.path)
        try:
            meta = schema.read_meta(connection)
        finally:
            connection.close()
    except MemorydError as error:
        return fail(error.message, error.remedy)
    if meta.epoch != scene.settings.epoch:
        return fail("the index was made under other settings", "`bxctl reindex` makes a new one")
    return ok(f"made {clock.rfc3339(meta.created)[:16]}, of these settings")


def sources(scene: Scene) -> Finding:
    """Look whether each folder of logs can be read, and is (D6)."""
    if scene.settings is None:
        return skip("there is no state yet")
    shut = [str(root.path) for root in scene.settings.roots if _unreadable(root.path)]
    if shut:
        return fail(f"not readable: {some(shut)}", "make the folder readable for you")
    there = sum(root.path.is_dir() for root in scene.settings.roots)
    if scene.status is None:
        return skip(scene.down)
    faults = scene.status["faults"]
    if faults:
        return fail(some([fault["what"] for fault in faults]), faults[0]["remedy"])
    behind = scene.status["behind"]
    if behind["bytes"] > _BEHIND_BYTES:
        size = behind["bytes"] >> 20
        return warn(f"{behind['logs']:,} logs are to be read, {size:,} MiB", "wait; `bxctl status`")
    if bad := scene.status["unreadable"]:
        return warn(
            f"{bad:,} lines cannot be read, each of which raised its log to the top",
            "`bxctl status` shows where; a label can be set by hand",
        )
    return ok(f"{there} folders of logs, all read")


def boundary(scene: Scene) -> Finding:
    """Tell against whom clearance holds here (D11)."""
    if scene.loaded is None:
        return skip("the configuration cannot be read")
    ours = [
        setting.name
        for setting in scene.loaded.config.socket
        if "*" not in setting.tools and not setting.uids
    ]
    if ours:
        return warn(
            f"whoever asks at {some(ours)} runs as you, and could read the files themselves",
            "bind the socket into a sandbox, or give the agent a uid of its own (`uids`)",
        )
    return ok("every lower socket is for another uid")


def waiting(scene: Scene) -> Finding:
    """Tell what waits for the owner, and which notes have expired (D14)."""
    if scene.status is None or scene.call is None:
        return skip(scene.down)
    notes = scene.status["notes"]
    waits = [
        f"{notes[name]:,} {what}"
        for name, what in (("pending", "proposed edits"), ("external", "notes changed outside"))
        if notes[name]
    ]
    if waits:
        return warn(f"{' and '.join(waits)} wait for you", "`bxctl memory notes pending`")
    try:
        told = scene.call("notes.list", limit=10_000)["notes"]
    except MemorydError as error:
        return fail(error.message, error.remedy)
    today = date.fromisoformat(clock.rfc3339(clock.now_ms())[:10])
    over = [note["path"] for note in told if _expired(note.get("expires"), today)]
    if over:
        return warn(f"expired: {some(over)}", "`bxctl memory notes delete`, or another date in it")
    return ok("nothing waits, and no note has expired")


def _expired(expires: str | None, today: date) -> bool:
    return expires is not None and date.fromisoformat(expires[:10]) < today


def _unreadable(folder: Path) -> bool:
    """Say whether a folder is there and cannot be listed; one that is not there yet is none of it."""
    try:
        next(folder.iterdir(), None)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
