"""Calls that turn out to be worth more: all of a log's at once, as they would be one by one."""

from memoryd.labels import Label
from memoryd.lessons import raising
from memoryd.lessons.observe import observe_many
from memoryd.lessons.pairing import OUTCOMES, Seen
from tests.support.teaching import LOW, World

HIGH, OTHER = Label(2, True), Label(1, False)


def seens(label: Label) -> list[Seen]:
    """Failures, what mends them, and what was done in between."""
    return [
        Seen(
            "log", n, 0, "s1", "/w/app", "bash", f"make {n % 5}", f"{n % 5:016x}", 1_000 * n,
            OUTCOMES[n % 7 != 0], f"zsh: command not found: rg{n % 3}" if n % 7 == 0 else "", label,
        )
        for n in range(60)
    ]  # fmt: skip


def taught() -> World:
    world = World()
    with world.connection:
        observe_many(world.connection, seens(LOW))
    return world


def kept(world: World) -> list[object]:
    return [
        sorted(rows, key=str)
        for table, rows in world.dump().items()
        if table not in ("posting", "part")
    ]


def test_calls_that_rise_at_once_come_to_what_they_come_to_one_by_one():
    labels = [HIGH if n % 4 == 0 else OTHER if n % 4 == 1 else LOW for n in range(60)]
    risen = [
        one for label, n in zip(labels, range(60), strict=True) for one in seens(label)[n : n + 1]
    ]
    once, apart = taught(), taught()
    assert raising.to(once.connection, "log", risen) == sum(label != LOW for label in labels)
    assert sum(raising.to(apart.connection, "log", [one]) for one in risen) == 30
    assert kept(once) == kept(apart)
    assert once.all("SELECT level, untrusted, count(*) FROM call GROUP BY 1, 2 ORDER BY 1, 2") == [
        (0, 0, 30),
        (1, 0, 15),
        (2, 1, 15),
    ]
    assert once.one("min(level)", "origin = 'reflector'") < 2
    assert once.all("SELECT DISTINCT level, untrusted FROM fix") == [(2, 1)]


def test_a_call_never_falls_and_what_is_not_known_does_not_rise():
    world = taught()
    assert raising.to(world.connection, "log", seens(HIGH)) == 60
    before = world.dump()
    assert raising.to(world.connection, "log", seens(OTHER)) == 0
    assert raising.to(world.connection, "other", seens(Label(3, True))) == 0
    assert raising.to(world.connection, "log", []) == 0
    assert world.dump() == before
