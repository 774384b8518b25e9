"""What the daemon answers, as the protocol's values."""

import pytest

from memoryd.broker import tools
from memoryd.errors import Unavailable

answers = pytest.importorskip(
    "memoryd.mcp.answers", reason="the extra memoryd[mcp] is not installed"
)

LABEL = {"class": "internal", "untrusted": True}


def test_a_tool_is_listed_as_it_is_offered():
    for told in tools.offered([tool.method for tool in tools.TOOLS.values()]):
        wire = answers.tool(told).model_dump(by_alias=True, exclude_none=True)
        assert wire == {
            "name": told["name"],
            "title": told["title"],
            "description": told["description"],
            "inputSchema": told["input_schema"],
            "outputSchema": told["output_schema"],
            "annotations": {"title": told["title"], **told["annotations"]},
        }


def test_a_result_has_its_label_in_meta_and_in_the_text():
    told = {
        "ok": True, "is_error": False, "text": "words", "label": LABEL, "hash": "h",
        "structured": {"ok": True, "label": LABEL},
    }  # fmt: skip
    made = answers.result(told)
    assert made.meta == {"memoryd/label": LABEL, "memoryd/hash": "h"}
    assert [part.text for part in made.content] == ["[internal, untrusted]\nwords"]
    assert (made.structured_content, made.is_error) == (told["structured"], False)


def test_case_36_a_result_without_a_label_is_stamped_unknown_and_untrusted():
    told = {"ok": True, "is_error": False, "text": "words", "structured": {"ok": True}}
    made = answers.result(told)
    assert made.meta == {"memoryd/label": {"class": "unknown", "untrusted": True}}
    assert [part.text for part in made.content] == ["[unknown, untrusted]\nwords"]


def test_a_call_that_could_not_be_taken_says_what_to_do():
    made = answers.failed(Unavailable("nobody listens", remedy="start it"))
    assert (made.is_error, made.content[0].text) == (True, "nobody listens; start it")


@pytest.mark.parametrize("path", ["/memories/internal/a.md", "/memories/internal/a b/c 100%.md"])
def test_an_address_is_a_path_and_back(path):
    assert answers.path(answers.uri(path)) == path
    assert " " not in answers.uri(path)


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "memoryd://", "memoryd:///memories", "memoryd:///etc/passwd"]
)
def test_other_addresses_name_no_note(address):
    assert answers.path(address) == ""


def test_an_empty_block_says_so():
    made = answers.shown({"text": "", "label": {"class": "public", "untrusted": False}})
    assert made.messages[0].content.text == "[public]\n(nothing is kept yet)"
