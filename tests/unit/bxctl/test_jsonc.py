"""JSON files as people keep them: one place changes, every other byte stays, and the change can be taken back."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bxctl import jsonc
from memoryd.errors import BadRequest

COMMENTED = """\
{
    // what I like
    "model": "opus",   // the big one
    /* "old": 1, */
    "permissions": {
        "allow": ["Bash(ls:*)", "Read"],
        "deny": []
    },
    "hooks": {
        "Stop": [
            { "hooks": [ { "type": "command", "command": "say done" } ] }, // mine
        ],
    },
}
"""


@pytest.mark.parametrize(
    ("before", "path", "item", "after"),
    [
        ("{}", ["a"], 1, '{\n  "a": 1\n}'),
        ("{}\n", ["a", ""], 1, '{\n  "a": [\n    1\n  ]\n}\n'),
        ("{\n}\n", ["a"], 1, '{\n  "a": 1\n}\n'),
        ('{"a": 1}', ["b"], [2], '{"a": 1, "b": [2]}'),
        ('{"a": [1]}', ["a", ""], 2, '{"a": [1, 2]}'),
        ('{\n\t"a": 1\n}', ["b"], 2, '{\n\t"a": 1,\n\t"b": 2\n}'),
        ('{\n  "a": 1,\n}', ["b"], 2, '{\n  "a": 1,\n  "b": 2,\n}'),
        ('{\n  "a": 1 // x\n}', ["b"], 2, '{\n  "a": 1, // x\n  "b": 2\n}'),
        ('{\n  "a": 1, // x\n}', ["b"], 2, '{\n  "a": 1, // x\n  "b": 2,\n}'),
        ("{\n  // x\n}", ["b"], 2, '{\n  // x\n  "b": 2\n}'),
        ("{ // x\n}", ["b"], 2, '{ // x\n  "b": 2\n}'),
        ('{\r\n  "a": 1\r\n}', ["b"], 2, '{\r\n  "a": 1,\r\n  "b": 2\r\n}'),
        ('\ufeff{\n  "a": {}\n}', ["a", "b"], 2, '\ufeff{\n  "a": {\n    "b": 2\n  }\n}'),
    ],
)  # fmt: skip
def test_what_is_added_is_written_as_its_neighbours_and_taken_back(before, path, item, after):
    assert jsonc.added(before, path, item) == after
    where = [*path[:-1], path[-1] or len(jsonc.value(after)[path[0]]) - 1]
    if len(path) == 1 or jsonc.found(jsonc.parsed(before), path[:1]) is not None:
        back = jsonc.removed(after, where)
        assert back == before or (back, before) == ("{}\n", "{\n}\n")


def test_a_commented_file_keeps_every_other_byte():
    after = jsonc.added(COMMENTED, ["hooks", "Stop", ""], {"hooks": [{"command": "ours"}]})
    assert jsonc.value(after)["hooks"]["Stop"][1] == {"hooks": [{"command": "ours"}]}
    assert jsonc.removed(after, ["hooks", "Stop", 1]) == COMMENTED
    for line in COMMENTED.splitlines():
        assert line in after.splitlines()
    more = jsonc.added(after, ["hooks", "SessionStart", ""], {"x": 1})
    assert jsonc.removed(more, ["hooks", "SessionStart"]) == after
    again = jsonc.added(more, ["mcpServers", "memoryd"], {"command": "bxctl"})
    assert jsonc.removed(again, ["mcpServers"]) == more


def test_a_text_that_is_looked_at_again_is_not_read_again():
    text = '{"a": [1, 2]}'
    assert jsonc.parsed(text) is jsonc.parsed(text)
    assert jsonc.removed(text, ["a"]) == "{}"
    assert jsonc.value(text) == {"a": [1, 2]}


def test_what_stands_in_the_way_is_refused_with_its_line():
    cases = {
        '{\n"a": 1,\n"a b" 2}': "line 3 lacks a colon",
        '{"a": 1 "b": 2}': "line 1 lacks a comma",
        "[1, 2": "line 1 lacks a comma",
        '{"a": }': "line 1 lacks a value",
        "{} {}": "line 1 holds more than one value",
        "": "line 1 lacks a value",
        "{a: 1}": "line 1 lacks a name in quotes",
        "/* x": "line 1 has a comment without an end",
        "[" * 300: "line 1 is nested too deep",
    }
    for text, said in cases.items():
        with pytest.raises(BadRequest, match=said):
            jsonc.parsed(text)
    with pytest.raises(BadRequest, match="has no object at hooks"):
        jsonc.added('{"hooks": []}', ["hooks", "x"], 1)
    with pytest.raises(BadRequest, match=r"has a\.b already"):
        jsonc.added('{"a": {"b": 1}}', ["a", "b"], 1)
    with pytest.raises(BadRequest, match="is no object"):
        jsonc.added("[]", ["a"], 1)
    with pytest.raises(BadRequest, match="no JSON value"):
        jsonc.value("{'a': nope}".replace("'", '"'))


def test_a_comment_before_what_goes_never_swallows_what_follows():
    text = '{"a": 1, // note\n"b": 2, "c": 3}'
    assert jsonc.value(jsonc.removed(text, ["b"])) == {"a": 1, "c": 3}
    text = '{"a": 1, // note\n"b": 2}'
    assert jsonc.value(jsonc.removed(text, ["b"])) == {"a": 1}
    assert jsonc.removed(text, ["z"]) == text


KEYS = st.sampled_from(["a", "b", "hooks", "mcp", "π", 'q"', "x y"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "//", "/*", "é", '"', "{"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
BLANKS = st.sampled_from(
    ["", " ", "\n", "\n  ", "\t", " // note\n", "/* x */", "\n// own line\n  "]
)


@st.composite
def written(draw: st.DrawFn, item: object) -> str:
    """Return `item` as somebody might have typed it: blanks and comments anywhere, commas at the end."""

    def blank() -> str:
        return draw(BLANKS)

    def write(one: object) -> str:
        if not isinstance(one, list | dict):
            return json.dumps(one, ensure_ascii=draw(st.booleans()))
        entries = (
            [f"{json.dumps(k)}{blank()}:{blank()}{write(v)}" for k, v in one.items()]
            if isinstance(one, dict)
            else list(map(write, one))
        )
        opens, closes = "{}" if isinstance(one, dict) else "[]"
        body = f"{blank()},".join(blank() + entry for entry in entries)
        tail = "," if entries and draw(st.booleans()) else ""
        return f"{opens}{body}{blank()}{tail}{blank()}{closes}"

    return f"{blank()}{write(item)}{blank()}"


@settings(max_examples=60)
@given(st.data(), st.dictionaries(KEYS, VALUES, max_size=4), VALUES)
def test_whatever_people_type_is_understood_changed_in_one_place_and_changed_back(data, tree, item):
    text = data.draw(written(tree))
    assert jsonc.value(text) == tree
    after = jsonc.added(text, ["new"], item)
    assert jsonc.value(after) == {**tree, "new": item}
    back = jsonc.removed(after, ["new"])
    assert jsonc.value(back) == tree
    if tree:
        assert back == text
    for comment in ("// note\n", "/* x */", "// own line\n"):
        assert after.count(comment) >= text.count(comment)


@settings(max_examples=60)
@given(st.data(), st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_any_member_can_go_and_the_others_stay(data, tree):
    text = data.draw(written(tree))
    gone = data.draw(st.sampled_from(sorted(tree)))
    left = jsonc.value(jsonc.removed(text, [gone]))
    assert left == {key: value for key, value in tree.items() if key != gone}


@settings(max_examples=60)
@given(st.data(), st.lists(VALUES, max_size=4), VALUES)
def test_an_item_of_an_array_comes_and_goes(data, items, item):
    text = data.draw(written({"a": items, "z": 1}))
    after = jsonc.added(text, ["a", ""], item)
    assert jsonc.value(after)["a"] == [*items, item]
    back = jsonc.removed(after, ["a", len(items)])
    assert jsonc.value(back) == {"a": items, "z": 1}
    if items:
        assert back == text
