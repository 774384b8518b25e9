"""Every method over a small index: what it answers, what it grants, what it leaves in the read log."""

import json
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from memoryd import db
from memoryd.config import Socket
from memoryd.errors import Behind
from memoryd.index import schema
from memoryd.index.search import Reader
from memoryd.labels import Label
from memoryd.records import Kind
from memoryd.serve import dumping, reads
from memoryd.serve.asking import Caller
from memoryd.serve.methods import METHODS, Memory, table
from memoryd.serve.peers import capability
from memoryd.serve.readers import Readers
from memoryd.serve.reads import Reads
from tests.support.peer import TalkingPeer, talking
from tests.support.shelf import CLASSES, IDS, Line, fill, place_id

OWNER = Socket("memoryd", "secret", ["*"])
AGENT = Socket("agent", "internal", ["recall"])
LINES = [
    Line("retry with backoff", 0, n=0),
    Line("retry the deploy", 1, n=1, kind=Kind.ASSISTANT),
    Line("retry the password", 2, n=2, kind=Kind.TOOL_CALL, tool="Bash"),
    Line("another project entirely", 0, log="b", project="shop"),
]
HIDDEN = [
    Line(f"retry backoff deploy password {number}", 2, log="hidden", project="plans")
    for number in range(500)
]


class Kept:
    """A keeper that writes nothing; `label` is the asking session's, None: it is behind."""

    def __init__(self) -> None:
        self.label: Label | None = Label(0, False)
        self.waited: list[Caller | None] = []

    async def label_of(self, _caller: Caller) -> Label:
        if self.label is None:
            raise Behind("not read that far", remedy="ask again")
        return self.label

    async def synced(self, caller: Caller | None) -> None:
        self.waited.append(caller)

    def reindex(self) -> str:
        return "job-1"


class Desk(msgspec.Struct):
    """A peer that asks, and what is behind the methods it asks for."""

    peer: TalkingPeer
    keeper: Kept
    readers: Readers
    reads: Reads
    told: Path

    async def ask(self, method: str, /, **args: Any) -> Any:
        await self.peer.send(self.peer.request(method, **args))
        _, _, error, result = await self.peer.answer()
        assert error is None, error
        return result

    async def refused(self, method: str, /, **args: Any) -> str:
        await self.peer.send(self.peer.request(method, **args))
        _, _, error, result = await self.peer.answer()
        assert result is None
        return str(error[1])

    @property
    def noted(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.told.read_text().splitlines()]


def filled(path: Path, lines: list[Line], generation: str = "g1") -> None:
    """Make an index that also says of itself what a dump reads."""
    fill(path, lines, generation)
    connection = db.writer(path)
    meta = schema.Meta(
        generation=generation, epoch="e", classes=CLASSES.names, max_level=2, rules="r", created=0
    )
    told = msgspec.to_builtins(meta) | {"classes": json.dumps(CLASSES.names)}
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(told.items()))
    connection.close()


@asynccontextmanager
async def desk(
    folder: Path, setting: Socket = OWNER, lines: list[Line] = LINES, *, built: bool = True
) -> AsyncIterator[Desk]:
    path = folder / "memory.sqlite3"
    filled(path, lines)
    readers = Readers(lambda: Reader(db.reader(path), IDS, CLASSES))
    if built:
        readers.open()
    keeper, told = Kept(), folder / "reads.jsonl"
    read_log = Reads(told)
    methods = table(
        Memory(CLASSES, readers, read_log, keeper, "9.9", lambda: 7, lambda: {"faults": []})
    )
    async with talking(methods, capability(setting, CLASSES)) as peer:
        yield Desk(peer, keeper, readers, read_log, told)
    readers.shut()
    read_log.close()


def test_the_table_has_every_method_that_can_be_granted(user_home: Path) -> None:
    readers = Readers(lambda: pytest.fail("nothing is read"))
    memory = Memory(
        CLASSES, readers, Reads(user_home / "reads.jsonl"), Kept(), "9.9", lambda: 7, dict
    )
    assert tuple(sorted(table(memory))) == METHODS


