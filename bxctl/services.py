"""memoryd on the machine itself: its systemd units, the completion of a shell. Which files those are. Pure but for
looking where links lead.

In: the environment, the program that runs. Out: the files as `harnesses.Change`, links to take away, what to do next.
"""

import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from click.shell_completion import get_completion_class

from bxctl import units
from bxctl.harnesses import Change
from memoryd import paths
from memoryd.errors import BadRequest, Conflict

SYSTEMD, COMPLETION = "systemd", "completion"
SHELLS = ("bash", "zsh", "fish")
_SETTINGS = (
    "MEMORYD_HOME", "MEMORYD_CONFIG", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    "CLAUDE_CONFIG_DIR", "CODEX_HOME",
)  # fmt: skip
"""What says where files lie, and may be set in a shell and not in the manager's environment."""


def completion_text(shell: str) -> str:
    """Return the script that makes `shell` complete the words of `bxctl`."""
    from bxctl.shell import root

    made = get_completion_class(shell)
    if made is None:
        raise BadRequest(
            f"no completion is known for {shell}", remedy=f"one of {', '.join(SHELLS)}"
        )
    return made(root(), {}, "bxctl", "_BXCTL_COMPLETE").source().strip() + "\n"


def unit_changes(env: Mapping[str, str]) -> list[Change]:
    """Return the two units, as they are for this program and this environment. Raises: ConfigError."""
    where, folder = _where(env), _units(env)
    return [
        Change(folder / name, partial(_put_unit, after=units.text(name, where)), _take_unit)
        for name in (units.SERVICE, units.SOCKET)
    ]


def completion_changes(env: Mapping[str, str], shell: str | None) -> list[Change]:
    """Return the file of one shell's completion; of every shell's where None is named. Raises: ConfigError."""
    return [
        Change(_completion(env, name), partial(_put_completion, name), _take_completion)
        for name in (SHELLS if shell is None else (shell,))
    ]


def shell_of(env: Mapping[str, str]) -> str:
    """Return the name of the owner's shell. Raises: BadRequest for one without completion."""
    name = Path(env.get("SHELL", "")).name
    if name not in SHELLS:
        raise BadRequest(
            f"your shell is {name or 'not known'}, for which there is no completion",
            remedy=f"say --shell {'|'.join(SHELLS)}",
        )
    return name


def links(env: Mapping[str, str]) -> list[Path]:
    """Return the links by which `systemctl --user enable` made the units start."""
    names = (units.SERVICE, units.SOCKET)
    found = [path for name in names for path in _units(env).glob(f"*.wants/{name}")]
    return sorted(path for path in found if path.is_symlink())


def next_steps(what: str, env: Mapping[str, str], shell: str | None) -> list[str]:
    """Return what is left to do by hand after `install`."""
    if what == SYSTEMD:
        return [
            "start it: systemctl --user daemon-reload && systemctl --user enable --now memoryd.socket memoryd",
            "to have it run while you are logged out: loginctl enable-linger",
        ]
    if what == COMPLETION and shell == "zsh":
        folder = _completion(env, "zsh").parent
        return [f"in ~/.zshrc, before compinit: fpath=({folder} $fpath)"]
    return []


def _where(env: Mapping[str, str]) -> units.Where:
    beside = Path(sys.executable).with_name("memoryd")
    program = str(beside) if beside.exists() else shutil.which("memoryd", path=env.get("PATH"))
    words = [program] if program else [sys.executable, "-m", "memoryd"]
    return units.Where(
        " ".join(_quoted(word) for word in words),
        _quoted(str(paths.home(env))),
        units.USUAL_RUN if paths.is_default_home(env) else _escaped(str(paths.run_folder(env))),
        tuple(f"{name}={_escaped(env[name])}" for name in _SETTINGS if env.get(name)),
    )


def _escaped(word: str) -> str:
    """Return a word as it stands in a unit: systemd reads % itself (systemd.unit(5))."""
    return word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def _quoted(word: str) -> str:
    plain = _escaped(word).replace("$", "$$")
    return f'"{plain}"' if any(letter.isspace() for letter in word) else plain


def _units(env: Mapping[str, str]) -> Path:
    return _xdg(env, "XDG_CONFIG_HOME", ".config") / "systemd" / "user"


def _completion(env: Mapping[str, str], shell: str) -> Path:
    shared = _xdg(env, "XDG_DATA_HOME", ".local/share")
    return {
        "bash": shared / "bash-completion" / "completions" / "bxctl",
        "zsh": shared / "zsh" / "site-functions" / "_bxctl",
        "fish": _xdg(env, "XDG_CONFIG_HOME", ".config") / "fish" / "completions" / "bxctl.fish",
    }[shell]


def _xdg(env: Mapping[str, str], name: str, usual: str) -> Path:
    named = env.get(name, "")
    return Path(named) if Path(named).is_absolute() else paths.user_home(env) / usual


def _put_unit(before: str, *, after: str) -> str:
    if before and not units.ours(before):
        raise Conflict(
            "another unit of this name is there, or ours was changed",
            remedy="move it away, and put changes in a drop-in (`systemctl --user edit memoryd`)",
        )
    return after


def _take_unit(text: str) -> str:
    return "" if units.ours(text) else text


def _put_completion(shell: str, before: str) -> str:
    if before and _take_completion(before):
        raise Conflict("a completion of somebody else's is there", remedy="move it away")
    return completion_text(shell)


def _take_completion(text: str) -> str:
    return "" if "_BXCTL_COMPLETE" in text else text
