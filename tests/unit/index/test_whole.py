"""Logs that are rewritten whole, lie in many files or in a database: followed, replaced, never in the way."""

import json
import os
import pathlib
import shutil
import sqlite3

import pytest

from memoryd.index import Budget, Wanted, catch_up, resting
from memoryd.index.sweeping import what_is_there
from memoryd.index.table import Place
from memoryd.sources import discover, whole
from memoryd.sources.base import Root
from tests.support.harnesses import (
    AIDER,
    CLINE,
    GEMINI,
    GEMINI_LINES,
    GOOSE,
    OPENCODE,
    OPENCODE_DB,
    OPENHANDS,
    SWE,
    opencode_db,
    opencode_rows,
)
from tests.support.indexing import bump, dumped

REWRITTEN = {
    "gemini": GEMINI,
    "gemini lines": GEMINI_LINES,
    "opencode": OPENCODE,
    "opencode database": OPENCODE_DB,
    "aider": AIDER,
    "openhands": OPENHANDS,
    "goose": GOOSE,
    "cline": CLINE,
}
kinds = pytest.mark.parametrize("name", REWRITTEN)


def texts(index):
    rows = [json.loads(line) for line in dumped(index)]
    return [row["text"] for row in rows if row["text"] != "task"]


def put(world, kind, entries):
    """Put a session down in place of the one that was there, as a harness that writes it again does."""
    kind.put(world.logs, entries)
    for path in world.logs.rglob("*"):
        if path.is_file():
            bump(path, len(entries) + 1)


@kinds
def test_what_is_added_at_the_end_is_read_alone(world, name):
    kind = REWRITTEN[name]
    entries = [
        kind.owner("one"),
        kind.assistant("two"),
        kind.owner("three"),
        kind.assistant("four"),
    ]
    put(world, kind, entries[:2])
    with world.index() as index:
        catch_up(index)
        put(world, kind, entries)
        counts = catch_up(index)
        assert texts(index) == ["one", "two", "three", "four"]
        assert 2 <= counts.records <= 4
        assert dumped(index) == world.fresh()
        assert catch_up(index).records == 0
    assert world.overrides == b""


@kinds
def test_what_changes_in_the_middle_replaces_the_old_rows_at_once(world, name):
    kind = REWRITTEN[name]
    put(world, kind, [kind.owner("one"), kind.assistant("two"), kind.owner("three")])
    with world.index() as index:
        catch_up(index)
        put(world, kind, [kind.owner("one"), kind.assistant("other"), kind.owner("three")])
        index.sweep()
        index.catch_up(Budget(bytes=1, seconds=0.0))  # one turn, however small
        assert texts(index) == ["one", "other", "three"]
        assert dumped(index) == world.fresh()


@kinds
def test_an_index_that_is_opened_again_goes_on(world, name):
    kind = REWRITTEN[name]
    put(world, kind, [kind.owner("one")])
    world.caught_up()
    put(world, kind, [kind.owner("one"), kind.assistant("two")])
    assert world.caught_up() == world.fresh()
    with world.index() as index:
        assert catch_up(index).records == 0


@kinds
def test_what_is_taken_back_leaves_its_label_as_a_floor(world, name):
    kind = REWRITTEN[name]
    secret = kind.call("bash", {"command": "cat /home/ada/.ssh/id_rsa"}, "c1", "x")
    if name == "aider":
        secret = [kind.owner("see https://example.org")]
    put(world, kind, [kind.owner("one"), *secret, kind.assistant("two")])
    with world.index() as index:
        catch_up(index)
        put(world, kind, [kind.owner("uno"), kind.assistant("due")])
        catch_up(index)
        assert b'"kind":"floor"' in world.overrides
        assert dumped(index) == world.fresh()


@kinds
def test_a_session_that_is_gone_is_kept_and_read_again_when_it_is_back(world, name):
    kind = REWRITTEN[name]
    put(world, kind, [kind.owner("one"), kind.assistant("two")])
    with world.index() as index:
        catch_up(index)
        shutil.rmtree(world.logs)
        world.logs.mkdir()
        catch_up(index)
        assert texts(index) == ["one", "two"]
        assert dumped(index) == world.fresh()
        put(world, kind, [kind.owner("one"), kind.assistant("two"), kind.owner("three")])
        catch_up(index)
        assert texts(index) == ["one", "two", "three"]
        assert dumped(index) == world.fresh()