async def test_hello_tells_what_the_socket_is_and_no_class_above_it(user_home: Path) -> None:
    async with desk(user_home, AGENT) as here:
        told = await here.ask("hello", client="me")
    assert told == {
        "server": "memoryd",
        "versions": {"memoryd": "9.9", "protocol": 1},
        "classes": ["public", "internal"],
        "clearance": "internal",
        "tools": ["recall"],
        "methods": [
            "get",
            "hello",
            "projects",
            "recall",
            "sessions",
            "status",
            "subscribe",
            "sync",
            "tool.call",
            "tool.list",
        ],
        "limits": {"request_bytes": 1 << 20, "answer_bytes": 8 << 20, "in_flight": 32},
    }


async def test_hello_decides_how_errors_look(user_home: Path) -> None:
    async with desk(user_home) as here:
        assert (await here.refused("get", id="x")).startswith("not_found: ")
        await here.ask("hello", errors="map")
        await here.peer.send(here.peer.request("get", id="x"))
        assert (await here.peer.answer())[2]["code"] == "not_found"
        await here.ask("hello")
        assert (await here.refused("get", id="x")).startswith("not_found: ")


async def test_hello_refuses_a_version_that_is_not_spoken_p14(user_home: Path) -> None:
    async with desk(user_home) as here:
        assert (await here.refused("hello", protocol=2)).startswith("bad_request: protocol 2")


async def test_status_counts_what_the_socket_may_see(user_home: Path) -> None:
    async with desk(user_home) as here:
        told = await here.ask("status")
        assert told == {"ready": True, "generation": "g1", "rows": 4, "uptime": 7, "faults": []}
    (user_home / "memory.sqlite3").unlink()
    async with desk(user_home, AGENT) as here:
        told = await here.ask("status")
        assert told == {"ready": True, "generation": "g1", "rows": 3, "uptime": 7}


async def test_records_tells_a_session_in_order_over_pages(user_home: Path) -> None:
    async with desk(user_home) as here:
        first = await here.ask("records", session="a", limit=2)
        rest = await here.ask("records", session="a", limit=2, cursor=first["cursor"])
        assert (await here.ask("records", session="nowhere"))["records"] == []
    told = [*first["records"], *rest["records"]]
    assert [(one["n"], one["text"], one["class"]) for one in told] == [
        (0, "retry with backoff", "public"),
        (1, "retry the deploy", "internal"),
        (2, "retry the password", "private"),
    ]
    assert [one["log"] for one in told] == ["a", "a", "a"]
    assert first["label"]["class"] == "internal"
    assert rest["cursor"] is None
    assert here.noted[-3]["ids"] == [one["id"] for one in first["records"]]


async def test_records_follow_a_session_through_its_logs_by_time(user_home: Path) -> None:
    lines = [
        Line("resumed", 0, log="b", session="s", ts=2_000, n=5),
        Line("second", 0, log="c", session="s", ts=1_000, n=1, block=1),
        Line("first", 1, log="c", session="s", ts=1_000, n=1),
        Line("of another harness", 0, log="d", session="s", ts=0, source="codex"),
    ]
    async with desk(user_home, lines=lines) as here:
        told = await here.ask("records", session="s", source="native")
        up_to = await here.ask("records", session="s", max_class="public")
    assert [one["text"] for one in told["records"]] == ["first", "second", "resumed"]
    assert [one["text"] for one in up_to["records"]] == ["of another harness", "second", "resumed"]


async def test_records_are_the_owner_s(user_home: Path) -> None:
    async with desk(user_home, AGENT) as here:
        assert (await here.refused("records", session="a")).startswith("not_granted: ")


