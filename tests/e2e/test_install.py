"""Registering with each harness, and taking it back: real settings files, every other byte left alone."""

import contextlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from bxctl import jsonc, main
from tests.support.running import BXCTL

CLAUDE = """\
{
  "$schema": "https://json.schemastore.org/claude-code-settings.json",
  "permissions": {
    "allow": [
      "Bash(npm run lint)",
      "Bash(npm run test:*)",
      "Read(~/.zshrc)"
    ],
    "deny": ["Bash(curl:*)", "Read(./.env)"]
  },
  "env": { "CLAUDE_CODE_ENABLE_TELEMETRY": "0" },
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          { "type": "command", "command": "\\"$CLAUDE_PROJECT_DIR\\"/.claude/hooks/check.sh" }
        ]
      }
    ],
    "Stop": [
      {
        "hooks": [
          { "type": "command", "command": "notify-send 'done'", "timeout": 5 }
        ]
      }
    ]
  },
  "statusLine": {"type": "command", "command": "~/.claude/statusline.sh"},
  "model": "opusplan"
}
"""
CLAUDE_STATE = (
    '{"numStartups":12,"tipsHistory":{"shift-enter":3},"projects":{"/home/ada/shop":{"mcpServers":{}}},'
    '"mcpServers":{"github":{"type":"http","url":"https://example.net/mcp"}},"userID":"é…"}'
)
CODEX_HOOKS = """\
{
\t"description": "mine",
\t"hooks": {
\t\t"SessionStart": [
\t\t\t{"matcher": "startup|resume", "hooks": [{"type": "command", "command": "echo hi"}]}
\t\t]
\t}
}
"""
CODEX = """\
# my codex
model = "gpt-5-codex"   # the usual one
approval_policy = "on-request"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]

[projects."/home/ada/shop"]
trust_level = "trusted"
"""
OPENCODE = """\
{
  // how I like it
  "$schema": "https://opencode.ai/config.json",
  "theme": "tokyonight", /* dark */
  "mcp": {
    "context7": { "type": "remote", "url": "https://example.net/mcp", }, // docs
  },
  "model": "anthropic/claude-sonnet",
}
"""
CURSOR = '{\r\n    "mcpServers": {\r\n        "x": {"command": "x"}\r\n    }\r\n}\r\n'
FILES = {
    "claude-code": {".claude/settings.json": CLAUDE, ".claude.json": CLAUDE_STATE},
    "codex": {".codex/hooks.json": CODEX_HOOKS, ".codex/config.toml": CODEX},
    "opencode": {".config/opencode/opencode.jsonc": OPENCODE},
    "cursor": {".cursor/mcp.json": CURSOR},
}
HARNESSES = pytest.mark.parametrize("harness", FILES)


class Ran(NamedTuple):
    """What a command came to; in this process, since starting one costs more than what it does."""

    returncode: int
    stdout: str
    stderr: str


def bxctl(home: Path, *argv: str) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", [str(BXCTL), *argv])
        code = main.run(argv, {"HOME": str(home), "PATH": os.environ["PATH"]})
    return Ran(code, out.getvalue(), err.getvalue())


def done(home: Path, *argv: str) -> str:
    ran = bxctl(home, *argv)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def write(home: Path, harness: str) -> None:
    for name, text in FILES[harness].items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(text.encode())