@pytest.mark.parametrize("kind", [GEMINI, CLINE, SWE], ids=["gemini", "cline", "swe-agent"])
def test_half_a_document_changes_nothing_until_it_is_whole(world, kind):
    path = kind.put(world.logs, [kind.owner("one")])
    with world.index() as index:
        catch_up(index)
        content = path.read_bytes()
        path.write_bytes(content[:-9])
        bump(path)
        catch_up(index)
        assert texts(index) == ["one"]
        path.write_bytes(content.replace(b'"one"', b'"two"'))
        bump(path, 3)
        index._following.pending.faults.clear()  # its time to be tried again has come
        catch_up(index)
        assert texts(index) == ["two"]
        assert dumped(index) == world.fresh()


def test_a_change_is_found_by_the_name_of_the_file_that_changed(world):
    """A watcher tells of a part, a message or an event: the session that it belongs to is read."""
    for kind in (OPENCODE, OPENHANDS):
        shutil.rmtree(world.logs)
        kind.put(world.logs, [kind.owner("one")])
        with world.index() as index:
            catch_up(index)
            kind.put(world.logs, [kind.owner("one"), kind.assistant("two")])
            changed = sorted(path for path in world.logs.rglob("*") if path.is_file())
            index.changed(
                [path for path in changed if "part" in str(path) or "event-" in str(path)]
            )
            index.catch_up(Budget())
            assert texts(index)[-2:] == ["one", "two"]


def test_a_write_ahead_log_tells_of_its_database(world):
    database = opencode_db(world.logs / "opencode.db")
    opencode_rows(database, [OPENCODE.owner("one")])
    with world.index() as index:
        catch_up(index)
        opencode_rows(database, [OPENCODE.assistant("two")], start=1)
        index.changed([world.logs / "opencode.db-wal"])
        index.catch_up(Budget())
        assert texts(index) == ["one", "two"]
    database.close()


def test_a_database_in_use_is_read_and_its_writer_is_never_held_up(world):
    database = opencode_db(world.logs / "opencode.db")
    opencode_rows(database, [OPENCODE.owner("one")])
    opencode_rows(database, [OPENCODE.owner("another")], session="s2")
    with world.index() as index:
        catch_up(index)
        database.execute("BEGIN IMMEDIATE")  # the harness writes, and does not wait
        database.execute(
            "UPDATE part SET data = json_set(data, '$.text', 'uno'), time_updated = 9e14"
        )
        index.sweep()
        catch_up(index)
        assert sorted(texts(index)) == ["another", "one"]  # what is not committed is not there
        database.execute("COMMIT")
        assert database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        catch_up(index)
        assert texts(index) == ["uno", "uno"]
        assert dumped(index) == world.fresh()
    database.close()


@pytest.mark.parametrize("left", ["closed", "with a log", "with a log and no index"])
def test_reading_a_database_leaves_no_trace_beside_it(world, left):
    path = world.logs / "opencode.db"
    database = opencode_db(path)
    opencode_rows(database, [OPENCODE.owner("one")])
    if left != "closed":  # as after a crash: the writer is gone, its log is not
        aside = world.user / "aside"
        shutil.copytree(world.logs, aside)
        database.close()
        shutil.rmtree(world.logs)
        shutil.copytree(aside, world.logs)
        if left.endswith("no index"):
            (world.logs / "opencode.db-shm").unlink()
    else:
        database.close()
    before = {
        file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in world.logs.iterdir()
    }
    world.logs.chmod(0o500)
    with world.index() as index:
        catch_up(index)
        assert texts(index) == ["one"]
    after = {
        file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in world.logs.iterdir()
    }
    world.logs.chmod(0o700)
    assert after == before


