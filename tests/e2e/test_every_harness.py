"""A real daemon without configuration, on a home where every harness keeps its sessions in its own place.

Each session says two words of its own, calls a tool, and holds a planted word in every place that must not be read.
"""

import re
from pathlib import Path

import pytest

from tests.e2e.test_no_result_is_written import asked_and_rebuilt, bytes_written
from tests.support.daemon import Daemon
from tests.support.harnesses import HARNESSES, Kind

PLACES = {
    "pi": ".pi/agent/sessions",
    "droid": ".factory/sessions",
    "droid stream": ".factory/sessions/streams",
    "copilot": ".copilot/session-state",
    "cursor": ".cursor/projects",
    "kimi": ".kimi-code/sessions",
    "qwen": ".qwen/projects",
    "gemini": ".gemini/tmp",
    "gemini lines": ".gemini/tmp",
    "opencode": ".local/share/opencode",
    "opencode database": ".local/share/opencode",
    "aider": "code",
    "swe-agent": "trajectories",
    "openhands": ".openhands/conversations",
    "goose": ".local/share/goose/sessions",
    "goose lines": ".local/share/goose/sessions",
    "cline": ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks",
}
SECRET = "export API_KEY=sk-ant-api03-canarysecretargument1234567890abcdef"


def planted(name: str, kind: Kind) -> list[object]:
    """Return a session with a planted word in every place of its harness that must not be read."""
    word = re.sub(r"\W", "", name)
    entries = [kind.owner(f"canwords {word}owner"), kind.assistant(f"canwords {word}reply")]
    for number, (place, made) in enumerate(kind.outside.items()):
        # Of a failure lessons keep the first line that tells of it, and no other.
        before = "Error: it failed\n" if place == "error" else ""
        entries.append(made(f"{before}canary{word}{number}"))
    entries += [made(f"canary{word}silent{n}") for n, made in enumerate(kind.silent.values())]
    return [*entries, *kind.call("bash", {"command": SECRET}, "c1", f"canary{word}result")]


def test_every_place_is_found_and_no_planted_word_reaches_a_byte_that_is_written(
    user_home: Path,
) -> None:
    for name, kind in HARNESSES.items():
        kind.put(user_home / PLACES[name], planted(name, kind))
    with Daemon(user_home, '[index]\nmax_class = "secret"\n') as daemon:
        daemon.env["AIDER_CHAT_HISTORY_FILE"] = str(user_home / "code/shop/.aider.chat.history.md")
        daemon.env["SWE_AGENT_TRAJECTORY_DIR"] = str(user_home / "trajectories")
        daemon.start()
        with daemon.client() as memory:
            asked_and_rebuilt(memory, "canwords", "canarypiresult")
            heard = {}
            for name in HARNESSES:
                word = re.sub(r"\W", "", name)
                for said in ("owner", "reply"):
                    hits = memory.call("recall", query=f"canwords {word}{said}", mode="all")["hits"]
                    heard[name, said] = [hit["kind"] for hit in hits]
            assert heard == {
                (name, said): ["owner" if said == "owner" else "assistant"]
                for name in HARNESSES
                for said in ("owner", "reply")
            }
        leaks = {
            (path.name, word.decode())
            for path, content in bytes_written(daemon.state)
            for word in re.findall(rb"canary\w+", content)
        }
        assert leaks == set()
        assert "canary" not in daemon.log.read_text()


@pytest.mark.parametrize("name", ["opencode", "opencode database", "gemini"])
def test_a_message_that_is_added_is_found_at_once(user_home: Path, name: str) -> None:
    kind = HARNESSES[name]
    kind.put(user_home / PLACES[name], [kind.owner("canwords first")])
    with Daemon(user_home) as daemon:
        daemon.start()
        with daemon.client() as memory:
            memory.call("sync")
            kind.put(
                user_home / PLACES[name],
                [kind.owner("canwords first"), kind.owner("canwords second")],
            )
            memory.call("sync")
            assert len(memory.call("recall", query="canwords second", mode="all")["hits"]) == 1
