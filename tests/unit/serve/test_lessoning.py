"""The methods of lessons: keys, labels, who may, what is refused, what is written into the read log."""

import json
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio

from memoryd import db
from memoryd.config import Socket
from memoryd.labels import Label
from memoryd.lessons import store
from memoryd.serve.peers import ALL, LESSONS, capability
from memoryd.serve.peers import OWNER as OWNERS_METHODS
from memoryd.serve.tutor import Tutor
from tests.support.faculty import AGENT, CLASSES, TOOLS, Faculty, faculty, learned
from tests.support.indexing import World as Logs
from tests.support.teaching import LOW

GOLDEN = Path(__file__).parents[2] / "golden" / "lessons"
HIGH = Label(3, False)
CALLER = {"log": "s3.jsonl", "n": 3}
NEVER = "00000000-0000-7000-8000-000000000000"


def shape(value: Any) -> Any:
    """The keys of an answer, and the kind of each value."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return {bool: "bool", int: "number", float: "number", str: "text", type(None): "null"}[
        type(value)
    ]


async def answers(here: Faculty) -> dict[str, Any]:
    """One answer of each of the thirteen; of those that answer in another form too, one of each."""
    world = learned(here.world)
    lesson = world.one("id")
    here.world.now += 1_000
    return {
        "query": await here.ask("lessons.query", query="fails TS2304", evidence=True),
        "query_full": await here.ask("lessons.query", query="fails TS2304", full=True),
        "get": await here.ask("lessons.get", id=lesson),
        "why": await here.ask("lessons.why", query="fails TS2304"),
        "trace": await here.ask(
            "lessons.trace", query="the build fails", session="s3", project="/w/app"
        ),
        "retrospective": await here.ask("lessons.retrospective", session="s1"),
        "config": await here.ask("lessons.config"),
        "config_set": await here.ask(
            "lessons.config", action="set", key="archive_after_days", value="30"
        ),
        "feedback": await here.ask("lessons.feedback", memory_id=lesson, verdict="useful"),
        "recall": await here.ask("lessons.recall", query="the build fails"),
        "status": await here.ask("lessons.status"),
        "audit": await here.ask("lessons.audit", verbose=True),
        "export": await here.ask("lessons.export"),
        "save": await here.ask("lessons.save", type="rule", content="run the linter", owner=True),
        "import": await here.ask("lessons.import", bundle="nothing in it"),
    }


async def test_each_method_answers_with_exactly_the_keys_of_its_golden_file(user_home: Path):
    async with faculty(user_home) as here:
        told = await answers(here)
    assert sorted(told) == sorted(path.stem for path in GOLDEN.glob("*.json"))
    for tool, answer in told.items():
        golden = json.loads((GOLDEN / f"{tool}.json").read_text("utf-8"))
        assert shape(answer) == golden, tool


async def test_each_answer_leaves_a_line_in_the_read_log_and_never_the_query(user_home: Path):
    async with faculty(user_home) as here:
        await answers(here)
        noted = here.noted
    told = (
        "query",
        "query",
        "get",
        "why",
        "trace",
        "retrospective",
        "feedback",
        "recall",
        "status",
        "audit",
        "export",
    )
    assert [line["method"] for line in noted] == [f"lessons.{name}" for name in told]
    assert all(line["label"] == {"class": "public", "untrusted": False} for line in noted[:5])
    assert "TS2304" not in json.dumps(noted)


def test_a_tool_grants_its_method_and_to_say_that_a_session_is_idle():
    found = capability(Socket("a", "internal", ["lesson_query"]), CLASSES)
    assert {name for name in found.methods if name.startswith("lessons.")} == {
        "lessons.query",
        "lessons.idle",
    }


def test_what_gives_lessons_away_or_takes_them_in_is_the_owners():
    acts = ("import", "export", "retrospective", "propose", "list", "ledger", "days")
    owners = {f"lessons.{act}" for act in acts}
    assert owners <= OWNERS_METHODS
    everything = Socket("a", "private", ["*"])
    assert capability(everything, CLASSES).methods & owners == set()
    assert set(LESSONS) == set(TOOLS)
    assert {name for name in ALL if name.startswith("lessons.")} == owners | frozenset().union(
        *LESSONS.values()
    )


async def test_only_the_owner_sets_a_setting(user_home: Path):
    async with faculty(user_home, AGENT) as here:
        said = await here.refused("lessons.config", action="set", key="archive_after_days")
        assert said.startswith("not_granted")
        assert (await here.ask("lessons.config"))["settings"]["archive_after_days"] == "30"


@pytest.mark.parametrize(("key", "value"), [("nonsense", "1"), ("pre_prompt_budget_tokens", "abc")])
async def test_config_refuses_junk_by_name(user_home: Path, key: str, value: str):
    async with faculty(user_home) as here:
        said = await here.refused("lessons.config", action="set", key=key, value=value)
    assert said.startswith("bad_request")
    assert key in said


async def test_a_recall_of_a_session_is_in_the_ledger_with_the_hook_pull(user_home: Path):
    async with faculty(user_home, AGENT) as here:
        learned(here.world)
        told = await here.ask("lessons.recall", query="the build fails", caller=CALLER)
        assert told["label"] == {"class": "public", "untrusted": False}
        rows = here.world.all("SELECT lesson, hook FROM injection WHERE session = 's3'")
    assert rows == [(lesson["id"], "pull") for lesson in told["lessons"]]
    assert rows


async def test_a_session_that_names_itself_sees_its_own_class_and_may_ask_for_more(user_home: Path):
    async with faculty(user_home, AGENT) as here:
        here.world.fail("s1", label=Label(1, False))
        assert (await here.ask("lessons.query", query="fails", caller=CALLER))["lessons"] == []
        told = await here.ask("lessons.query", query="fails", caller=CALLER, max_class="internal")
        assert told["label"] == {"class": "internal", "untrusted": False}
        assert len(told["lessons"]) == 1


async def test_a_caller_whose_log_is_not_read_that_far_is_behind(user_home: Path):
    async with faculty(user_home, AGENT) as here:
        said = await here.refused("lessons.query", query="x", caller={"log": "a", "n": 9_999})
    assert said.startswith("behind")


async def test_what_is_saved_gets_the_label_of_the_session_that_saves_it(user_home: Path):
    async with faculty(user_home, AGENT) as here:
        here.keeper.labels["s3.jsonl"] = Label(1, True)
        args = {"type": "rule", "content": "run the linter", "caller": CALLER}
        told = await here.ask("lessons.save", **args)
        assert told["label"] == {"class": "internal", "untrusted": True}
        claim = {"class": "private", "untrusted": False}
        told = await here.ask("lessons.save", label=claim, **args)
        assert told["label"] == {"class": "private", "untrusted": True}
        told = await here.ask("lessons.save", type="rule", content="x")
        assert told["label"] == {"class": "secret", "untrusted": True}
        rows = here.world.all("SELECT session, project FROM lesson ORDER BY row LIMIT 1")
        assert rows == [("s3", "/w/app")]


async def test_a_person_at_the_owners_socket_says_what_a_lesson_is_worth(user_home: Path):
    async with faculty(user_home) as here:
        claim = {"class": "internal", "untrusted": False}
        args = {"type": "rule", "content": "run the linter", "owner": True}
        assert (await here.ask("lessons.save", label=claim, **args))["label"] == claim
        told = await here.ask("lessons.save", **{**args, "content": "other"})
        assert told["label"] == {"class": "secret", "untrusted": False}
        assert "not_granted" in await here.refused("lessons.save", caller=CALLER, **args)


async def test_nobody_else_acts_as_the_owner(user_home: Path):
    async with faculty(user_home, AGENT) as here:
        said = await here.refused("lessons.save", type="rule", content="x", owner=True)
    assert said.startswith("not_granted")


async def test_a_socket_saves_nothing_for_a_project_that_it_does_not_see(user_home: Path):
    async with faculty(user_home, Socket("a", "internal", TOOLS, projects=["/w/*"])) as here:
        said = await here.refused("lessons.save", type="rule", content="x", project="/other")
        assert said.startswith("bad_request")
        await here.ask("lessons.save", type="rule", content="x", project="/w/shop")


async def test_a_session_above_a_lesson_cannot_tell_its_readers_what_it_thinks(user_home: Path):
    async with faculty(user_home, AGENT) as here:
        here.world.fail("s1")
        here.keeper.labels["s3.jsonl"] = Label(1, False)
        args = {"memory_id": here.world.one("id"), "verdict": "wrong", "caller": CALLER}
        error, _ = await here.answer("lessons.feedback", **args)
        assert error[1].startswith("check_failed")
        here.keeper.labels["s3.jsonl"] = LOW
        assert (await here.ask("lessons.feedback", **args))["counters"]["negative"] == 1


async def test_a_hidden_lesson_and_none_are_one_answer(user_home: Path):
    async with faculty(user_home, AGENT) as here:
        here.world.fail("s1", label=HIGH)
        hidden = here.world.one("id")
        for method, name in (("lessons.get", "id"), ("lessons.feedback", "memory_id")):
            more = {"verdict": "useful"} if name == "memory_id" else {}
            said = [await here.refused(method, **{name: one}, **more) for one in (hidden, NEVER)]
            assert said[0] == said[1]
            assert said[0].startswith("not_found")


async def test_only_the_owner_speaks_of_another_session(user_home: Path):
    async with faculty(user_home, AGENT) as here:
        world = here.world
        world.fail("s1")
        world.block("s2")
        told = await here.ask("lessons.trace", query="build fails", session="s2", project="/w/app")
        assert [one["decision"] for one in told["admitted"]] == ["admitted"]


async def test_idle_settles_and_end_is_final(user_home: Path):
    async with faculty(user_home, AGENT) as here:
        world = here.world
        world.fail("s1")
        world.block("s3")
        assert await here.ask("lessons.idle", caller=CALLER) == {"idle": True}
        assert world.all("SELECT outcome, final FROM injection") == [("inconclusive", 0)]
        world.fail("s3")
        await here.ask("lessons.idle", caller=CALLER, end=True)
        assert world.all("SELECT outcome, final FROM injection") == [("ineffective", 1)]


async def test_a_hook_says_by_its_session_s_name_that_it_rests(user_home: Path):
    async with faculty(user_home, Socket("agent", "internal", ["memory_view"])) as here:
        world = here.world
        world.fail("s1")
        world.block("s3")
        assert await here.ask("lessons.idle", session="s3") == {"idle": True}
        assert world.all("SELECT outcome, final FROM injection") == [("inconclusive", 0)]
        await here.ask("lessons.idle", session="s3", end=True)
        assert world.all("SELECT outcome, final FROM injection") == [("inconclusive", 1)]
        assert await here.ask("lessons.idle", session=NEVER, end=True) == {"idle": True}
        assert "caller" in await here.refused("lessons.idle")


async def test_trace_predicts_the_block_and_changes_nothing(user_home: Path):
    async with faculty(user_home) as here:
        world = learned(here.world)
        before = world.dump()
        asked = {"query": "the build fails", "session": "s3", "project": "/w/app"}
        told = await here.ask("lessons.trace", **asked)
        assert await here.ask("lessons.trace", **asked) == told
        assert world.dump() == before
        offered = await trio.to_thread.run_sync(lambda: here.block(session="s3", project="/w/app"))
        assert [item.id for item in offered.items] == [one["id"] for one in told["admitted"]]
        assert [one.id for one in offered.refused] == [one["id"] for one in told["blocked"]]
        rows = world.all("SELECT lesson FROM injection WHERE session = 's3'")
        assert rows == [(item.id,) for item in offered.items]


async def test_a_block_for_nobody_is_a_look(user_home: Path):
    async with faculty(user_home) as here:
        world = learned(here.world)
        before = world.dump()
        offered = await trio.to_thread.run_sync(lambda: here.block(project="/w/app"))
        assert offered.items
        assert world.dump() == before


async def test_after_a_charge_the_sessions_next_block_holds_one_suggestion_once(user_home: Path):
    async with faculty(user_home) as here:
        world = here.world
        world.fail("s1")
        world.block("s3")
        world.fail("s3")
        world.idle("s3")
        told = []
        for session in ("s4", "s3", "s3"):
            offered = await trio.to_thread.run_sync(
                lambda session=session: here.block(session=session, project="/w/app")
            )
            told.append([item.id for item in offered.items if item.id == "suggestion"])
    assert told == [[], ["suggestion"], []]


async def test_an_agent_cannot_look_into_another_sessions_block(user_home: Path):
    async with faculty(user_home) as here:
        world = here.world
        world.fail("s1")
        here.keeper.labels["s2.jsonl"] = LOW
        agent = {"owner": False, "level": 1, "project": "/w/app"}
        await trio.to_thread.run_sync(lambda: here.block(session="s2", **agent))
        assert world.all("SELECT count(*) FROM injection") == [(0,)]
        await trio.to_thread.run_sync(lambda: here.block(session="new", **agent))
        assert world.all("SELECT session FROM injection") == [("new",)]


async def test_an_approved_proposal_is_spliced_in_and_another_draft_is_not(user_home: Path):
    project = user_home / "shop"
    project.mkdir()
    file = project / "AGENTS.md"
    file.write_bytes(b"# Rules\r\n\xff odd\r\n")
    async with faculty(user_home) as here:
        await here.ask(
            "lessons.save", type="rule", content="run the linter", project=str(project), owner=True
        )
        draft = await here.ask("lessons.propose", project=str(project))
        assert (draft["lines"], draft["written"]) == (["- run the linter"], False)
        said = await here.refused("lessons.propose", project=str(project), approve=True)
        assert "hash" in said
        file.write_bytes(b"# Other\r\n")
        args = {"project": str(project), "approve": True, "hash": draft["hash"]}
        assert (await here.refused("lessons.propose", **args)).startswith("conflict")
        file.write_bytes(b"# Rules\r\n\xff odd\r\n")
        assert (await here.ask("lessons.propose", **args))["written"]
        assert file.read_bytes().startswith(b"# Rules\r\n\xff odd\r\n\r\n<!-- memoryd")
        again = await here.ask("lessons.propose", project=str(project))
        assert again["diff"] == ""
        copies = list((here.tutor.settings.home / "proposals").iterdir())
        assert [copy.read_text() for copy in copies] == ["- run the linter"]


@pytest.mark.parametrize("file", ["AGENTS.md", "/nowhere/AGENTS.md", "/tmp/../etc/x"])
async def test_a_proposal_goes_into_a_named_file_only(user_home: Path, file: str):
    async with faculty(user_home) as here:
        said = await here.refused("lessons.propose", project=str(user_home), file=file)
    assert said.startswith("bad_request")


async def test_a_proposal_follows_no_link(user_home: Path):
    (user_home / "real.md").write_text("x")
    (user_home / "AGENTS.md").symlink_to(user_home / "real.md")
    async with faculty(user_home) as here:
        said = await here.refused("lessons.propose", project=str(user_home))
    assert said.startswith("bad_request")


async def test_a_newer_database_is_refused_untouched_and_nothing_else_is_u02(user_home: Path):
    settings = Logs(user_home).settings()
    path = settings.home / store.NAME
    connection = store.opened(path)
    connection.pragma("user_version", 99)
    connection.close()
    before = path.read_bytes()
    tutor = Tutor(settings, dict, idle_after_s=900)
    assert "version 99" in tutor.fault
    assert tutor.overview()["fault"] == tutor.fault
    tutor.hear([], more=False)
    tutor.look()
    await tutor.run()
    assert path.read_bytes() == before


async def test_an_older_database_is_brought_up_to_date_with_a_copy_kept_u01(user_home: Path):
    settings = Logs(user_home).settings()
    path = settings.home / store.NAME
    db.create(path)
    old = db.writer(path)
    from memoryd import migrations

    migrations._apply_one(old, migrations.steps("lessons")[0], 0)
    old.close()
    tutor = Tutor(settings, dict, idle_after_s=900)
    assert tutor.fault == ""
    tutor._close(tutor._learner)
    assert path.with_name(f"{store.NAME}.before-002").exists()


async def test_without_lessons_their_methods_say_why(user_home: Path):
    settings = Logs(user_home).settings()
    (settings.home / store.NAME).write_text("no database" * 20)
    tutor = Tutor(settings, dict, idle_after_s=900)
    with pytest.raises(Exception, match="lessons are not served"):
        await tutor.write(lambda connection: None)


async def test_a_session_below_what_it_brings_in_is_told_how_much_it_brought_and_no_more(
    user_home: Path,
):
    bundle = "---\nid: a\ntype: rule\n---\n\nrun the linter\n"
    low = {"class": "public", "untrusted": False}
    async with faculty(user_home) as here:
        caller = {"log": "s1.jsonl", "n": 1}
        for _ in range(2):  # at the highest label, where the second time finds it
            told = await here.ask("lessons.import", bundle=bundle, caller=caller)
            assert told == {"imported": 1, "superseded": 0}
        for imported in (1, 0):
            told = await here.ask("lessons.import", bundle=bundle, caller=caller, label=low)
            assert told["imported"] == imported
        assert (await here.ask("lessons.import", bundle=bundle))["imported"] == 0


async def test_a_callers_page_of_a_session_holds_what_the_caller_may_see(user_home: Path):
    async with faculty(user_home) as here:
        here.world.fail("s1", text="error TS2304: low")
        here.world.fail("s1", text="error TS2322: high", command="make", label=Label(3, False))
        caller = {"log": "s1.jsonl", "n": 1}
        told = await here.ask("lessons.retrospective", caller=caller)
        page = await trio.Path(told["file_path"]).read_text()
        assert ("1 calls failed" in page, "make" in page) == (True, False)
        assert told["label"]["class"] == "public"
        assert here.world.all("SELECT failures, lessons FROM retrospective") == [(1, 1)]
        told = await here.ask("lessons.retrospective", session="s1")
        assert "2 calls failed" in await trio.Path(told["file_path"]).read_text()
        assert told["label"]["class"] == "secret"


async def test_a_disk_that_is_full_at_the_start_leaves_lessons_unserved_and_nothing_else(
    user_home: Path, monkeypatch: pytest.MonkeyPatch
):
    """Found by chaos: an error of SQLite in a first migration ended the daemon."""

    def full(connection):
        raise apsw.FullError("full")

    monkeypatch.setattr(store, "bring_up", full)
    tutor = Tutor(Logs(user_home).settings(), dict, idle_after_s=900)
    assert tutor.fault == "no room left on the device"
    await tutor.run()


async def test_status_tells_that_lessons_cannot_be_read_instead_of_failing(
    user_home: Path, monkeypatch: pytest.MonkeyPatch
):
    """Found by chaos: with no descriptor left, the owner's `status` failed with the lessons."""
    tutor = Tutor(Logs(user_home).settings(), dict, idle_after_s=900)

    def gone(path):
        raise db.wrong(apsw.CantOpenError("no descriptor"))

    monkeypatch.setattr(db, "reader", gone)
    assert "CantOpenError" in str(tutor.overview()["fault"])
    tutor._close(tutor._learner)


@pytest.mark.parametrize(
    ("error", "code"), [(apsw.IOError("no"), "io_error"), (KeyError("ours"), "internal")]
)
async def test_a_fault_while_learning_ends_nothing(
    user_home: Path, autojump_clock, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
):
    tutor = Tutor(Logs(user_home).settings(), dict, idle_after_s=900)
    learner, tries = tutor._learner, []
    step = learner.step

    again = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def fails_once():
        tries.append(tutor.fault)
        if len(tries) == 1:
            raise error
        token.run_sync_soon(again.set)
        return step()

    monkeypatch.setattr(learner, "step", fails_once)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tutor.run)
        await again.wait()
        nursery.cancel_scope.cancel()
    assert tries[:2] == ["", code]
