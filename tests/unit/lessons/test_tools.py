"""The thirteen tools: their keys, their refusals, and what they must not change."""

from pathlib import Path

import pytest

from memoryd.errors import BadRequest, NotFound
from memoryd.labels import Label
from memoryd.lessons import exchange, proposals, retrospective, settings, tools
from memoryd.lessons.reader import Reader
from tests.support.teaching import DAY, LOW, OWNER, World


def learned():
    """A world with a lesson, a fix, a pattern, a telling and an opinion."""
    world = World()
    world.fail("s1")
    world.edit("s1")
    world.succeed("s1")
    world.idle("s1")
    world.block("s2")
    world.idle("s2")
    return world


def keep(world, content, type="rule", **more):
    world.now += 1_000
    given = tools.Saved(
        type=type, content=content, label=more.pop("label", LOW), now=world.now, **more
    )
    return tools.save(world.connection, OWNER, given)["id"]


def ask(world, query, **more):
    return tools.query(world.connection, OWNER, tools.Question(query=query, now=world.now, **more))


def verdict(world, id, word, reader=OWNER):
    given = tools.Verdict(memory_id=id, verdict=word, now=world.now)
    return tools.feedback(world.connection, reader, given)


def test_001_evidence_is_told_when_asked_and_only_then():
    world = learned()
    with_it = ask(world, "TS2304", evidence=True)[0]
    assert with_it["confidence"] == 0.6
    assert "confidence" not in ask(world, "TS2304")[0]


def test_002_imported_lessons_of_no_project_show_under_their_setting():
    world = World()
    exchange.bring_in(
        world.connection, "---\nid: x\ntype: rule\n---\n\nkeep it short\n", LOW, now=1
    )
    assert ask(world, "short") == []
    assert world.block("s", "short").text == ""
    assert tools.recall(world.connection, OWNER, world.ask("s", "short")) == []
    tools.config(world.connection, OWNER, "set", "cross_project_enabled", "1")
    assert len(ask(world, "short")) == 1
    assert len(world.block("s", "short").shown) == 1


def test_008_009_u_21_evidence_and_bodies_survive_the_round_trip():
    world = World()
    body = "first\n---\nname: x\n---\n\n## rule: not a heading"
    kept = keep(world, body)
    world.connection.execute("UPDATE lesson SET evidence = 2, recurrence = 2")
    for form in exchange.FORMS:
        bundle = tools.export(world.connection, OWNER, form)
        other = World()
        assert exchange.bring_in(other.connection, bundle, LOW, now=5)["imported"] == 1
        back = tools.get(other.connection, OWNER, kept)
        assert (back["content"], back["confidence"]) == (body, 0.4)


def test_u_22_the_same_bundle_twice_adds_nothing():
    world = World()
    keep(world, "one rule")
    bundle = tools.export(world.connection, OWNER)
    other = World()
    exchange.bring_in(other.connection, bundle, LOW, now=5)
    assert exchange.bring_in(other.connection, bundle, LOW, now=6) == {
        "imported": 0,
        "superseded": 0,
    }


def test_a_bundle_of_several_entries_is_as_many_lessons():
    world = World()
    for number in range(3):
        keep(world, f"rule number {number}")
    other = World()
    bundle = tools.export(world.connection, OWNER)
    assert exchange.bring_in(other.connection, bundle, LOW, now=5)["imported"] == 3


def test_u_23_ignored_and_session_lessons_are_not_given_away():
    world = World()
    verdict(world, keep(world, "hidden rule"), "ignore")
    keep(world, "for this session", scope="session")
    assert "Nothing to export" in tools.export(world.connection, OWNER)


def test_secrets_and_untrusted_lessons_do_not_leave():
    world = World()
    keep(world, "use token=ghp_0123456789abcdefghijABCDEFGHIJ012345")
    keep(world, "said by a page", label=Label(0, True))
    bundle = tools.export(world.connection, OWNER)
    assert "ghp_" not in bundle
    assert "said by a page" not in bundle
    assert "said by a page" in tools.export(world.connection, OWNER, untrusted=True)


def test_u_36_a_rule_saved_again_takes_the_place_of_the_first():
    world = World()
    first = keep(world, "Run the linter")
    second = keep(world, "run  the LINTER")
    old = tools.get(world.connection, OWNER, first)
    assert (old["status"], old["superseded_by"]) == ("superseded", second)
    assert len(ask(world, "linter")) == 1
    assert len(ask(world, "linter", include_superseded=True)) == 2


def test_d_two_wrongs_make_a_lesson_stale_and_move_no_count():
    world = learned()
    lesson = world.one("id")
    verdict(world, lesson, "wrong")
    answer = verdict(world, lesson, "wrong")
    assert answer["status"] == "stale"
    assert (world.one("evidence"), world.one("recurrence")) == (1, 0)


def test_u_12_ignore_and_one_wrong_is_not_stale_and_ignore_counts_in_no_sum():
    world = learned()
    lesson = world.one("id")
    verdict(world, lesson, "ignore")
    answer = verdict(world, lesson, "wrong")
    assert answer["status"] == "active"
    assert answer["counters"] == {"positive": 0, "negative": 1}
    assert answer["by_verdict"] == {"useful": 0, "wrong": 1, "outdated": 0, "ignore": 1}


def test_u_11_outdated_wakes_no_superseded_lesson():
    world = World()
    first = keep(world, "Run the linter")
    keep(world, "run the linter")
    assert verdict(world, first, "outdated")["status"] == "superseded"


