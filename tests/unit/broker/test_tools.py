"""What a model is offered: schemas that say just what is accepted, and the facade of Anthropic's tool."""

from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.broker import forms, tools
from tests.support.tools import FULL

jsonschema = pytest.importorskip("jsonschema", reason="comes with the extra memoryd[mcp]")

NOTES = [f"notes.{command}" for command in tools.COMMANDS]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 30),
    st.text(max_size=4),
    st.lists(st.integers(-1, 3), max_size=3),
    st.sampled_from(
        ["view", "rule", "useful", "list", "all", "okf", "exclude", "a" * 20, "0" * 64]
    ),
)


def accepted(tool: tools.Tool, args: dict[str, object]) -> bool:
    try:
        msgspec.convert(args, tool.form)
    except msgspec.ValidationError:
        return False
    return True


@cache
def validator(name: str) -> Any:
    return jsonschema.Draft202012Validator(forms.schema(tools.TOOLS[name].form))


def allowed(tool: tools.Tool, args: dict[str, object]) -> bool:
    return bool(validator(tool.name).is_valid(args))


@pytest.mark.parametrize("name", tools.TOOLS)
def test_a_schema_is_whole_and_lets_nothing_else_in(name):
    schema = forms.schema(tools.TOOLS[name].form)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"].endswith("2020-12/schema")
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert "$ref" not in str(schema)
    assert set(FULL[name]) == set(schema["properties"])


@pytest.mark.parametrize("name", tools.TOOLS)
def test_every_argument_is_accepted_and_travels_as_it_is(name):
    tool = tools.TOOLS[name]
    assert allowed(tool, FULL[name])
    made = msgspec.convert(FULL[name], tool.form)
    assert tools.request(tool, made) == FULL[name]


@given(st.data(), st.sampled_from(sorted(tools.TOOLS)))
def test_the_schema_and_the_decoder_agree(data, name):
    tool, args = tools.TOOLS[name], dict(FULL[name])
    for key in data.draw(st.lists(st.sampled_from([*args, "path", "x"]), max_size=3)):
        if data.draw(st.booleans()):
            args.pop(key, None)
        else:
            args[key] = data.draw(VALUES)
    assert allowed(tool, args) == accepted(tool, args)


def test_only_what_is_granted_is_offered_and_the_facade_for_it():
    assert tools.offered(["hello", "status", "sync"]) == []
    some = tools.offered(["recall", "notes.view", "notes.create"])
    assert [tool["name"] for tool in some] == ["memory_view", "memory_create", "recall", "memory"]
    assert some[-1]["input_schema"]["properties"]["command"] == {"enum": ["view", "create"]}
    assert some[-1]["annotations"]["destructiveHint"] is False
    assert [tool["name"] for tool in tools.offered(["lessons.get"])] == ["lesson_get"]


def test_every_lesson_s_tool_has_its_method():
    lessons = {
        name: tool.method for name, tool in tools.TOOLS.items() if name.startswith("lesson_")
    }
    assert lessons == {name: name.replace("_", "s.", 1) for name in lessons}
    assert len(lessons) == 13


@pytest.mark.parametrize(
    ("name", "reads", "destroys"),
    [("memory_view", True, False), ("memory_create", False, False), ("memory_delete", False, True),
     ("recall", True, False), ("lesson_feedback", False, True), ("memory", False, True)],
)  # fmt: skip
def test_the_hints_say_what_a_tool_does(name, reads, destroys):
    told = {
        tool["name"]: tool["annotations"]
        for tool in tools.offered([*NOTES, "recall", "lessons.feedback"])
    }
    assert (told[name]["readOnlyHint"], told[name]["destructiveHint"]) == (reads, destroys)
    assert told[name]["openWorldHint"] is False


@pytest.mark.parametrize("command", tools.COMMANDS)
def test_a_command_of_the_facade_is_its_tool(command):
    args = FULL[f"memory_{command}"]
    assert tools.unfolded({"command": command, **args}) == (f"memory_{command}", args)


@pytest.mark.parametrize(
    "args", [{}, {"command": "undo"}, {"command": ["view"]}, {"command": None}]
)
def test_the_facade_without_a_command_is_no_tool(args):
    assert tools.unfolded(args)[0] == ""
