"""What all logs come to is what one by one they would, after any changes."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from memoryd.index.catalogue import Catalogue
from memoryd.index.identity import Seen
from memoryd.index.sums import total
from memoryd.index.table import GONE, LIVE, Log, Place
from memoryd.sources.lines import Position

changes = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.one_of(
            st.none(),
            st.tuples(
                st.sampled_from([LIVE, GONE]), st.integers(0, 2), st.sampled_from([None, "x"])
            ),
        ),
    ),
    max_size=20,
)


@given(changes)
def test_sums_are_those_of_a_count_from_nothing(done):
    catalogue, now = Catalogue([]), {}
    for key, change in done:
        if change is None:
            catalogue.drop(key)
            now.pop(key, None)
            continue
        state, number, why = change
        now[key] = log = Log(
            key, key, Place("native", f"/{key % 2}", f"{key}"), "s", state=state, why=why,
            position=Position(0, number + 5), indexed=number, left_out=number, unreadable=1,
            seen=Seen(1, number, 0, 0),
        )  # fmt: skip
        catalogue.put(log)
    sums, why = total(catalogue.sums()), Counter()
    for log in now.values():
        why[log.why or "its first record"] += log.left_out
    assert sums.logs == len(now)
    assert sums.gone == len(catalogue.gone()) == sum(log.state == GONE for log in now.values())
    assert sums.records == sum(log.position.records for log in now.values())
    assert (sums.indexed, sums.unreadable) == (sum(log.indexed for log in now.values()), len(now))
    assert sums.why == +why
    assert set(catalogue.sums()) == {log.place[:2] for log in now.values()}
    live = {log.seen.ino for log in now.values() if log.state == LIVE}
    assert {n for n in range(3) if catalogue.holds(Seen(1, n, 9, 9))} == live
    assert not catalogue.holds(Seen(2, 1, 0, 0))
