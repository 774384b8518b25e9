"""The least fixpoint over linked logs is what plain iteration finds, and needs no order."""

from hypothesis import given
from hypothesis import strategies as st

from memoryd.index.lineage import END, Account, Hearing, after, circles, raises, solve
from memoryd.labels import LOWEST, Label

TOP = Label(3, True)
LABELS = st.builds(Label, st.integers(0, 3), st.booleans())
KEYS = st.integers(0, 5)
NUMBERS = st.integers(0, 6)
REFS = st.one_of(
    st.none(),
    st.lists(st.tuples(KEYS, st.one_of(NUMBERS, st.just(END))), max_size=3).map(tuple),
)


@st.composite
def accounts(draw):
    """Draw six logs that refer to each other in any way, circles among them."""
    found = {}
    for key in range(6):
        steps, label = [], LOWEST
        for n in sorted(draw(st.lists(NUMBERS, max_size=3))):
            label = label.join(draw(LABELS))
            steps.append((n, *label))
        hearings = draw(
            st.lists(
                st.builds(Hearing, NUMBERS, st.integers(-1, 1), REFS, st.booleans()), max_size=3
            )
        )
        hearings.sort(key=lambda hearing: hearing[:2])
        found[key] = Account(draw(LABELS), tuple(steps), tuple(hearings))
    return found


def oracle(found):
    """Ask every log again and again, until nobody hears anything new."""
    forged = {key for key in found if reaches(found, key, key, set())}
    values = {key: [LOWEST] * len(account.hearings) for key, account in found.items()}
    while True:
        new = {}
        for key, account in found.items():
            new[key] = []
            for hearing in account.hearings:
                label = TOP if hearing.refs is None or (hearing.start and key in forged) else LOWEST
                for log, n in hearing.refs or ():
                    label = label.join(after(found[log], values[log], n))
                new[key].append(label)
        if new == values:
            return values
        values = new


def reaches(found, key, goal, seen):
    """Say whether a log starts from `goal`, over any number of others."""
    above = {log for h in found[key].hearings if h.start for log, _ in h.refs or ()}
    return goal in above or any(
        log not in seen and reaches(found, log, goal, seen | {log}) for log in above
    )


@given(accounts())
def test_the_worklist_finds_what_plain_iteration_finds(found):
    assert solve(found, TOP) == oracle(found)


@given(accounts(), st.permutations(range(6)))
def test_the_order_of_logs_changes_nothing(found, order):
    assert solve({key: found[key] for key in order}, TOP) == solve(found, TOP)


@given(accounts())
def test_every_equation_holds_and_a_forged_circle_is_the_top(found):
    values = solve(found, TOP)
    for key, account in found.items():
        for hearing, label in zip(account.hearings, values[key], strict=True):
            if hearing.start and key in circles(found):
                assert label == TOP
            for log, n in hearing.refs or ():
                assert label.covers(after(found[log], values[log], n))


@given(accounts(), st.integers(0, 7))
def test_what_is_told_to_a_fold_is_all_that_changes_a_label(found, records):
    values = solve(found, TOP)
    for key, account in found.items():
        told = raises(account, values[key], records)
        alone = Account(account.start, account.steps, ())
        for n in range(-1, records):
            label = after(alone, [], n)
            for at, _, level, untrusted in told:
                label = label.join(Label(level, untrusted)) if at <= n else label
            assert label == after(account, values[key], n)
