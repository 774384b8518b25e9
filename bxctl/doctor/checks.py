"""The checks in their order, and the scene they look at."""

from typing import Any

import apsw
import msgspec

from bxctl.context import Context
from bxctl.doctor import folders, machine, service, stored
from bxctl.doctor.finding import Check, Finding, Scene, fail
from memoryd import config, paths, state
from memoryd.errors import MemorydError
from memoryd.index import settings

CHECKS = (
    Check("D1", "engine", machine.engine),
    Check("D2", "state folder", folders.modes),
    Check("D3", "configuration", service.configuration),
    Check("D4", "sockets", folders.sockets),
    Check("D5", "index", service.index),
    Check("D6", "sources", service.sources),
    Check("D7", "rows", stored.rows),
    Check("D8", "journal", stored.journal),
    Check("D9", "notes", folders.notes),
    Check("D10", "peers", machine.peers),
    Check("D11", "boundary", service.boundary),
    Check("D12", "clock", machine.time),
    Check("D13", "limits", machine.limits),
    Check("D14", "waiting", service.waiting),
    Check("D15", "privacy", machine.privacy),
    Check("D16", "swap", machine.swap),
    Check("D17", "backup", stored.backup),
)


def scene(context: Context) -> Scene:
    """Return what there is to look at. Raises: ConfigError where not even the state folder can be named."""
    home = paths.home(context.env)
    loaded, made, wrong = None, None, None
    try:
        loaded = config.load(context.env)
        if (home / state.KEY).exists():
            made = settings.from_config(loaded.config, home, state.key(home), context.env)
    except MemorydError as error:
        wrong = fail(error.message, error.remedy)
        loaded = None
    found = Scene(context.env, home, loaded, wrong, made)
    return _with_daemon(found, context)


def _with_daemon(found: Scene, context: Context) -> Scene:
    try:
        with context.daemon() as memory:
            status = memory.call("status")
    except MemorydError as error:
        return msgspec.structs.replace(found, down=error.message)
    if "pid" not in status:
        return msgspec.structs.replace(found, down="this socket is not the owner's")

    def call(method: str, **args: Any) -> Any:
        with context.daemon() as memory:
            return memory.call(method, **args)

    return msgspec.structs.replace(found, status=status, call=call)


def looked(check: Check, scene: Scene) -> Finding:
    """Return what a check finds; one that stumbles has failed, and says over what."""
    try:
        return check.look(scene)
    except MemorydError as error:
        return fail(error.message, error.remedy)
    except (OSError, LookupError, ValueError, apsw.Error) as error:  # must not hide the others
        return fail(f"the check itself failed ({type(error).__name__})", "please report it")
