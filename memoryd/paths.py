"""Where memoryd's files and sockets lie.

In: an environment mapping. Out: absolute paths. Follows the XDG base directory specification: an empty
or relative variable counts as unset. Nothing is created or opened here.
"""

from collections.abc import Mapping
from pathlib import Path

from memoryd.errors import ConfigError

MAX_SOCKET_BYTES = 107
"""`sockaddr_un.sun_path` holds 108 bytes with the closing NUL (unix(7))."""


def _absolute(env: Mapping[str, str], name: str) -> Path | None:
    value = env.get(name, "")
    return Path(value) if value.startswith("/") else None


def user_home(env: Mapping[str, str]) -> Path:
    """Return the user's home folder. Raises: ConfigError when HOME is not an absolute path."""
    found = _absolute(env, "HOME")
    if found is None:
        raise ConfigError("HOME is not set to an absolute path", remedy="set HOME or MEMORYD_HOME")
    return found


def is_default_home(env: Mapping[str, str]) -> bool:
    """Say whether the state lies at its default place, so that XDG config and runtime apply."""
    return not env.get("MEMORYD_HOME")


def home(env: Mapping[str, str]) -> Path:
    """Return the state folder: MEMORYD_HOME, XDG_STATE_HOME/memoryd or ~/.local/state/memoryd.

    Raises: ConfigError for a relative MEMORYD_HOME.
    """
    if not is_default_home(env):
        found = _absolute(env, "MEMORYD_HOME")
        if found is None:
            raise ConfigError("MEMORYD_HOME is not an absolute path", remedy="give the whole path")
        return found
    state = _absolute(env, "XDG_STATE_HOME")
    return (state if state is not None else user_home(env) / ".local" / "state") / "memoryd"


def config_path(env: Mapping[str, str]) -> Path | None:
    """Return the configuration file named or found by rule, whether it exists or not; None: built-in.

    MEMORYD_CONFIG names it; else, for the default home only, XDG_CONFIG_HOME/memoryd/memoryd.toml.
    """
    if env.get("MEMORYD_CONFIG"):
        found = _absolute(env, "MEMORYD_CONFIG")
        if found is None:
            raise ConfigError(
                "MEMORYD_CONFIG is not an absolute path", remedy="give the whole path"
            )
        return found
    if not is_default_home(env):
        return None
    config = _absolute(env, "XDG_CONFIG_HOME")
    return (
        (config if config is not None else user_home(env) / ".config") / "memoryd" / "memoryd.toml"
    )


def run_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of the sockets: XDG_RUNTIME_DIR/memoryd for the default home, else `run` in it."""
    runtime = _absolute(env, "XDG_RUNTIME_DIR")
    if is_default_home(env) and runtime is not None:
        return runtime / "memoryd"
    return home(env) / "run"


def socket_path(env: Mapping[str, str], name: str) -> Path:
    """Return the path of the socket called `name`. Raises: ConfigError when it is over 107 bytes."""
    return checked_socket(run_folder(env) / f"{name}.sock")


def checked_socket(path: Path) -> Path:
    """Return `path` if a Unix socket can have it. Raises: ConfigError when it is over 107 bytes."""
    size = len(str(path).encode("utf-8", "surrogateescape"))
    if size > MAX_SOCKET_BYTES:
        raise ConfigError(
            f"the socket path {path} has {size} bytes; {MAX_SOCKET_BYTES} are possible",
            remedy="set MEMORYD_HOME (or the socket's `path`) to a shorter folder",
        )
    return path
