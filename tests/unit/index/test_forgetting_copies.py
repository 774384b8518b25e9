"""Copies that a resumed session holds of forgotten records: they never come back as its own, in whatever order."""

import json

import pytest

from memoryd.index import Wanted, catch_up
from tests.support.indexing import dumped, publish
from tests.support.logs import START_MS, claude, claude_user, dated, write

DROP = '[index]\nvanished = "drop"\n[[source]]\nkind = "auto"\npath = "{logs}"\n'


@pytest.fixture
def family():
    """Return a session of two records, the second of three blocks, and one that resumes it."""
    blocks = [{"type": kind, kind: f"quince{kind}"} for kind in ("thinking", "text")]
    blocks.append({"type": "text", "text": "quincethird"})
    said = [claude_user("quincefirst"), claude("assistant", blocks)]
    first = dated(*said, claude_user("medlarlast"))
    for at, record in enumerate(first):
        record |= {"uuid": f"00000000-0000-4000-8000-00000000a{at:03}", "sessionId": "s1"}
    (own,) = dated(claude_user("sorbown"), start=100)
    own |= {"uuid": "00000000-0000-4000-8000-00000000b000", "parentUuid": first[-1]["uuid"]}
    second = [{**record, "sessionId": "s2"} for record in (*first, own)]
    return first, second


def texts(index):
    return [json.loads(line)["text"] for line in dumped(index)]


def id_of(world, index, n, block):
    key = index.settings.ids.log_key("claude-code", str(world.logs), "a.jsonl")
    return index.settings.ids.encode(key, n, block)


def gone(world, index, path):
    """Let the harness delete a log, and return what is left."""
    path.unlink()
    catch_up(index)
    assert dumped(index) == world.fresh(DROP)
    return texts(index)


def test_copies_are_rows_of_their_log_once_the_other_log_is_dropped(world, family):
    path = write(world.logs / "a.jsonl", *family[0])
    write(world.logs / "b.jsonl", *family[1])
    with world.index(DROP) as index:
        catch_up(index)
        assert gone(world, index, path) == [
            "quincefirst", "quincetext", "quincethird", "medlarlast", "sorbown",
        ]  # fmt: skip


def test_a_block_that_is_forgotten_takes_its_copy_along_and_no_other_block(world, family):
    path = write(world.logs / "a.jsonl", *family[0])
    write(world.logs / "b.jsonl", *family[1])
    with world.index(DROP) as index:
        catch_up(index)
        index.forget(Wanted(ids=(id_of(world, index, 1, 2),)), dry=False)
        assert gone(world, index, path) == ["quincefirst", "quincetext", "medlarlast", "sorbown"]


def test_of_a_time_only_what_is_older_goes_from_a_copy(world, family):
    path = write(world.logs / "a.jsonl", *family[0])
    write(world.logs / "b.jsonl", *family[1])
    with world.index(DROP) as index:
        catch_up(index)
        index.forget(Wanted(session="s1", before=START_MS + 1_500), dry=False)
        assert gone(world, index, path) == ["medlarlast", "sorbown"]


@pytest.mark.parametrize("wanted", [Wanted(session="s1"), Wanted(before=START_MS + 1_500)])
def test_a_copy_that_is_made_after_its_parent_was_forgotten_brings_nothing_back(
    world, family, wanted
):
    path = write(world.logs / "a.jsonl", *family[0])
    with world.index(DROP) as index:
        catch_up(index)
        act = index.forget(wanted, dry=False).act
        write(world.logs / "b.jsonl", *family[1])
        catch_up(index)
        written = world.overrides
        publish(index, index.settings)
        catch_up(index)
        assert world.overrides == written
        left = gone(world, index, path)
        assert not any("quince" in text for text in left)
        assert left[-1] == "sorbown"
        index.remember(act)
        catch_up(index)
        assert texts(index) == [
            "quincefirst", "quincetext", "quincethird", "medlarlast", "sorbown",
        ]  # fmt: skip
