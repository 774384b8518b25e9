"""The lattice: joins only rise, names are exact, nothing unknown becomes the lowest class."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.labels import LOWEST, Classes, Label, LabelError

CLASSES = Classes(["public", "internal", "private", "secret"])
labels = st.builds(Label, st.integers(0, 3), st.booleans())


@given(labels, labels, labels)
def test_join_is_the_least_upper_bound(a: Label, b: Label, c: Label) -> None:
    joined = a.join(b)
    assert joined == (max(a.level, b.level), a.untrusted or b.untrusted)
    assert joined.covers(a)
    assert joined.covers(b)
    assert not (c.covers(a) and c.covers(b)) or c.covers(joined)
    assert a.join(LOWEST) == a


@given(labels, labels)
def test_covers_is_the_order_of_both_parts(a: Label, b: Label) -> None:
    assert a.covers(b) == (a.join(b) == a)


@pytest.mark.parametrize("name", ["Secret", "", "secret ", None, 3, b"secret", ["secret"], True])
def test_a_name_that_is_not_configured_is_an_error(name: object) -> None:
    with pytest.raises(LabelError):
        CLASSES.level(name)


@pytest.mark.parametrize("level", [-1, 4])
def test_a_level_out_of_range_is_an_error_and_never_public(level: int) -> None:
    with pytest.raises(LabelError):
        CLASSES.name(level)


@pytest.mark.parametrize(
    "names", [[], list("abcdefghi"), ["a", "a"], ["A"], ["a b"], ["a" * 33], ["-a"]]
)
def test_a_list_that_cannot_be_used_is_refused(names: list[str]) -> None:
    with pytest.raises(LabelError):
        Classes(names)


def test_names_and_levels_are_positions() -> None:
    assert [CLASSES.level(name) for name in CLASSES.names] == [0, 1, 2, 3]
    assert CLASSES.upto(1) == ("public", "internal")
    assert CLASSES.highest == Label(3, True)
    assert len(CLASSES) == 4


@pytest.mark.parametrize("names", [["a"], list("abcdefgh")])
def test_one_to_eight_classes_are_possible_and_the_last_is_the_top(names: list[str]) -> None:
    classes = Classes(iter(names))
    assert classes.top == len(names) - 1
    assert classes.highest == Label(classes.top, True)
    assert [classes.name(level) for level in range(len(names))] == names
    assert classes.upto(0) == (names[0],)
