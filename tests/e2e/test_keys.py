"""The keys of a state folder changed, as its owner does it: other ids, everything else as it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from memoryd.errors import MemorydError
from tests.e2e.test_backup import CONFIG, asked, bxctl, plant
from tests.support.daemon import Daemon


def without_ids(told: dict[str, Any]) -> dict[str, Any]:
    hits = [{k: v for k, v in hit.items() if k != "id"} for hit in told["hits"]]
    return {**told, "hits": sorted(hits, key=str), "lines": 0}


def test_with_new_keys_ids_and_cursors_are_unknown_and_nothing_is_learned_twice(
    user_home: Path,
) -> None:
    plant(user_home)
    with Daemon(user_home, CONFIG) as daemon:
        daemon.start()
        daemon.ask("sync", lessons=True)
        bxctl(daemon, "memory", "notes", "create", "--text", "one", "internal/1.md")
        assert bxctl(daemon, "memory", "forget", "--session", "gone", "--yes").returncode == 0
        page = daemon.ask("recall", query="build", limit=1)
        relabel = {"log": "s0.jsonl", "from": 0, "to": 9, "class": "secret", "reason": "mine"}
        daemon.ask("relabel", **relabel)
        raised = asked(daemon)
        busy = bxctl(daemon, "keys", "rotate")
        assert (busy.returncode, "runs already" in busy.stderr) == (75, True)
        daemon.stop()
        rotated = bxctl(daemon, "keys", "rotate", "--json")
        assert rotated.returncode == 0, rotated.stderr
        told = json.loads(rotated.stdout)
        assert (told["journal"], told["lessons"]) == (True, 4)
        daemon.start()
        after = asked(daemon)
        assert without_ids(after) == without_ids(raised)
        assert {hit["id"] for hit in after["hits"]}.isdisjoint(hit["id"] for hit in raised["hits"])
        assert after["faults"] == []
        with pytest.raises(MemorydError) as unknown:
            daemon.ask("get", id=page["hits"][0]["id"])
        assert unknown.value.code == "not_found"
        with pytest.raises(MemorydError) as stale:
            daemon.ask("recall", query="build", limit=1, cursor=page["cursor"])
        assert stale.value.code == "conflict"
        daemon.stop()
        (user_home / "state" / "key.next").write_bytes(b"n" * 32)
        (user_home / "state" / "key.next").chmod(0o600)
        refused = bxctl(daemon, "memory", "dump")
        assert "bxctl keys rotate" in refused.stderr
        daemon.launch()
        assert daemon.process.wait(180) == 78
