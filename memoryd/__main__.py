"""`memoryd`: run the daemon in the foreground, check a configuration, or serve the glass box.

In: the command line and the environment. Out: an exit code; every refusal is one line with its remedy.
Imports little before it must, so that `--help` and `--version` are quick.
"""

import argparse
import gc
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

from memoryd.errors import BadRequest, Internal, MemorydError, Unavailable

ABOUT = """\
The memory of the agents on this machine: reads the session logs they write, and answers on Unix sockets.

Without arguments it runs in the foreground until SIGTERM or Ctrl-C; a second one ends it at once.
State lies in $MEMORYD_HOME, else in ~/.local/state/memoryd; the configuration in $MEMORYD_CONFIG, else in
~/.config/memoryd/memoryd.toml, and is optional. Ask with `bxctl status` and `bxctl memory search WORDS`.

Exit: 0 stopped, 70 a fault, 74 input or output, 75 it runs already, 78 the configuration cannot be used.
"""
WEB = "serve the glass box: a page that shows what memoryd holds, to this machine alone"
ABOUT_WEB = """\
The glass box: search, sessions with their labels, notes and what waits for you, lessons and what came of them,
as one page in your browser. Asks the running daemon; changes nothing but what you accept, reject or judge.

Prints a link whose token lets one browser in; another start, another token. Needs the extra memoryd[web].
docs/web.md says what protects it.

Exit: 0 ended, 69 the daemon is down or the extra is missing, 74 the port or the path cannot be had.
"""
WEB_OPTIONS = (
    ("--port", "N", "the port on 127.0.0.1 (7707; 0: any free one)"),
    ("--unix", "PATH", "serve on a Unix socket instead, as for `ssh -L`"),
    ("--socket", "NAME", "ask this socket of the daemon, by name or path (the owner's)"),
)
CHECK_CONFIG = "print every setting with where it comes from, and stop"


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says and return the exit code."""
    given = parser().parse_args(arguments)
    try:
        if given.check_config:
            _print(effective(os.environ))
            return 0
        if given.command == "web":
            return glass_box(os.environ, given.socket, given.port, given.unix)
        with _no_cycles_sought():
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


@contextmanager
def _no_cycles_sought() -> Iterator[None]:
    """Import meanwhile without the collector, two fifths of importing; what is there then it leaves alone for good.

    Looking through it would be a sixth of opening a large index.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = argparse.ArgumentParser(
        prog="memoryd",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--check-config",
        action="store_true",
        help=CHECK_CONFIG,
    )
    made.add_argument("--version", action="version", version=f"memoryd {version('memoryd')}")
    web = made.add_subparsers(dest="command", metavar="web").add_parser(
        "web",
        help=WEB,
        description=ABOUT_WEB,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for names, metavar, about in WEB_OPTIONS:
        web.add_argument(names, metavar=metavar, help=about, type=_port if metavar == "N" else str)
    return made


def _print(text: str) -> None:
    """Print to whoever still reads: `memoryd --check-config | head` has seen enough, and nothing is wrong."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # the interpreter's last flush goes there
        os.close(nowhere)


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65_535:
        raise ValueError(text)
    return port


def glass_box(env: Mapping[str, str], name: str | None, port: int | None, unix: str | None) -> int:
    """Serve the glass box until a signal ends it; return the exit code.

    Raises: Unavailable where the extra is not installed, BadRequest, what `memoryd.web.serving.run` raises.
    """
    missing = [
        name for name in ("hypercorn", "starlette") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise Unavailable(
            f"memoryd web needs {' and '.join(missing)}, not installed here",
            remedy="pip install 'memoryd[web]'",
        )
    if port is not None and unix is not None:
        raise BadRequest("a port or a path, not both", remedy="leave --port or --unix out")
    from memoryd.web import serving

    return serving.run(
        socket_of(env, name),
        port=serving.PORT if port is None else port,
        unix=None if unix is None else Path(unix).absolute(),
        say=partial(print, flush=True),
    )


def socket_of(env: Mapping[str, str], name: str | None) -> Path:
    """Return the path of a socket by its name or path; without one, of the owner's.

    Raises: BadRequest for a name that is not configured, ConfigError.
    """
    from memoryd import config, paths

    if name is not None and "/" in name:
        return Path(name)
    sockets = config.load(env).config.socket
    found = [each for each in sockets if (each.name == name if name else "*" in each.tools)]
    if not found:
        names = ", ".join(each.name for each in sockets)
        raise BadRequest(f"no socket is called {name or 'memoryd'!r}", remedy=f"there are {names}")
    path = found[0].path
    return paths.socket_path(env, found[0].name) if path is None else Path(path)


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