async def test_before_the_index_is_built_status_answers_and_recall_says_so(user_home: Path) -> None:
    async with desk(user_home, built=False) as here:
        assert (await here.ask("status"))["ready"] is False
        assert (await here.refused("recall", query="retry")).startswith("unavailable: ")


async def test_recall_answers_up_to_the_socket_s_clearance(user_home: Path) -> None:
    async with desk(user_home, AGENT) as here:
        told = await here.ask("recall", query="retry")
    assert {hit["snippet"] for hit in told["hits"]} == {"retry with backoff", "retry the deploy"}
    assert told["label"] == {"class": "internal", "untrusted": False}
    assert all("n" not in hit for hit in told["hits"])


@pytest.mark.parametrize(
    ("label", "max_class", "highest"),
    [
        (Label(0, False), None, "public"),
        (Label(0, False), "internal", "internal"),
        (Label(1, True), "internal", "internal"),
        (Label(1, False), "public", "public"),
        (Label(3, False), None, "internal"),
        (None, "public", "public"),
        (None, None, "internal"),
    ],
)
async def test_a_session_that_names_itself_sees_its_own_class_unless_it_asks_for_more(
    user_home: Path, label: Label | None, max_class: str | None, highest: str
) -> None:
    async with desk(user_home, AGENT) as here:
        more: dict[str, Any] = {} if max_class is None else {"max_class": max_class}
        if label is not None:
            here.keeper.label = label
            more["caller"] = {"log": "a.jsonl", "n": 3}
        told = await here.ask("recall", query="retry", **more)
    assert told["label"]["class"] == highest


@pytest.mark.parametrize("name", ["private", "secret"])
@pytest.mark.parametrize("method", ["recall", "get", "sessions", "projects"])
async def test_case_30_a_class_above_the_clearance_counts_as_the_clearance(
    user_home: Path, name: str, method: str
) -> None:
    asked: dict[str, Any] = {"recall": {"query": "retry"}, "get": {"id": place_id(LINES[1])}}.get(
        method, {}
    )
    async with desk(user_home, AGENT) as here:
        plain = await here.ask(method, **asked)
        assert await here.ask(method, **asked, max_class=name) == plain
        here.keeper.label = Label(0, False)
        asked["caller"] = {"log": "a.jsonl", "n": 3}
        assert await here.ask(method, **asked, max_class=name) == plain
        assert name not in json.dumps(plain)


@pytest.mark.parametrize("name", ["nonsense", ""])
async def test_an_unknown_class_is_refused_and_none_above_the_clearance_is_named(
    user_home: Path, name: str
) -> None:
    async with desk(user_home, AGENT) as here:
        said = await here.refused("recall", query="retry", max_class=name)
    assert said == "bad_request: max_class: no such class; choose one of public, internal"


@pytest.mark.parametrize("hidden", [1, 500])
async def test_case_28_hidden_rows_with_the_words_change_no_byte_of_an_answer(
    user_home: Path, hidden: int
) -> None:
    asked = {"query": "retry OR backoff", "text": True}
    folders = [user_home / "one", user_home / "two"]
    for folder in folders:
        folder.mkdir()
    async with desk(folders[0], AGENT, [line for line in LINES if line.level < 2]) as here:
        alone = await here.ask("recall", **asked)
    async with desk(folders[1], AGENT, LINES + HIDDEN[:hidden]) as here:
        assert msgspec.msgpack.encode(await here.ask("recall", **asked)) == msgspec.msgpack.encode(
            alone
        )


async def test_case_29_a_hidden_id_and_a_random_one_are_refused_alike(user_home: Path) -> None:
    hidden, random = place_id(LINES[2]), "a" * 20
    async with desk(user_home, AGENT) as here:
        await here.ask("hello", errors="map")
        told = []
        for name in (hidden, random, "no id"):
            await here.peer.send(here.peer.request("get", id=name))
            told.append((await here.peer.answer())[2])
        assert told[0] == told[1] == told[2]
        assert told[0]["code"] == "not_found"
        assert not here.told.exists() or "get" not in here.told.read_text()


