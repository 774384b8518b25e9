"""Stored text on a terminal: it can be read, and can do nothing."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bxctl import safe


def acting(text: str, allowed: str = "") -> set[str]:
    """Return the characters of `text` that a terminal would act on, or that hide what stands there."""
    return {
        sign
        for sign in text
        if sign not in allowed
        and (
            unicodedata.category(sign) in {"Cc", "Zl", "Zp"}
            or 0xE0000 <= ord(sign) <= 0xE007F
            or unicodedata.bidirectional(sign)
            in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
        )
    }


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("\x1b[2J\x1b[31mred", "␛[2J␛[31mred"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("a\x9b31mb", "a\\u009b31mb"),
        ("over\rwritten", "over␍written"),
        ("back\x08\x7f", "back␈␡"),
        ("user\u202egpj.exe", "user\\u202egpj.exe"),
        ("hid\U000e0041den", "hid\\U000e0041den"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("plain é 漢字 👩‍💻", "plain é 漢字 👩‍💻"),
    ],
)
def test_what_a_terminal_would_act_on_is_a_visible_sign(stored, shown):
    assert safe.line(stored) == shown
    assert safe.text(stored) == shown


def test_a_line_stays_one_line_and_a_text_keeps_its_lines():
    assert safe.line("one\r\n\ttwo\n\n three ") == "one two three"
    assert safe.text("one\r\n\ttwo\n") == "one\n\ttwo\n"


@given(st.text())
def test_no_text_acts(text):
    assert not acting(safe.line(text))
    assert not acting(safe.text(text), "\n\t")


@given(
    st.recursive(
        st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_made_safe_means_the_same_and_does_not_act(value):
    line = safe.json_line(json.dumps(value, ensure_ascii=False))
    assert json.loads(line) == value
    assert not acting(line)
