"""How an answer reads: stored words open nothing, and what waits is neither done nor wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd import errors
from memoryd.broker import telling
from memoryd.broker.tools import TOOLS

LABEL = {"class": "internal", "untrusted": True}
HOSTILE = st.lists(
    st.sampled_from(["</memory>", "<system-reminder>", "\n", "[", "]", "\u202e", "\u200b", "x", " ", "| ", "<", "&"]),
    max_size=12,
).map("".join)  # fmt: skip


def hit(text: str, project: str = "web", **more: object) -> dict[str, object]:
    return {"id": "a" * 20, "kind": "owner", "ts": "2026-01-02T03:04:05.000Z", "source": "native",
            "project": project, "snippet": text, "text": text, **LABEL, **more}  # fmt: skip


@given(HOSTILE, HOSTILE)
def test_a_hit_is_a_heading_of_ours_and_quoted_lines(text, project):
    answer = {"hits": [hit(text, project)], "cursor": None, "label": LABEL}
    head, *lines = telling.done(TOOLS["recall"], answer, "secret")["text"].split("\n")
    assert head.startswith(f"[{'a' * 20}] owner, 2026-01-02T03:04:05.000Z, ")
    assert head.endswith(" (internal, untrusted)")
    assert lines
    assert all(line.startswith("| ") for line in lines)
    assert not any(tag in "\n".join((head, *lines)) for tag in ("</m", "<s", "\u202e", "\u200b"))


def test_an_opened_record_stands_between_its_neighbours():
    answer = {"before": [hit("one")], "record": hit("two"), "after": [hit("three")], "label": LABEL}
    told = telling.done(TOOLS["recall_open"], answer, "secret")
    assert [line for line in told["text"].split("\n") if line.startswith("| ")] == [
        "| one",
        "| two",
        "| three",
    ]
    assert told["label"] == LABEL
    assert told["structured"]["record"]["text"] == "two"


def test_case_36_an_answer_without_a_label_is_stamped_the_top_class_and_untrusted():
    told = telling.done(TOOLS["recall"], {"hits": [], "cursor": None}, "secret")
    assert told["structured"]["label"] == told["label"]
    assert (told["text"], told["label"]) == (
        "nothing found",
        {"class": "secret", "untrusted": True},
    )


def test_a_cursor_and_the_next_lines_are_told():
    answer = {"hits": [hit("x")], "cursor": "go-on", "label": LABEL}
    assert "go-on" in telling.done(TOOLS["recall"], answer, "secret")["text"]
    page = {"kind": "note", "path": "/memories/internal/a.md", "label": LABEL, "text": "     1\ta",
            "first": 1, "last": 1, "lines": 9, "next": 2, "hash": "h"}  # fmt: skip
    told = telling.done(TOOLS["memory_view"], page, "secret")
    assert told["text"] == (
        "/memories/internal/a.md (internal, untrusted): lines 1 to 1 of 9\n     1\ta\n"
        "(go on with view_range [2, -1])"
    )
    assert told["hash"] == "h"


def test_an_answer_of_another_form_is_json_in_which_no_tag_begins():
    told = telling.done(TOOLS["lesson_get"], {"content": "</memory>", "label": LABEL}, "secret")
    assert told["text"] == '{"content":"\\u003c/memory>"}'


@pytest.mark.parametrize(
    ("error", "is_error"),
    [
        (errors.CheckFailed("no", remedy="do", check="label", rule="r"), True),
        (errors.NotFound("no"), True),
        (errors.Pending("waits", remedy="go on", check="ask", txn="t", rule="r"), False),
    ],
)
def test_a_refusal_is_a_result_with_code_remedy_and_rule(error, is_error):
    told = telling.refused(error, LABEL)
    assert (told["ok"], told["is_error"], told["label"]) == (False, is_error, LABEL)
    assert told["text"] == str(error)
    assert (told["code"], told["remedy"]) == (error.code, error.remedy)
    assert told.get("rule") == error.data.get("rule")
    assert told["structured"] == {
        "ok": False, "code": error.code, "message": error.message, "remedy": error.remedy,
        "label": LABEL, **error.data,
    }  # fmt: skip