def tree(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def hooks(home: Path, name: str) -> dict[str, list[str]]:
    """Return the commands of each event."""
    events = jsonc.value((home / name).read_text())["hooks"]
    return {
        event: [run["command"] for group in groups for run in group["hooks"]]
        for event, groups in events.items()
    }


@HARNESSES
def test_what_was_there_comes_back_to_the_byte(user_home: Path, harness: str):
    write(user_home, harness)
    before = tree(user_home)
    done(user_home, "install", harness)
    after = tree(user_home)
    for name, text in FILES[harness].items():
        assert after[name] != before[name]
        for line in text.splitlines() if text.count("\n") > 1 else ():
            assert line.rstrip(",").strip() in after[name].decode()
    done(user_home, "uninstall", harness)
    assert tree(user_home) == before


@HARNESSES
def test_what_was_not_there_is_gone_again(user_home: Path, harness: str):
    done(user_home, "install", harness)
    assert tree(user_home)
    done(user_home, "uninstall", harness)
    assert tree(user_home) == {}


@HARNESSES
def test_installing_twice_is_installing_once(user_home: Path, harness: str):
    write(user_home, harness)
    done(user_home, "install", harness)
    once = tree(user_home)
    again = json.loads(done(user_home, "install", harness, "--json"))
    assert {file["action"] for file in again["files"]} == {"unchanged"}
    assert tree(user_home) == once
    done(user_home, "uninstall", harness)
    assert done(user_home, "uninstall", harness, "--dry-run").count("unchanged:") == len(
        again["files"]
    )


@HARNESSES
def test_a_dry_run_shows_the_change_and_makes_none(user_home: Path, harness: str):
    write(user_home, harness)
    before = tree(user_home)
    shown = done(user_home, "install", harness, "--dry-run")
    assert "memoryd" in shown
    assert "\n+" in shown
    told = json.loads(done(user_home, "install", harness, "--dry-run", "--json"))
    assert (told["format"], told["version"], told["dry_run"]) == ("installed", 1, True)
    assert all("\n+" in file["diff"] for file in told["files"])
    assert tree(user_home) == before


@HARNESSES
def test_what_a_person_changed_since_stays_as_they_left_it(user_home: Path, harness: str):
    write(user_home, harness)
    done(user_home, "install", harness)
    expected = {}
    for name, text in FILES[harness].items():
        path = user_home / name
        mark = "# later\n" if name.endswith(".toml") else "// later\n"
        path.write_bytes(mark.encode() + path.read_bytes())
        expected[name] = (mark + text).encode()
    done(user_home, "uninstall", harness)
    assert tree(user_home) == expected


def test_claude_code_gets_hooks_at_each_turn_and_a_server(user_home: Path):
    write(user_home, "claude-code")
    done(user_home, "install", "claude-code")
    found = hooks(user_home, ".claude/settings.json")
    run = f"{BXCTL} hook claude-code"
    assert found["SessionStart"] == [f"{run} SessionStart --socket agent"]
    assert found["Stop"] == ["notify-send 'done'", f"{run} Stop --socket agent"]
    assert list(found) == ["PreToolUse", "Stop", "SessionStart", "PreCompact", "SessionEnd"]
    servers = json.loads((user_home / ".claude.json").read_text())["mcpServers"]
    assert servers["memoryd"] == {"command": str(BXCTL), "args": ["mcp", "--socket", "agent"]}
    assert list(servers) == ["github", "memoryd"]


def test_recall_another_socket_and_no_server_are_as_asked(user_home: Path):
    argv = ("install", "codex", "--recall", "--no-mcp", "--socket", "low")
    done(user_home, *argv)
    found = hooks(user_home, ".codex/hooks.json")
    assert found["UserPromptSubmit"] == [
        f"{BXCTL} hook codex UserPromptSubmit --socket low --recall"
    ]
    assert not (user_home / ".codex/config.toml").exists()
    done(user_home, "install", "codex")
    assert "UserPromptSubmit" not in hooks(user_home, ".codex/hooks.json")
    server = tomllib.loads((user_home / ".codex/config.toml").read_text())["mcp_servers"]["memoryd"]
    assert server == {"command": str(BXCTL), "args": ["mcp", "--socket", "agent"]}


def test_the_installed_command_runs(user_home: Path):
    done(user_home, "install", "claude-code")
    [command] = hooks(user_home, ".claude/settings.json")["SessionStart"]
    ran = subprocess.run(
        command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_the_opencode_plugin_asks_for_the_block_and_tells_of_idle_moments(user_home: Path):
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed")
    fake = user_home / "fake" / "bxctl"
    fake.parent.mkdir()
    fake.write_text(
        f"""#!/bin/sh
echo "$*" "$(cat)" >> {user_home}/calls
printf '{{"text": "block of %s"}}' "$3"
"""
    )
    fake.chmod(0o755)
    done(user_home, "install", "opencode")
    plugin = user_home / ".config/opencode/plugins/memoryd.js"
    text = plugin.read_text().replace(json.dumps(str(BXCTL)), json.dumps(str(fake)))
    module = user_home / "plugin.mjs"
    module.write_text(text)
    (user_home / "run.mjs").write_text(
        f"""
import {{ Memoryd }} from "{module}"
const hooks = await Memoryd({{ directory: "/home/ada/shop" }})
await hooks.event({{ event: {{ type: "session.created", properties: {{ info: {{ id: "s1" }} }} }} }})
const system = {{ system: ["mine"] }}
await hooks["experimental.chat.system.transform"]({{ sessionID: "s1" }}, system)
await hooks["experimental.chat.system.transform"]({{ sessionID: "s1" }}, system)
const compact = {{ context: [] }}
await hooks["experimental.session.compacting"]({{ sessionID: "s1" }}, compact)
await hooks.event({{ event: {{ type: "session.idle", properties: {{ sessionID: "s1" }} }} }})
await hooks.event({{ event: {{ type: "session.deleted", properties: {{ sessionID: "s1" }} }} }})
console.log(JSON.stringify([system.system, compact.context]))
"""
    )
    ran = subprocess.run(
        ["node", user_home / "run.mjs"], capture_output=True, text=True, check=False, timeout=180
    )
    assert json.loads(ran.stdout) == [
        ["mine", "block of SessionStart", "block of SessionStart"],
        ["block of SessionStart"],
    ], ran.stderr
    calls = (user_home / "calls").read_text().splitlines()
    assert [call.split()[2] for call in calls] == [
        "SessionStart", "SessionStart", "Stop", "SessionEnd",
    ]  # fmt: skip
    assert '"source":"compact"' in calls[1]
    assert "opencode SessionStart --socket agent" in calls[0]


def test_a_plugin_without_a_daemon_or_a_program_changes_nothing(user_home: Path):
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed")
    done(user_home, "install", "opencode")
    plugin = user_home / ".config/opencode/plugins/memoryd.js"
    text = plugin.read_text().replace(json.dumps(str(BXCTL)), '"/nowhere/bxctl"')
    for name, content in (("real.mjs", plugin.read_text()), ("none.mjs", text)):
        module = user_home / name
        module.write_text(content)
        code = (
            f'import {{ Memoryd }} from "{module}"; const hooks = await Memoryd({{}});'
            "const out = { system: [] };"
            'await hooks["experimental.chat.system.transform"]({}, out);'
            'await hooks.event({ event: { type: "session.idle" } });'
            "console.log(out.system.length)"
        )
        ran = subprocess.run(
            ["node", "--input-type=module", "-e", code],
            capture_output=True, text=True, check=False, timeout=180,
        )  # fmt: skip
        assert ran.stdout == "0\n", ran.stderr


def test_a_file_keeps_its_mode_and_a_link_stays_one(user_home: Path):
    write(user_home, "claude-code")
    real = user_home / "dotfiles" / "settings.json"
    real.parent.mkdir()
    (user_home / ".claude/settings.json").rename(real)
    real.chmod(0o640)
    (user_home / ".claude/settings.json").symlink_to(real)
    done(user_home, "install", "claude-code")
    assert (user_home / ".claude/settings.json").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    done(user_home, "uninstall", "claude-code")
    assert real.read_text() == CLAUDE
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_link_that_led_nowhere_leads_nowhere_again(user_home: Path):
    link, real = user_home / ".claude/settings.json", user_home / "dotfiles" / "settings.json"
    for folder in (link.parent, real.parent):
        folder.mkdir()
    link.symlink_to(real)
    done(user_home, "install", "claude-code")
    assert "bxctl" in real.read_text()
    done(user_home, "uninstall", "claude-code")
    assert link.is_symlink()
    assert not real.exists()


def test_what_is_in_the_way_is_refused_and_nothing_changes(user_home: Path):
    config = user_home / ".codex/config.toml"
    config.parent.mkdir()
    broken = user_home / ".claude/settings.json"
    broken.parent.mkdir()
    mcp = user_home / ".cursor/mcp.json"
    mcp.parent.mkdir()
    plugin = user_home / ".config/opencode/plugins/memoryd.js"
    plugin.parent.mkdir(parents=True)
    cases = {
        "codex": (config, '[mcp_servers.memoryd]\ncommand = "other"\n', "another server"),
        "claude-code": (broken, '{"hooks": {"Stop": [}\n', "settings.json: line 1 lacks a value"),
        "opencode": (plugin, "// mine", "another plugin"),
        "cursor": (mcp, '{"mcpServers": {"memoryd": {"command": "x"}}}', "another server"),
    }
    for harness, (path, text, said) in cases.items():
        path.write_text(text)
        ran = bxctl(user_home, "install", harness)
        assert ran.returncode in {1, 2}
        assert said in ran.stderr
        assert path.read_text() == text
    ran = bxctl(user_home, "install", "emacs")
    assert (ran.returncode, "choose from claude-code, codex" in ran.stderr) == (2, True)
    assert tree(user_home) == {
        str(path.relative_to(user_home)): text.encode() for path, text, _ in cases.values()
    }