async def test_case_31_a_cursor_of_a_higher_reader_fits_no_lower_one(user_home: Path) -> None:
    async with desk(user_home, OWNER) as here:
        cursor = (await here.ask("recall", query="retry", limit=1))["cursor"]
        assert cursor
        lower = await here.refused(
            "recall", query="retry", limit=1, cursor=cursor, max_class="internal"
        )
        assert lower.startswith("conflict: ")
    (user_home / "memory.sqlite3").unlink()
    async with desk(user_home, AGENT) as here:
        assert (await here.refused("recall", query="retry", limit=1, cursor=cursor)) == lower


async def test_case_32_a_session_of_hidden_rows_alone_is_in_no_listing_and_no_count(
    user_home: Path,
) -> None:
    async with desk(user_home, AGENT, LINES + HIDDEN[:50]) as here:
        listed = (await here.ask("sessions"))["sessions"]
        assert {one["session"]: one["rows"] for one in listed} == {"a": 2, "b": 1}
        assert {one["project"] for one in (await here.ask("projects"))["projects"]} == {
            "web",
            "shop",
        }
        assert (await here.ask("status"))["rows"] == 3


@pytest.mark.parametrize(
    "query",
    [
        "NEAR(retry deploy)",
        "retry NEAR/2 deploy",
        'text: "retry',
        '"unbalanced',
        "{text} : retry",
        "retry*deploy*",
        "^retry",
        "ft_0 MATCH 'x'",
        "'; DROP TABLE row_0; --",
        "-retry NOT (deploy",
        "(((((",
        "\x00retry",
        " ".join(f"t{number}" for number in range(700)),
    ],
)
async def test_case_33_no_query_is_the_search_engine_s_own_syntax_s17(
    user_home: Path, query: str
) -> None:
    async with desk(user_home) as here:
        await here.peer.send(here.peer.request("recall", query=query))
        _, _, error, result = await here.peer.answer()
        assert error is None or error[1].startswith(("bad_request: ", "too_large: "))
        assert result is None or isinstance(result["hits"], list)
        assert len((await here.ask("recall", query="retry"))["hits"]) == 3


async def test_case_34_an_answer_carries_the_label_that_its_reader_takes_on_v12(
    user_home: Path,
) -> None:
    async with desk(user_home) as here:
        told = await here.ask("recall", query="password")
        assert told["hits"][0]["class"] == "private"
        assert told["label"] == {"class": "private", "untrusted": False}
        here.keeper.label = Label(0, False)
        empty = await here.ask("recall", query="unicorn")
        assert empty["label"] == {"class": "public", "untrusted": False}


async def test_case_3_an_owner_s_words_in_an_untrusted_session_stay_readable_to_owner_only(
    user_home: Path,
) -> None:
    lines = [
        Line("retry said the owner", untrusted=True, n=0),
        Line("retry said the agent", untrusted=True, n=1, kind=Kind.ASSISTANT),
    ]
    async with desk(user_home, OWNER, lines) as here:
        found = {
            policy: [
                hit["kind"]
                for hit in (await here.ask("recall", query="retry", untrusted=policy))["hits"]
            ]
            for policy in ("include", "owner-only", "exclude")
        }
    assert sorted(found["include"]) == ["assistant", "owner"]
    assert found["owner-only"] == ["owner"]
    assert found["exclude"] == []


async def test_a_caller_whose_log_is_not_read_that_far_is_behind(user_home: Path) -> None:
    async with desk(user_home, AGENT) as here:
        here.keeper.label = None
        said = await here.refused("recall", query="retry", caller={"log": "a.jsonl", "n": 99})
    assert said.startswith("behind: ")


