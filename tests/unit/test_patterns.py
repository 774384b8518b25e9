"""A pattern that is compiled later is the pattern that was written."""

import importlib
import re

import pytest

from memoryd.patterns import later

MODULES = (
    "memoryd.index.grams",
    "memoryd.redact.assigned",
    "memoryd.redact.names",
    "memoryd.redact.shapes",
    "memoryd.redact.values",
)


def test_it_finds_and_replaces_what_the_compiled_one_does():
    made, pattern = (
        later(r"(?P<word>a)b+", re.IGNORECASE),
        re.compile(r"(?P<word>a)b+", re.IGNORECASE),
    )
    text = "xABBy ab"
    assert made.search(text)["word"] == "A"
    assert made.match(text) is None
    assert made.fullmatch("ABB").span() == (0, 3)
    assert made.sub("-", text) == pattern.sub("-", text) == "x-y -"
    assert made.subn("-", text) == ("x-y -", 2)
    assert made.findall(text) == pattern.findall(text)
    assert [found.span() for found in made.finditer(text)] == [(1, 4), (6, 8)]
    assert made.split(text) == pattern.split(text)
    assert (made.pattern, made.flags) == (pattern.pattern, pattern.flags)


def test_it_is_compiled_at_its_first_use_and_once(monkeypatch):
    compiled = []
    kept = re.compile
    monkeypatch.setattr(re, "compile", lambda *args: compiled.append(args) or kept(*args))
    made = later(b"a+")
    assert compiled == []
    assert made.search(b"ba").span() == (1, 2)
    assert made.match(b"aa").span() == (0, 2)
    assert compiled == [(b"a+", 0)]


def test_what_is_no_pattern_is_told_when_it_is_used():
    made = later("(")
    with pytest.raises(re.error):
        made.search("x")


@pytest.mark.parametrize("name", MODULES)
def test_every_pattern_that_is_compiled_later_can_be(name):
    kinds = vars(importlib.import_module(name)).values()
    made = [value for value in kinds if type(value) is type(later("a"))]
    assert made
    assert all(re.compile(one.pattern, one.flags) for one in made)
