"""A real daemon learns: from a backlog, from live sessions, over kills; and tells, once and to the right ones."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memoryd import db
from memoryd.client import Client
from memoryd.lessons import store
from tests.support.classroom import START, Script, text
from tests.support.daemon import Daemon

DAY = 86_400_000
YOUNG = 1_767_225_600_000  # 2026
LETTERS = str.maketrans("0123", "abcd")
CONFIG = """[lessons]
idle_after_s = 1
[[socket]]
name = "memoryd"
clearance = "secret"
tools = ["*"]
[[socket]]
name = "agent"
clearance = "internal"
tools = ["recall", "memory_view", "lesson_query", "lesson_recall", "lesson_status", "lesson_trace"]
"""
TABLES = {
    "lesson": "id, type, content, project, fingerprint, origin, status, level, untrusted, fix_args, evidence, "
    "recurrence, created_at",
    "call": "*",
    "fix": "fingerprint, project, session, at, args, level, untrusted",
    "charge": "*",
    "progress": "*",
    "waiting": "*",
}


def caught_up(memory: Client) -> None:
    memory.call("sync", lessons=True, deadline_ms=120_000)


def rows(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What was learned, of a daemon that does not run."""
    connection = db.reader(home / store.NAME)
    try:
        return {
            table: sorted(connection.execute(f"SELECT {columns} FROM {table}"), key=repr)
            for table, columns in TABLES.items()
        }
    finally:
        connection.close()