@pytest.mark.parametrize("method", ["recall", "get", "sessions", "projects"])
@pytest.mark.parametrize(
    ("args", "names"),
    [
        ({"caller": {"log": "a"}}, "caller.n"),
        ({"caller": {"log": "a", "n": -1}}, "caller.n"),
        ({"caller": "a"}, "caller"),
        ({"max_clas": "public"}, "max_clas"),
        ({"asked": {}}, "asked"),
        ({"deadline_ms": 0}, "deadline_ms"),
    ],
)
async def test_a_wrong_common_argument_is_named(
    user_home: Path, method: str, args: dict[str, Any], names: str
) -> None:
    needed = {"recall": {"query": "x"}, "get": {"id": "x"}}.get(method, {})
    async with desk(user_home) as here:
        said = await here.refused(method, **needed, **args)
    assert said.startswith("bad_request: ")
    assert names in said


@pytest.mark.parametrize(
    ("method", "args", "names"),
    [
        ("recall", {}, "'query' is missing"),
        ("recall", {"query": "x", "limit": "ten"}, "limit: expected int, got str"),
        ("recall", {"query": "x", "kinds": ["nonsense"]}, "kinds"),
        ("get", {"id": "x", "before": 99}, "before: expected int <= 50"),
        ("sessions", {"limit": 0}, "limit: expected int >= 1"),
        ("sync", {"sesion": "x"}, "'sesion'"),
        ("dump", {"cursor": 7}, "cursor: expected str | null, got int"),
    ],
)
async def test_a_wrong_argument_of_its_own_is_named(
    user_home: Path, method: str, args: dict[str, Any], names: str
) -> None:
    async with desk(user_home) as here:
        said = await here.refused(method, **args)
    assert said.startswith("bad_request: ")
    assert names in said


async def test_get_sessions_and_projects_answer(user_home: Path) -> None:
    async with desk(user_home, AGENT) as here:
        told = await here.ask("get", id=place_id(LINES[0]), after=5)
        assert told["record"]["text"] == "retry with backoff"
        assert len(told["after"]) == 1
        told = await here.ask("sessions")
        assert {session["session"] for session in told["sessions"]} == {"a", "b"}
        told = await here.ask("projects")
        assert {project["project"] for project in told["projects"]} == {"web", "shop"}


async def test_each_answer_leaves_a_line_that_holds_no_query(user_home: Path) -> None:
    async with desk(user_home, AGENT) as here:
        hits = (await here.ask("recall", query="retry unicorn"))["hits"]
        await here.ask("get", id=place_id(LINES[0]), after=1)
        await here.ask("sessions")
        await here.ask("projects")
        await here.ask("status")
        assert (await here.refused("get", id="x")).startswith("not_found")
    assert [line["method"] for line in here.noted] == ["recall", "get", "sessions", "projects"]
    assert here.noted[0]["ids"] == [hit["id"] for hit in hits]
    assert here.noted[1]["ids"] == [place_id(LINES[0]), place_id(LINES[1])]
    assert sorted(here.noted[2]["ids"]) == ["a", "b"]
    assert sorted(here.noted[3]["ids"]) == ["shop", "web"]
    assert [line["sessions"] for line in here.noted] == [["a"], ["a"], [], []]
    for line in here.noted:
        assert set(line) == {
            "time", "socket", "uid", "pid", "method", "ids", "label", "caller", "sessions"
        }  # fmt: skip
        assert line["socket"] == "agent"
        assert line["label"]["class"] == "internal"
    assert "unicorn" not in here.told.read_text()
    assert stat.S_IMODE(here.told.stat().st_mode) == 0o600


async def test_a_line_that_cannot_be_written_holds_no_answer_back(user_home: Path) -> None:
    (user_home / "reads.jsonl").mkdir()
    async with desk(user_home) as here:
        with structlog.testing.capture_logs() as logged:
            assert (await here.ask("recall", query="retry"))["hits"]
        assert here.reads.missing == 1
        assert logged[0]["event"] == "an answer is missing in reads.jsonl"


