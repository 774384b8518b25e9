"""`memoryd`: run the daemon in the foreground, or check a configuration.

In: the command line and the environment. Out: an exit code; every refusal is one line with its remedy.
Imports little before it must, so that `--help` and `--version` are quick.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from memoryd.errors import Internal, MemorydError

ABOUT = """\
The memory of the agents on this machine: reads the session logs they write, and answers on Unix sockets.

Without options it runs in the foreground until SIGTERM or Ctrl-C; a second one ends it at once.
State lies in $MEMORYD_HOME, else in ~/.local/state/memoryd; the configuration in $MEMORYD_CONFIG, else in
~/.config/memoryd/memoryd.toml, and is optional. Ask with `bxctl status` and `bxctl memory search WORDS`.

Exit: 0 stopped, 70 a fault, 74 input or output, 75 it runs already, 78 the configuration cannot be used.
"""
CHECK_CONFIG = "print every setting with where it comes from, and stop"


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="memoryd",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--check-config",
        action="store_true",
        help=CHECK_CONFIG,
    )
    parser.add_argument("--version", action="version", version=f"memoryd {version('memoryd')}")
    given = parser.parse_args(arguments)
    try:
        if given.check_config:
            print(effective(os.environ))
            return 0
        from memoryd import daemon

        return daemon.run(os.environ, version("memoryd"))
    except MemorydError as error:
        print(f"memoryd: {error}", file=sys.stderr)
        return error.exit_code
    except ImportError as error:
        missing = error.name or "a module"
        print(
            f"memoryd: {missing} cannot be imported; install memoryd again with its dependencies",
            file=sys.stderr,
        )
        return Internal.exit_code
    except Exception as error:  # noqa: BLE001 - whatever it was, a person gets one line without stored text
        print(
            f"memoryd: a fault of memoryd ({type(error).__name__}); please report it",
            file=sys.stderr,
        )
        return Internal.exit_code


def effective(env: Mapping[str, str]) -> str:
    """Return every setting as TOML, each with where it comes from.

    Raises: ConfigError, also for a rule or a socket that only starting would find wrong.
    """
    import msgspec

    from memoryd import config, paths
    from memoryd.rules import Rules

    loaded = config.load(env)
    Rules(loaded.config, state=paths.home(env), home=paths.user_home(env))
    for socket in loaded.config.socket:
        if socket.path is None:
            paths.socket_path(env, socket.name)
        else:
            paths.checked_socket(Path(socket.path))
    lines = {key: f"{key} = {value}" for key, value in settings(msgspec.to_builtins(loaded.config))}
    width = min(64, max(map(len, lines.values())))
    told = [
        f"{line:<{width}}  # {loaded.origins.get(key, 'default')}" for key, line in lines.items()
    ]
    if loaded.config.source is None:
        told.append("# no [[source]]: sessions/ and the harnesses' own folders are read")
    return "\n".join([f"# configuration: {loaded.path or 'built-in defaults'}", *told])


def settings(tree: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield (dotted key, value as TOML) of everything that is set."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from settings(value, f"{key}.{name}" if key else name)
    elif isinstance(tree, list) and tree and isinstance(tree[0], dict):
        for number, item in enumerate(tree):
            yield from settings(item, f"{key}[{number}]")
    elif tree is not None:
        yield key, json.dumps(tree, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