def test_a_session_deleted_from_a_database_vanishes_alone_and_a_broken_one_none(world):
    path = world.logs / "opencode.db"
    database = opencode_db(path)
    opencode_rows(database, [OPENCODE.owner("one")])
    opencode_rows(database, [OPENCODE.owner("two")], session="s2")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with world.index('[index]\nvanished = "drop"\n[[source]]\npath = "{logs}"\n') as index:
        catch_up(index)
        database.execute("DELETE FROM session WHERE id = 's2'")
        database.execute("DELETE FROM message WHERE session_id = 's2'")
        database.close()
        catch_up(index)
        assert texts(index) == ["one"]
        content = path.read_bytes()
        path.write_bytes(content[:4096] + b"x" * 4096 + content[8192:])
        bump(path)
        catch_up(index)
        assert texts(index) == ["one"]
        index._following._memory.clear()  # as after a restart
        catch_up(index)
        assert texts(index) == ["one"]
        path.unlink()
        catch_up(index)
        assert texts(index) == []


def test_sessions_of_one_database_have_labels_of_their_own(world):
    database = opencode_db(world.logs / "opencode.db")
    secret = OPENCODE.call("bash", {"command": "cat ~/.ssh/id_rsa"}, "c1", "x")
    opencode_rows(database, [*secret, OPENCODE.assistant("hidden")])
    opencode_rows(database, [OPENCODE.assistant("shown")], session="s2")
    database.close()
    with world.index() as index:
        catch_up(index)
        assert texts(index) == ["bash\ncat ~/.ssh/id_rsa", "shown"]


def test_a_link_in_a_tree_leads_nowhere(world):
    path = OPENCODE.put(world.logs, [OPENCODE.owner("one")])
    outside = world.user / "outside"
    outside.mkdir()
    (outside / "prt_9.json").write_text(json.dumps({"id": "p", "type": "text", "text": "leaked"}))
    store = path.parent.parent.parent
    pathlib.Path(store / "part" / "msg_0000" / "prt_9.json").symlink_to(outside / "prt_9.json")
    (store / "message" / "s1" / "msg_0001.json").write_text(
        json.dumps({"id": "../../../../outside", "role": "user", "time": {"created": 9}})
    )
    with world.index() as index:
        catch_up(index)
        assert "leaked" not in texts(index)


def test_a_document_of_no_known_format_is_named(world):
    (world.logs / "settings.json").write_text('{"theme": "dark"}')
    (world.logs / "other.db").write_bytes(b"no database")
    database = sqlite3.connect(world.logs / "third.db")
    database.execute("CREATE TABLE settings(x)")
    database.commit()
    database.close()
    found = discover.discover([Root("auto", world.logs)])
    assert found.logs == []
    assert {one.path.name: one.reason for one in found.skipped} == {
        "settings.json": "no format that is known",
        "other.db": "a database that is busy, or none",
        "third.db": "no format that is known",
    }


def test_a_document_that_is_too_long_is_named(world, monkeypatch):
    monkeypatch.setattr(whole, "LIMIT", 100)
    monkeypatch.setattr(whole.content, "__defaults__", (100,))
    GEMINI.put(world.logs, [GEMINI.owner("x" * 200)])
    found = discover.discover([Root("auto", world.logs)])
    assert [one.reason for one in found.skipped] == ["longer than 100 bytes"]


def test_a_task_has_the_label_that_its_session_ended_with(world):
    database = opencode_db(world.logs / "opencode.db")
    state = {"status": "completed", "input": {"prompt": "look"}, "metadata": {"sessionId": "s2"}}
    part = {"type": "tool", "tool": "task", "callID": "c1", "state": state}
    task = [OPENCODE.owner("do"), ("assistant", part, {}), OPENCODE.assistant("done")]
    opencode_rows(database, task)
    secret = OPENCODE.call("bash", {"command": "cat /home/ada/.netrc"}, "c1", "x")
    opencode_rows(database, [OPENCODE.owner("look"), *secret, OPENCODE.assistant("seen")], "s2")
    database.execute("UPDATE session SET parent_id = 's1' WHERE id = 's2'")
    database.close()
    with world.index('[index]\nmax_class = "secret"\n[[source]]\npath = "{logs}"\n') as index:
        catch_up(index)
        rows = [json.loads(line) for line in dumped(index)]
        found = {row["text"].split("\n")[0]: (row["kind"], row["class"]) for row in rows}
        assert found == {
            "do": ("owner", "public"),
            "task": ("tool_call", "public"),
            "look": ("assistant", "public"),
            "bash": ("tool_call", "public"),
            "seen": ("assistant", "secret"),
            "done": ("assistant", "secret"),
        }
        assert dumped(index) == world.fresh(
            '[index]\nmax_class = "secret"\n[[source]]\npath = "{logs}"\n'
        )