async def test_the_read_log_is_rotated(user_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "ROTATED_AT", 300)
    async with desk(user_home) as here:
        for _ in range(9):
            await here.ask("projects")
    assert len(here.noted) + len((user_home / "reads.jsonl.1").read_text().splitlines()) < 9
    assert here.noted


async def test_the_owner_s_methods_are_not_granted_elsewhere(user_home: Path) -> None:
    async with desk(user_home, AGENT) as here:
        assert (await here.refused("dump")).startswith("not_granted: ")
        assert (await here.refused("reindex")).startswith("not_granted: ")


async def test_reindex_answers_its_job_at_once(user_home: Path) -> None:
    async with desk(user_home) as here:
        assert await here.ask("reindex") == {"job": "job-1"}


async def test_sync_waits_for_everything_for_the_owner_and_for_the_caller_s_log_elsewhere(
    user_home: Path,
) -> None:
    async with desk(user_home) as here:
        assert (await here.ask("sync"))["waited_ms"] >= 0
        await here.ask("sync", session="s")
        assert here.keeper.waited == [None, None]
    (user_home / "memory.sqlite3").unlink()
    async with desk(user_home, AGENT) as here:
        said = await here.refused("sync")
        assert said.startswith("bad_request: ")
        assert "caller" in said
        assert await here.ask("sync", session="s", caller={"log": "a", "n": 1}) == {}
        assert here.keeper.waited == [Caller("a", 1)]


async def test_a_dump_goes_on_by_cursor_and_holds_every_row(
    user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dumping, "PAGE_BYTES", 200)
    async with desk(user_home) as here:
        lines: list[str] = []
        cursor = None
        pages = 0
        while cursor is not None or not pages:
            page = await here.ask("dump", **({"cursor": cursor} if cursor else {}))
            lines += page["lines"]
            cursor = page["cursor"]
            pages += 1
        assert pages > 1
        texts = [json.loads(line)["text"] for line in lines]
        assert texts == [line.text for line in LINES]
        assert (await here.refused("dump", cursor="made up")).startswith("conflict: ")


async def test_a_dump_cursor_of_an_index_that_was_replaced_is_a_conflict_p27(
    user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dumping, "PAGE_BYTES", 200)
    async with desk(user_home) as here:
        cursor = (await here.ask("dump"))["cursor"]
        here.readers.shut()
        (user_home / "memory.sqlite3").unlink()
        filled(user_home / "memory.sqlite3", LINES, generation="g2")
        here.readers.open()
        assert (await here.refused("dump", cursor=cursor)).startswith("conflict: ")


@pytest.fixture
def folders(user_home: Path) -> tuple[Path, Path]:
    """Two folders for two indexes."""
    less, more = user_home / "less", user_home / "more"
    less.mkdir()
    more.mkdir()
    return less, more


@pytest.mark.parametrize("hidden", [1, 500])
async def test_hidden_rows_change_no_byte_of_any_answer_v10(
    folders: tuple[Path, Path], hidden: int
) -> None:
    questions: list[tuple[str, dict[str, Any]]] = [
        ("hello", {}),
        ("status", {}),
        ("recall", {"query": "retry backoff deploy password"}),
        ("recall", {"query": ""}),
        ("recall", {"query": "retry", "group": "session", "limit": 1}),
        ("recall", {"query": "retry", "project": "plans"}),
        ("get", {"id": place_id(LINES[0]), "before": 5, "after": 5}),
        ("get", {"id": place_id(LINES[2])}),
        ("sessions", {}),
        ("projects", {}),
        ("dump", {}),
    ]

    async def answers(folder: Path, lines: list[Line]) -> list[Any]:
        async with desk(folder, AGENT, lines) as here:
            told = []
            for method, args in questions:
                await here.peer.send(here.peer.request(method, **args))
                told.append(await here.peer.answer())
            return told

    less = await answers(folders[0], LINES)
    more = await answers(folders[1], [*LINES, *HIDDEN[:hidden]])
    assert more == less
