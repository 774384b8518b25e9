"""What registering memoryd with a harness means: which files change, and how. Pure.

In: a harness, the environment, the command that starts `bxctl`. Out: for each file a way to put our entries into
its text and a way to take them out again. Ours is told by what it runs (`bxctl hook`, `bxctl mcp`), or by the
marks around it; nothing else is touched.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from bxctl import jsonc
from memoryd import paths
from memoryd.errors import BadRequest, Conflict

NAME = "memoryd"
EVENTS = ("SessionStart", "PreCompact", "Stop", "SessionEnd")
RECALL = "UserPromptSubmit"
_PLUGIN_BEGINS = "// memoryd for OpenCode"
HOOK_S = 2
"""What a harness is told to allow a hook, in whole seconds; it needs a fifth of one."""
BEGIN, END = "# >>> memoryd >>>", "# <<< memoryd <<<"
_OURS = re.compile(r"\bbxctl'? hook (?:claude-code|codex|opencode) ")


class Wish(NamedTuple):
    """How memoryd is to be registered: the words that start `bxctl`, the socket, recall on prompts, MCP."""

    command: Sequence[str]
    socket: str
    recall: bool
    mcp: bool


class Change(NamedTuple):
    """One file: `put` makes its text hold our entries, `take` makes it hold none; "" is no file."""

    path: Path
    put: Callable[[str], str]
    take: Callable[[str], str]


def changes(harness: str, wish: Wish, env: Mapping[str, str]) -> list[Change]:
    """Return the files of `harness` and how each changes. Raises: ConfigError without a home."""
    return HARNESSES[harness](wish, env)


def _claude(wish: Wish, env: Mapping[str, str]) -> list[Change]:
    home = paths.user_home(env)
    folder = _folder(env, "CLAUDE_CONFIG_DIR", home / ".claude")
    state = folder / ".claude.json" if env.get("CLAUDE_CONFIG_DIR") else home / ".claude.json"
    return [_hooks(folder / "settings.json", "claude-code", wish), *_mcp(state, wish)]


def _codex(wish: Wish, env: Mapping[str, str]) -> list[Change]:
    folder = _folder(env, "CODEX_HOME", paths.user_home(env) / ".codex")
    changed = [_hooks(folder / "hooks.json", "codex", wish)]
    if wish.mcp:
        lines = [
            f"[mcp_servers.{NAME}]",
            f"command = {json.dumps(wish.command[0])}",
            f"args = {json.dumps([*wish.command[1:], *_mcp_args(wish)])}",
        ]
        put = partial(_with_block, lines=lines)
        changed.append(Change(folder / "config.toml", put, _without_block))
    return changed


def _opencode(wish: Wish, env: Mapping[str, str]) -> list[Change]:
    folder = _folder(env, "XDG_CONFIG_HOME", paths.user_home(env) / ".config") / "opencode"
    file = folder / "plugins" / f"{NAME}.js"
    plugin = Change(file, partial(_with_plugin, wish=wish), _no_plugin)
    if not wish.mcp:
        return [plugin]
    config = folder / "opencode.jsonc"
    config = config if config.exists() else folder / "opencode.json"
    server = {
        "type": "local",
        "command": [*wish.command, *_mcp_args(wish)],
        "enabled": True,
    }
    return [plugin, _server(config, ["mcp", NAME], server)]


def _cursor(wish: Wish, env: Mapping[str, str]) -> list[Change]:
    return _mcp(paths.user_home(env) / ".cursor" / "mcp.json", wish._replace(mcp=True))


HARNESSES: dict[str, Callable[[Wish, Mapping[str, str]], list[Change]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "cursor": _cursor,
}
"""The harnesses that memoryd can be registered with."""


def _folder(env: Mapping[str, str], name: str, usual: Path) -> Path:
    named = env.get(name, "")
    return Path(named) if named.startswith("/") else usual


def _mcp_args(wish: Wish) -> list[str]:
    return ["mcp", "--socket", wish.socket]


def _mcp(path: Path, wish: Wish) -> list[Change]:
    """Return the change of a file that lists servers as Claude Code does."""
    if not wish.mcp:
        return []
    server = {"command": wish.command[0], "args": [*wish.command[1:], *_mcp_args(wish)]}
    return [_server(path, ["mcpServers", NAME], server)]


def _server(path: Path, where: list[str], server: Mapping[str, Any]) -> Change:
    return Change(
        path, partial(_with_server, where=where, server=server), partial(_no_server, where=where)
    )


def _with_server(text: str, where: list[str], server: Mapping[str, Any]) -> str:
    """Add a server to a JSON file. Raises: Conflict where another one has our name."""
    text = _no_server(text, where)
    whole = text or "{}\n"
    if jsonc.found(jsonc.parsed(whole), where) is not None:
        raise _taken()
    return jsonc.added(whole, where, server)


def _taken() -> Conflict:
    return Conflict(
        f"another server is called {NAME} there", remedy="rename it, or remove it yourself"
    )


def _no_server(text: str, where: list[str]) -> str:
    node = jsonc.found(jsonc.parsed(text), where) if text else None
    if node is None:
        return text
    server = jsonc.value(text, node)
    words = server if isinstance(server, dict) else {}
    command = words.get("command")
    argv = [*(command if isinstance(command, list) else [command]), *(words.get("args") or [])]
    ours = "mcp" in argv and any(isinstance(word, str) and "bxctl" in word for word in argv)
    if not ours:
        return text
    alone = jsonc.found(jsonc.parsed(text), where[:-1])
    only = alone is not None and len(alone.members) == 1
    return jsonc.removed(text, where[:-1] if only else where)


def _hooks(path: Path, harness: str, wish: Wish) -> Change:
    return Change(path, partial(_with_hooks, harness=harness, wish=wish), _no_hooks)


def _with_hooks(text: str, harness: str, wish: Wish) -> str:
    """Add our command to the hooks of each event that we answer."""
    text = _no_hooks(text) or "{}\n"
    for event in (*EVENTS, *((RECALL,) if wish.recall else ())):
        words = [*wish.command, "hook", harness, event, "--socket", wish.socket]
        words += ["--recall"] if event == RECALL else []
        run = {"type": "command", "command": shlex.join(words), "timeout": HOOK_S}
        text = jsonc.added(text, ["hooks", event, ""], {"hooks": [run]})
    return text


def _no_hooks(text: str) -> str:
    """Take our commands out of every event, with what would be left empty around them."""
    while (place := _our_hook(text)) is not None:
        text = jsonc.removed(text, place)
    return text


def _our_hook(text: str) -> list[str | int] | None:
    """Return where a hook of ours stands: it, or as much around it as holds nothing else."""
    node = jsonc.found(jsonc.parsed(text), ["hooks"]) if text else None
    events = {} if node is None else jsonc.value(text, node)
    for event, groups in (events if isinstance(events, dict) else {}).items():
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            found = group.get("hooks") if isinstance(group, dict) else None
            runs = found if isinstance(found, list) else []
            for number, run in enumerate(runs):
                if _is_ours(run):
                    sizes = (len(events), len(groups), len(runs))
                    return _widest(["hooks", event, at, "hooks", number], sizes)
    return None


def _widest(place: list[str | int], sizes: tuple[int, int, int]) -> list[str | int]:
    """Return the outermost of the containers around a hook that would be left empty."""
    events, groups, runs = sizes
    if runs > 1:
        return place
    if groups > 1:
        return place[:3]
    return place[:2] if events > 1 else place[:1]


def _is_ours(run: object) -> bool:
    command = run.get("command") if isinstance(run, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None


def _with_block(text: str, lines: Sequence[str]) -> str:
    """Add a marked block to the end of a TOML file. Raises: Conflict where its table is there already."""
    text = _without_block(text)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadRequest(f"{error}", remedy="correct the file, then try again") from None
    made = text + ("\n" if text else "") + "\n".join([BEGIN, *lines, END, ""])
    try:
        tomllib.loads(made)
    except tomllib.TOMLDecodeError:
        raise _taken() from None
    return made


def _without_block(text: str) -> str:
    """Take the marked block away, with the line end that was put before it."""
    found = re.search(rf"\n?^{BEGIN}$.*?^{END}$\n?", text, re.MULTILINE | re.DOTALL)
    return text if found is None else text[: found.start()] + text[found.end() :]


def _no_plugin(text: str) -> str:
    return "" if text.startswith(_PLUGIN_BEGINS) else text


def _with_plugin(text: str, wish: Wish) -> str:
    """Return the plugin file of OpenCode, with the words that start the hook in it. Raises: Conflict."""
    if _no_plugin(text):
        raise Conflict("another plugin has that name", remedy="move it away")
    text = files("bxctl").joinpath("plugins", "opencode.js").read_text("utf-8")
    options = ["--socket", wish.socket]
    return text.replace(
        'const COMMAND = ["bxctl"] // replaced when installed',
        f"const COMMAND = {json.dumps(list(wish.command))}",
    ).replace(
        "const OPTIONS = [] // replaced when installed", f"const OPTIONS = {json.dumps(options)}"
    )