@kinds
def test_a_change_far_from_both_ends_is_seen(world, name):
    kind = REWRITTEN[name]
    words = [f"message {number} {'x' * 200}" for number in range(40)]
    speak = [kind.owner, kind.assistant] * 20
    put(world, kind, [say(word) for say, word in zip(speak, words, strict=True)])
    with world.index() as index:
        catch_up(index)
        words[20] = f"another {'x' * 203}"[: len(words[20])]
        put(world, kind, [say(word) for say, word in zip(speak, words, strict=True)])
        catch_up(index)
        assert texts(index) == words


def test_a_session_at_rest_is_looked_through_once_in_an_hour_and_at_once_where_it_is_told(world):
    path = OPENCODE.put(world.logs, [OPENCODE.owner("one")])
    part = next((path.parent.parent.parent / "part").rglob("*.json"))
    files = [file for file in world.logs.rglob("*") if file.is_file()]
    for file in files:
        os.utime(file, (1_000_000_000, 1_000_000_000))
    with world.index() as index:
        catch_up(index)
        index.sweep()
        part.write_text(part.read_text().replace("one", "two"))
        os.utime(part, (1_000_000_001, 1_000_000_001))
        for _ in range(2):  # the second may be its turn, the first was not
            before = texts(index)
            index.sweep()
            index.catch_up(Budget())
        assert before == ["one"]
        index.changed([part])
        index.catch_up(Budget())
        assert texts(index) == ["two"]
        part.write_text(part.read_text().replace("two", "six"))
        os.utime(part, (1_000_000_002, 1_000_000_002))
        for _ in range(resting.ROUNDS):
            index.sweep()
        index.catch_up(Budget())
        assert texts(index) == ["six"]
        assert dumped(index) == world.fresh()


def test_a_session_at_rest_that_is_taken_up_again_is_read(world):
    path = OPENCODE.put(world.logs, [OPENCODE.owner("one")])
    for file in world.logs.rglob("*"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    with world.index() as index:
        catch_up(index)
        index.sweep()
        index.sweep()
        OPENCODE.put(world.logs, [OPENCODE.owner("one"), OPENCODE.assistant("two")])
        os.utime(path, (1_000_000_000, 1_000_000_000))
        catch_up(index)
        assert texts(index) == ["one", "two"]


def test_a_long_session_is_replaced_in_one_transaction_however_small_the_budget(world):
    long = [GEMINI.owner(f"{number} " + "x" * 700_000) for number in range(4)]
    put(world, GEMINI, [GEMINI.owner("one"), *long])
    with world.index() as index:
        catch_up(index)
        put(world, GEMINI, [GEMINI.owner("two"), *long])
        index.sweep()
        index.catch_up(Budget(bytes=1, seconds=0.0))
        assert [text[:3] for text in texts(index)] == ["two", "0 x", "1 x", "2 x", "3 x"]


@kinds
def test_forgetting_deletes_the_file_of_a_document_and_never_a_database_or_a_tree(world, name):
    kind = REWRITTEN[name]
    put(world, kind, [kind.owner("plumword"), kind.assistant("two")])
    files = sorted(path for path in world.logs.rglob("*") if path.is_file())
    with world.index() as index:
        catch_up(index)
        [known] = index.known().values()
        done = index.forget(Wanted(session=known.session), dry=False, delete_logs=True)
        assert [one.whole for one in done.logs] == [True]
        alone = name in ("gemini", "gemini lines", "aider", "cline")
        assert (done.logs[0].deleted, done.logs[0].held) == (alone, not alone)
        assert sorted(path for path in world.logs.rglob("*") if path.is_file()) == (
            [] if alone else files
        )
        catch_up(index)
        assert texts(index) == []


def test_what_a_database_has_of_a_session_is_told_and_what_cannot_be_asked_may_be_there(world):
    put(world, OPENCODE_DB, [OPENCODE_DB.owner("one")])
    path = world.logs / "opencode.db"

    def there(name):
        return what_is_there(Place("opencode", str(world.logs), f"opencode.db/{name}"))

    assert (there("s1"), there("s2")) == ("unknown", "nothing")
    path.write_bytes(b"no database at all")
    assert there("s1") == "unknown"
    path.unlink()
    assert there("s1") == "nothing"
