"""The table of grants: every cell as it must be, and what stands in the documentation."""

import re
from pathlib import Path

import pytest

from memoryd.broker import grants
from memoryd.labels import Label

DOCS = Path(__file__).parents[3] / "docs"
TRUTH = """
memory_create                                    allow deny  pend
memory_str_replace                               allow deny  pend
memory_insert                                    allow deny  pend
memory_rename                                    allow deny  pend
memory_rename to a higher class                  ask   deny  pend
memory_delete                                    ask   deny  deny
memory_delete recursive                          ask   deny  deny
memory_create, memory_str_replace, memory_insert of MEMORY.md ask deny deny
memory_create in inbox                           allow deny  allow
memory_str_replace in inbox                      allow deny  allow
memory_insert in inbox                           allow deny  allow
memory_rename in inbox                           allow deny  pend
memory_rename to a higher class in inbox         ask   deny  pend
memory_delete in inbox                           ask   deny  deny
memory_delete recursive in inbox                 ask   deny  deny
memory_view                                      allow allow allow
recall                                           allow allow allow
recall_open                                      allow allow allow
lesson_query                                     allow allow allow
lesson_get                                       allow allow allow
lesson_recall                                    allow allow allow
lesson_why                                       allow allow allow
lesson_trace                                     allow allow allow
lesson_status                                    allow allow allow
lesson_audit                                     allow allow allow
memory_view above the session's class            allow allow ask
recall above the session's class                 allow allow ask
recall_open above the session's class            allow allow ask
lesson_query above the session's class           allow allow ask
lesson_get above the session's class             allow allow ask
lesson_recall above the session's class          allow allow ask
lesson_why above the session's class             allow allow ask
lesson_trace above the session's class           allow allow ask
lesson_status above the session's class          allow allow ask
lesson_audit above the session's class           allow allow ask
lesson_save                                      allow deny  pend
lesson_feedback                                  allow deny  ask
lesson_feedback ignore                           ask   deny  deny
lesson_config list                               allow allow allow
lesson_config set                                deny  deny  deny
lesson_import                                    deny  deny  deny
lesson_export                                    deny  deny  deny
lesson_retrospective                             deny  deny  deny
lesson_propose                                   deny  deny  deny
"""
ROWS = [tuple(re.split(r"\s+(?=\S+\s+\S+\s+\S+$)|\s+(?=\S+\s+\S+$)|\s+(?=\S+$)", line))
        for line in TRUTH.strip().splitlines()]  # fmt: skip
CELLS = [
    (act, who, said) for act, *row in ROWS for who, said in zip(grants.STANDINGS, row, strict=True)
]


@pytest.mark.parametrize(("act", "who", "said"), CELLS, ids=str)
def test_case_68_every_cell_of_the_grants_is_as_it_must_be(act, who, said):
    assert grants.TABLE[act, who] == said
    assert grants.verdict(act, who) == (said, f"{act}, {who} session: {said}")


def test_case_68_the_table_has_these_cells_and_no_others():
    assert grants.rows() == ROWS
    assert set(grants.TABLE) == {(act, who) for act, who, _ in CELLS}


@pytest.mark.parametrize("who", grants.STANDINGS)
def test_what_has_no_cell_is_denied(who):
    assert grants.verdict("lesson_forget", who).decision == "deny"


def test_the_documentation_has_the_table_as_it_is():
    page = (DOCS / "tools.md").read_text("utf-8")
    told = re.findall(r"^\| `(.+?)` \| (\w+) \| (\w+) \| (\w+) \|$", page, re.MULTILINE)
    assert told == ROWS


@pytest.mark.parametrize(
    ("session", "level", "standing"),
    [
        (Label(1, False), 1, "trusted"),
        (Label(0, False), 1, "trusted"),
        (Label(1, True), 1, "untrusted"),
        (Label(2, False), 1, "above"),
        (Label(2, True), 1, "above"),
    ],
)
def test_how_a_session_stands(session, level, standing):
    assert grants.standing(session, level) == standing


@pytest.mark.parametrize(
    ("method", "args", "above", "act"),
    [
        ("recall", {}, False, "recall"),
        ("sessions", {}, True, "recall above the session's class"),
        ("get", {}, True, "recall_open above the session's class"),
        ("block", {}, True, "memory_view above the session's class"),
        ("notes.list", {}, False, "memory_view"),
        ("lessons.feedback", {"verdict": "wrong"}, False, "lesson_feedback"),
        ("lessons.feedback", {"verdict": "ignore"}, False, "lesson_feedback ignore"),
        ("lessons.config", {"action": "list"}, False, "lesson_config list"),
        ("lessons.config", {"action": "set"}, False, "lesson_config set"),
        ("lessons.config", {}, False, "lesson_config set"),
        ("lessons.config", {"action": "unheard"}, False, "lesson_config set"),
    ],
)
def test_a_call_is_held_against_its_row(method, args, above, act):
    assert grants.act_of(method, args, above=above) == act
