"""The adapter that the documentation works out is a whole one: it runs, and does what the page says."""

import re
import types
from pathlib import Path

import pytest

from memoryd.records import Brought, Called, Kind, Returned, Said
from memoryd.sources.lines import Position, read
from tests.support.logs import encoded, stamp

PAGE = Path(__file__).parents[3] / "docs" / "sources.md"


@pytest.fixture(scope="module")
def adapter():
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert code.count("\n") < 100
    module = types.ModuleType("parrot")
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    return module.ADAPTER


def test_the_worked_adapter_reads_a_session(adapter, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        encoded(
            {"parrot": "session", "id": "s1", "folder": "/w", "at": stamp(0)},
            {"parrot": "human", "text": "hello", "at": stamp(1)},
            {"parrot": "parrot", "text": "hello hello"},
            {"parrot": "call", "tool": "bash", "args": '{"command": "ls"}', "call": "c1"},
            {"parrot": "result", "call": "c1", "ok": False, "text": "nothing"},
            {"parrot": "file", "path": "/w/.env", "text": "secret"},
            {"parrot": "human", "text": ["odd"]},
            {"parrot": "news", "text": "unknown"},
        )
    )
    with path.open("rb") as file:
        records = [r for batch in read(file, Position(), adapter) for r in batch.records]
    assert [record.items for record in records] == [
        [],
        [Said(0, Kind.OWNER, "hello")],
        [Said(0, Kind.ASSISTANT, "hello hello")],
        [Called(0, "c1", "bash", {"command": "ls"})],
        [Returned(0, "c1", None, False)],
        [Brought(0, "attachment:file", args={"path": "/w/.env"})],
        [Brought(0, "record:malformed")],
        [Brought(0, "record:news")],
    ]
    assert records[0].about is not None
    assert (records[0].about.session, records[0].about.project) == ("s1", "/w")
    assert adapter.find(tmp_path, {"HOME": "/home/ada"}) == [Path("/home/ada/.parrot/sessions")]
    assert adapter.find(tmp_path, {}) == []
    assert adapter.claims({"parrot": "human"})
    assert not adapter.claims({"type": "user"})