def test_e_a_stale_lesson_is_archived_and_query_finds_it_no_more():
    world = learned()
    tools.config(world.connection, OWNER, "set", "archive_after_days", "0.00001")
    verdict(world, world.one("id"), "outdated")
    world.later(DAY)
    world.idle("s9")
    assert world.one("status") == "archived"
    assert [hit["type"] for hit in ask(world, "TS2304")] == ["pattern"]
    assert len(ask(world, "TS2304", include_archived=True)) == 2


def test_f_trace_changes_nothing_and_says_the_same_twice():
    world = learned()
    before = world.dump()
    given = world.ask("s3")
    assert tools.trace(world.connection, OWNER, given) == tools.trace(
        world.connection, OWNER, given
    )
    assert world.dump() == before


@pytest.mark.parametrize(
    ("stored", "tokens"), [("50", 100), ("99999", 4000), ("abc", 900), ("1234.6", 1235)]
)
def test_a_stored_value_is_clamped_when_it_is_read(stored, tokens):
    world = World()
    world.connection.execute(
        "UPDATE setting SET value = ? WHERE key = 'pre_prompt_budget_tokens'", (stored,)
    )
    assert settings.budget(world.connection) == tokens


@pytest.mark.parametrize(("key", "value"), [("nonsense", "1"), ("archive_after_days", "soon"),
                                            ("quality_gate_enabled", "yes"), (None, "1")])  # fmt: skip
def test_config_refuses_junk_by_name(key, value):
    world = World()
    with pytest.raises(BadRequest, match=key or "key"):
        tools.config(world.connection, OWNER, "set", key, value)


def test_every_setting_that_a_migration_seeds_can_be_set():
    world = World()
    seeded = {key for (key,) in world.all("SELECT key FROM setting")}
    assert seeded == set(settings.DEFAULTS)


def test_a_fresh_database_has_figures_everywhere_and_no_rates():
    told = tools.audit(World().connection, OWNER)
    assert told["memories"]["total"] == 0
    assert told["injections"]["precision_rate"] is None


def test_a_recall_is_measured_with_the_hook_pull():
    world = learned()
    tools.recall(world.connection, OWNER, world.ask("s3"))
    assert world.all("SELECT DISTINCT hook FROM injection WHERE session = 's3'") == [("pull",)]


def test_u_20_a_session_name_leads_nowhere_else(tmp_path):
    world = World()
    world.fail("../../x")
    told = tools.retrospective(world.connection, OWNER, "../../x", home=tmp_path, now=world.now)
    assert Path(told["file_path"]).parent == tmp_path / "retrospectives"


def test_u_19_a_retrospective_is_written_again_when_the_session_goes_on(tmp_path):
    world = World()
    world.fail("s1")
    path = Path(
        tools.retrospective(world.connection, OWNER, "s1", home=tmp_path, now=1)["file_path"]
    )
    world.fail("s1", command="make other")
    tools.retrospective(world.connection, OWNER, "s1", home=tmp_path, now=2)
    assert "2 calls failed" in path.read_text("utf-8")
    assert world.all("SELECT count(*) FROM retrospective") == [(1,)]


def test_u_18_the_call_that_taught_a_lesson_is_no_return_of_it(tmp_path):
    world = World()
    world.fail("s1")
    page = retrospective.page(world.connection, OWNER, "s1")
    assert "## Came back although it was known\n- none" in page


def test_a_session_without_a_failure_has_no_retrospective(tmp_path):
    world = World()
    world.succeed("s1")
    assert "message" in tools.retrospective(world.connection, OWNER, "s1", home=tmp_path, now=1)


def test_absent_and_hidden_are_one_answer():
    world = World()
    world.fail("s1", label=Label(2, False))
    low = Reader(0)
    for name in (world.one("id"), "nothing"):
        with pytest.raises(NotFound, match="no such lesson"):
            tools.get(world.connection, low, name)
        with pytest.raises(NotFound, match="no such lesson"):
            verdict(world, name, "useful", low)


def test_an_untrusted_lesson_is_told_only_after_the_owners_useful():
    world = World()
    world.fail("s1", label=Label(0, True))
    refused = world.block("s2")
    assert [one.reason for one in refused.refused] == ["untrusted"]
    verdict(world, world.one("id"), "useful")
    assert len(world.block("s2").shown) == 1


def test_an_approved_block_is_spliced_in_and_every_other_byte_stays():
    content = b"# Rules\r\n\xff\x00 odd bytes\r\n"
    once = proposals.splice(content, "- one")
    assert once.startswith(content)
    twice = proposals.splice(once + b"tail", "- two\n- three")
    assert twice.startswith(content)
    assert twice.endswith(b"tail")
    assert b"- one" not in twice
    assert proposals.splice(twice, "- two\n- three") == twice


def test_a_proposal_holds_proven_patterns_and_rules():
    world = learned()
    keep(world, "Run the linter", project="/w/app")
    lines = proposals.draft(proposals.worthy(world.connection, OWNER, "/w/app"))
    assert "Run the linter" in lines
    assert "What mended it: edit" in lines


def test_a_pattern_of_a_log_that_names_no_project_is_proposed_for_none():
    world = World()
    for project in ("", "/w/app"):
        session = f"s{project}"
        world.fail(session, project=project)
        world.succeed(session, project=project)
        world.idle(session)
    found = proposals.worthy(world.connection, OWNER, "/w/app")
    assert [(one.origin, one.project) for one in found] == [("causal", "/w/app")]