def lowest(lessons: list[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Return each lesson (first line, project, label) that no lower one of its error makes needless.

    One that was learned before the lower one stays beside it; one that comes after is not learned at all.
    """
    known = {(row[3], row[4], row[7], row[8]) for row in lessons}
    return {
        (row[2].split("\n")[0], row[3], row[7], row[8])
        for row in lessons
        if not any(
            (row[3], row[4]) == (project, error)
            and level <= row[7]
            and untrusted <= row[8]
            and (level, untrusted) != (row[7], row[8])
            for project, error, level, untrusted in known
        )
    }


def bxctl(daemon: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("bxctl")
    return subprocess.run(
        [command, "memory", "lessons", *words],
        env=daemon.env,
        capture_output=True,
        text=True,
        check=False,
    )


def session(name: str) -> Script:
    wrong = f"src/main.ts(3,5): error TS2304: Cannot find name '{name.translate(LETTERS)}'."
    command = f"npm run build:{name}"
    script = Script(name).owner("the build fails")
    script.fail(command, text=wrong).edit().good(command)
    return script.end()


def test_the_loop_of_a_failure_its_fix_and_a_later_prompt(user_home: Path) -> None:
    sessions = user_home / "state" / "sessions"
    with Daemon(user_home, CONFIG) as daemon:
        sessions.mkdir(parents=True, mode=0o700, exist_ok=True)
        (user_home / "state").chmod(0o700)
        (sessions / "s1.jsonl").write_text(text(session("s1").lines))
        daemon.start()
        with daemon.client() as owner, daemon.client("agent") as agent:
            caught_up(owner)
            found = owner.call("lessons.query", query="TS2304")["lessons"]
            assert [one["type"] for one in found] == ["error", "pattern"] or len(found) == 2
            live = Script("s2", at=START + DAY).owner("the build fails again")
            (sessions / "s2.jsonl").write_text(text(live.lines))
            caught_up(owner)
            caller = {"log": "s2.jsonl", "n": len(live.lines)}
            traced = agent.call("lessons.trace", query="the build fails", caller=caller)
            told = agent.call("block", query="the build fails", caller=caller)
            items = [one["id"] for one in told["items"] if one["kind"] == "lesson"]
            assert items == [one["id"] for one in traced["admitted"]]
            assert items
            assert traced["text"] in told["text"]
            again = agent.call("block", query="the build fails", caller=caller)
            assert not {one["id"] for one in again["items"]} & set(items)
            live.now = max(live.now, START + DAY)
            live.fail(), live.edit("src/b.ts"), live.end()
            (sessions / "s2.jsonl").write_text(text(live.lines))
            caught_up(owner)
            figures = owner.call("lessons.status")
            assert figures["injections_total"] >= len(items)
            assert figures["injections_unmeasured"] == 0
            overview = owner.call("status")
            assert overview["lessons"]["fault"] == ""
            assert overview["faults"] == []


@pytest.mark.slow
def test_backlog_live_and_kills_come_to_the_same_rows(user_home: Path) -> None:
    state = user_home / "state"
    scripts = {f"s{n}.jsonl": session(f"s{n}") for n in range(3)}
    told = []
    for live in (False, True):
        shutil.rmtree(state, ignore_errors=True)
        (state / "sessions").mkdir(parents=True, mode=0o700)
        state.chmod(0o700)
        (state / "key").write_bytes(b"k" * 32)
        (state / "key").chmod(0o600)
        for name, script in scripts.items():
            (state / "sessions" / name).write_text("" if live else text(script.lines))
        with Daemon(user_home, CONFIG.replace("idle_after_s = 1", "idle_after_s = 900")) as daemon:
            daemon.start()
            for at in range(0, 12, 2) if live else ():
                for name, script in scripts.items():
                    with (state / "sessions" / name).open("a") as file:
                        file.write(text(script.lines[at : at + 2]))
                with daemon.client() as owner:
                    if at % 4:
                        caught_up(owner)
                    else:
                        owner.call("sync")  # indexed, and perhaps not learned from
                daemon.kill()
                daemon.start()
            with daemon.client() as owner:
                caught_up(owner)
            daemon.stop()
        told.append(rows(state))
    for table, found in told[0].items():
        assert told[1][table] == found, (table, set(told[1][table]) ^ set(found))
    assert len(told[0]["call"]) == 9


def test_a_rebuild_of_the_index_does_not_touch_lessons(user_home: Path) -> None:
    sessions = user_home / "state" / "sessions"
    sessions.mkdir(parents=True, mode=0o700)
    (user_home / "state").chmod(0o700)
    for n in range(3):
        (sessions / f"s{n}.jsonl").write_text(text(session(f"s{n}").lines))
    with Daemon(user_home, CONFIG) as daemon:
        daemon.start()
        with daemon.client() as owner:
            caught_up(owner)
            before = owner.call("lessons.audit")
            owner.call("reindex")
            while owner.call("status")["rebuild"]["state"] == "running":
                owner.call("sync")
            caught_up(owner)
            assert owner.call("lessons.audit") == before


def test_what_is_forgotten_was_never_learned(user_home: Path) -> None:
    sessions = user_home / "state" / "sessions"
    sessions.mkdir(parents=True, mode=0o700)
    (user_home / "state").chmod(0o700)
    script = Script("gone").owner("x").fail("deploy zebrafish", text="error: zebrafish refused")
    (sessions / "gone.jsonl").write_text(text(script.lines))
    (sessions / "kept.jsonl").write_text(text(session("kept").lines))
    with Daemon(user_home, CONFIG) as daemon:
        daemon.start()
        with daemon.client() as owner:
            caught_up(owner)
            assert owner.call("lessons.query", query="zebrafish")["lessons"]
            owner.call("lessons.retrospective", session="gone")
            told = owner.call("forget", session="gone", delete_log=True, deadline_ms=120_000)
            assert told["derived"]["lessons"] == 1
            assert owner.call("lessons.query", query="zebrafish")["lessons"] == []
            assert owner.call("lessons.query", query="TS2304")["lessons"]
        daemon.stop()
        for path in (user_home / "state").rglob("*"):
            if path.is_file():
                assert b"zebrafish" not in path.read_bytes(), path.name


def test_a_database_of_a_newer_memoryd_is_left_alone_and_the_rest_is_served(
    user_home: Path,
) -> None:
    state = user_home / "state"
    state.mkdir(mode=0o700)
    connection = store.opened(state / store.NAME)
    connection.pragma("user_version", 99)
    connection.close()
    before = (state / store.NAME).read_bytes()
    with Daemon(user_home, CONFIG) as daemon:
        daemon.start()
        with daemon.client() as owner:
            owner.call("sync", lessons=True)
            faults = [fault["what"] for fault in owner.call("status")["faults"]]
            assert any("version 99" in what for what in faults)
            with pytest.raises(Exception, match="lessons are not served"):
                owner.call("lessons.status")
            assert owner.call("block", query="x")["items"] == []
        daemon.stop()
    assert (state / store.NAME).read_bytes() == before


def test_bxctl_asks_the_daemon_and_without_it_the_lessons_themselves(user_home: Path) -> None:
    sessions = user_home / "state" / "sessions"
    sessions.mkdir(parents=True, mode=0o700)
    (user_home / "state").chmod(0o700)
    (sessions / "s1.jsonl").write_text(text(session("s1").lines))
    with Daemon(user_home, CONFIG) as daemon:
        daemon.start()
        with daemon.client() as owner:
            caught_up(owner)
        asked = ("query", "--json", "--evidence", "TS2304")
        saved = bxctl(daemon, "save", "--class", "internal", "run", "the", "linter")
        assert saved.returncode == 0
        bundle = bxctl(daemon, "export")
        file = user_home / "bundle.okf"
        file.write_text(bundle.stdout)
        assert bxctl(daemon, "import", str(file)).stdout == "new: 0 imported, 0 superseded\n"
        up = bxctl(daemon, *asked)
        daemon.stop()
        down = bxctl(daemon, *asked)
        assert (down.returncode, down.stdout) == (0, up.stdout)
        assert "answering from the lessons themselves" in down.stderr
        refused = bxctl(daemon, "recall", "TS2304")
        assert refused.returncode == 69
        assert bxctl(daemon, "query", "nothingofthekind").returncode == 1


@pytest.mark.slow
def test_real_logs_teach_the_same_as_backlog_and_live(user_home: Path, corpus: Path) -> None:
    told = []
    for live in (False, True):
        for folder in ("state", "logs"):
            shutil.rmtree(user_home / folder, ignore_errors=True)
        (user_home / "state").mkdir(mode=0o700)
        (user_home / "state" / "key").write_bytes(b"k" * 32)
        (user_home / "state" / "key").chmod(0o600)
        logs = user_home / "logs"
        for name in ("claude", "codex"):
            shutil.copytree(corpus / "sessions" / name, logs / name)
        whole = {path: path.read_bytes() for path in sorted(logs.rglob("*.jsonl"))}
        config = f'[lessons]\nidle_after_s = 900\n[[source]]\npath = "{logs}"\n'
        if live:
            for path in whole:
                path.write_bytes(b"")
        with Daemon(user_home, config) as daemon:
            daemon.start()
            for part in range(4) if live else ():
                for path, content in whole.items():
                    cuts = [len(content) * n // 4 for n in range(5)]
                    with path.open("ab") as file:
                        file.write(content[cuts[part] : cuts[part + 1]])
                with daemon.client() as owner:
                    owner.call("sync", deadline_ms=120_000)
                daemon.kill()
                daemon.start()
            with daemon.client() as owner:
                owner.call("sync", lessons=True, deadline_ms=120_000)
            daemon.stop()
        told.append(rows(user_home / "state"))
    assert len(told[0]["lesson"]) > 30
    assert told[1]["progress"] == told[0]["progress"]
    # Calls go a year after they were made, once a day, whenever that is: only younger ones are compared.
    waiting = [[call for call in each["waiting"] if call[7] > YOUNG] for each in told]
    assert waiting[1] == waiting[0]
    assert waiting[0]
    young = [
        [call for call in each["call"] if call[9] is not None and call[9] > YOUNG] for each in told
    ]
    assert len(young[0]) > 300
    assert young[1] == young[0]
    lessons = [lowest([row for row in each["lesson"] if row[1] == "error"]) for each in told]
    assert lessons[0] == lessons[1]
    assert Path(user_home / "state" / store.NAME).exists()
