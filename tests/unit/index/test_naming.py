"""Names of logs: one key costs no set, and nobody sees the difference."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from memoryd.index.naming import Keys

steps = st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.integers(0, 3)), max_size=30)


@given(steps)
def test_keys_are_those_of_a_set_a_name(done):
    keys, plain = Keys(), {"a": set(), "b": set()}
    for adds, name, key in done:
        if adds:
            keys.add(name, key)
            plain[name].add(key)
        else:
            keys.discard(name, key)
            plain[name].discard(key)
        assert {name: set(keys.get(name)) for name in "ab"} == plain


def test_a_name_that_one_log_bears_costs_no_set():
    keys = Keys()
    for number in range(100):
        keys.add(f"log {number}", number)
    assert {type(found) for found in keys._found.values()} == {int}
    assert sys.getsizeof(keys._found) < 100 * 60
    for number in range(100):
        keys.discard(f"log {number}", number)
    assert keys._found == {}
