"""A new index, step by step: the order of its logs, what is told of the work, and what it says when it is done."""

import gc
import os
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from memoryd import db, points
from memoryd.errors import IOFailed
from memoryd.index import Counts, building, opening, sweeping
from memoryd.index.building import HASH_BYTES, HOLD_CHARS
from memoryd.index.process import Progress
from memoryd.sources import discover
from tests.support.indexing import lines
from tests.support.logs import claude_user, dated, write


@pytest.fixture
def story():
    """The points that were reached, in their order."""
    told = []
    points.observe(told.append)
    yield told
    points.observe(None)


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves: its seconds are a list of one."""
    seconds = [100.0]
    monkeypatch.setattr(building, "monotonic", lambda: seconds[0])
    return seconds


def owner(*words):
    return dated(*(claude_user(word) for word in words))


def three(world):
    """Three logs of one, two and three records; the last in the alphabet is the oldest."""
    for age, (name, words) in enumerate([("c", "r"), ("b", "st"), ("a", "xyz")]):
        path = write(world.logs / f"{name}.jsonl", *owner(*words))
        os.utime(path, ns=(0, 1_700_000_000_000_000_000 + age))
    return world.settings()


def new_temp(settings):
    settings.path.parent.mkdir(mode=0o700, exist_ok=True)
    return opening.new_temp(settings.path)


def build(settings, tell=None):
    return building.build(new_temp(settings), settings, tell)


def test_what_was_built_is_told_in_counts_time_and_room(world, story, clock, monkeypatch):
    settings = three(world)
    monkeypatch.setattr(
        building,
        "getrusage",
        lambda who: SimpleNamespace(ru_utime=2.0, ru_stime=0.5, ru_maxrss=77 + who),
    )
    temp = new_temp(settings)
    real = building.schema.make

    def slow(*args):
        clock[0] += 7.0
        real(*args)

    monkeypatch.setattr(building.schema, "make", slow)
    built = building.build(temp, settings)
    assert (built.temp, built.counts, built.logs) == (str(temp), Counts(6, 6), 3)
    assert (built.seconds, built.cpu_seconds, built.peak_kib) == (7.0, 2.5, 77)
    assert built.unreadable == {}
    assert [point for point in story if point.startswith("rebuild: ")][-2:] == [
        "rebuild: half built",
        "rebuild: closed",
    ]


def test_the_oldest_log_is_read_first_and_of_one_age_the_first_in_the_alphabet(world):
    settings = three(world)
    files = discover.discover(settings.roots, {}).logs
    line = building._oldest_first(files, settings)
    assert [file.path.name for _, file in line] == ["c.jsonl", "b.jsonl", "a.jsonl"]
    assert [size for size, _ in line] == [file.path.stat().st_size for _, file in line]
    for file in files:
        os.utime(file.path, ns=(0, 1_700_000_000_000_000_000))
    again = building._oldest_first(files[::-1], settings)
    assert [file.path.name for _, file in again] == ["a.jsonl", "b.jsonl", "c.jsonl"]


def test_a_log_that_is_gone_or_too_old_is_left_out_and_those_after_it_are_not(world, monkeypatch):
    settings = three(world)
    files = sorted(discover.discover(settings.roots, {}).logs, key=lambda file: file.log)
    files[0].path.unlink()
    line = building._oldest_first(files, settings)
    assert [file.log for _, file in line] == ["c.jsonl", "b.jsonl"]
    newest = 1_700_000_000_000_000_001
    monkeypatch.setattr(sweeping, "young", lambda _, seen: seen.mtime_ns >= newest)
    assert [file.log for _, file in building._oldest_first(files, settings)] == ["b.jsonl"]


def test_ids_of_rows_rise_as_time_does(world):
    built = build(three(world))
    connection = db.reader(Path(built.temp))
    found = [log for (log,) in connection.execute("SELECT log FROM log ORDER BY id")]
    ids = connection.execute("SELECT min(rowid), max(rowid), count(*) FROM row_0").get
    connection.close()
    assert found == ["c.jsonl", "b.jsonl", "a.jsonl"]
    assert ids == (1, 6, 6)


def test_progress_is_told_at_once_and_then_every_fifth_of_a_second(clock, story):
    told = []
    telling = building._Telling(told.append, 5, 100)
    for size, at in ((1, 0.0), (2, 0.19), (4, 0.2), (8, 0.39), (16, 0.4)):
        clock[0] = 100.0 + at
        telling.done(size)
    assert told == [Progress(1, 5, 1, 100), Progress(3, 5, 7, 100), Progress(5, 5, 31, 100)]
    assert story == ["rebuild: half built"]


@pytest.mark.parametrize(("logs", "half"), [(2, 1), (3, 1), (4, 2), (5, 2)])
def test_the_point_half_way_is_reached_after_half_of_the_logs(story, logs, half):
    telling = building._Telling(None, logs, 100)
    reached = []
    for _ in range(logs):
        telling.done(1)
        reached.append(len(story))
    assert reached == [int(done >= half) for done in range(1, logs + 1)]


def test_a_rebuild_tells_of_all_logs_and_all_their_bytes(world, monkeypatch):
    settings = three(world)
    told = []
    monkeypatch.setattr(building, "_TELL_EVERY_S", 0.0)
    build(settings, told.append)
    sizes = [(world.logs / f"{name}.jsonl").stat().st_size for name in "cba"]
    total = sum(sizes)
    assert told == [
        Progress(1, 3, sizes[0], total),
        Progress(2, 3, sizes[0] + sizes[1], total),
        Progress(3, 3, total, total),
    ]


def test_words_are_gathered_in_large_pieces_while_it_is_built_and_in_the_usual_ones_after(
    world, monkeypatch
):
    settings = three(world)
    sizes, at = [], []
    real, fill = building._gather, building._fill
    monkeypatch.setattr(
        building,
        "_gather",
        lambda c, s, size, *, merge: (sizes.append(size), real(c, s, size, merge=merge)),
    )
    monkeypatch.setattr(building, "_fill", lambda *args: (at.append(len(sizes)), fill(*args))[1])
    built = build(settings)
    assert (sizes, at) == ([HASH_BYTES, 1 << 20], [1])
    assert HASH_BYTES > 2 * HOLD_CHARS == 64 << 20
    connection = db.reader(Path(built.temp))
    kept = [
        connection.execute(f"SELECT v FROM ft_{c}_config WHERE k = 'hashsize'").get
        for c in range(len(settings.classes))
    ]
    merge = connection.execute("SELECT v FROM ft_0_config WHERE k = 'automerge'").get
    assert merge == 4
    segments = connection.execute("SELECT count(DISTINCT segid) FROM ft_0_idx").get
    connection.close()
    assert kept == [1 << 20] * len(settings.classes)
    assert segments <= 1


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_of_cycles_rests_while_it_is_built_and_is_then_as_it_was(
    world, monkeypatch, on
):
    settings = three(world)
    seen, fill = [], building._fill
    monkeypatch.setattr(building, "_fill", lambda *a: (seen.append(gc.isenabled()), fill(*a))[1])
    before = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        build(settings)
        assert (seen, gc.isenabled()) == ([False], on)
    finally:
        (gc.enable if before else gc.disable)()


def test_a_log_that_cannot_be_opened_is_named_with_its_reason_and_delays_no_other(
    world, monkeypatch
):
    settings = three(world)
    real = building.index_log

    def index_log(writer, file, *rest):
        if file.log == "b.jsonl":
            raise PermissionError(13, "no")
        return real(writer, file, *rest)

    monkeypatch.setattr(building, "index_log", index_log)
    built = build(settings)
    assert built.counts == Counts(4, 4)
    assert len(built.unreadable) == 1
    ((key, why),) = built.unreadable.items()
    assert len(key) == 12
    assert int(key, 16) > 0
    assert why == building.reason_of(PermissionError(13, "no"))


def test_a_log_that_breaks_off_ends_the_work_with_a_remedy(world, monkeypatch):
    settings = three(world)

    def index_log(writer, *rest):
        raise building.TurnFailed(OSError(5, "no"), None)

    monkeypatch.setattr(building, "index_log", index_log)
    with pytest.raises(IOFailed, match="broke off while it was read") as caught:
        build(settings)
    assert caught.value.remedy == "rebuild again"


def test_a_device_that_is_nearly_full_is_asked_about_before_each_log(world, monkeypatch):
    settings = three(world)
    asked = []
    monkeypatch.setattr(building.room, "check", asked.append)
    build(settings)
    assert asked == [settings.path.parent] * 3


def test_an_index_whose_check_fails_is_not_handed_on(world, monkeypatch):
    settings = three(world)
    asked = []

    def check(connection, classes, *, words):
        asked.append((classes, words))
        raise db.Damaged("no")

    monkeypatch.setattr(building.schema, "check_health", check)
    with pytest.raises(db.Damaged):
        build(settings)
    assert asked == [(len(settings.classes), False)]


def test_what_is_built_is_closed_and_in_one_file(world):
    built = build(three(world))
    folder = world.state / "index"
    assert [path.name for path in folder.iterdir()] == [Path(built.temp).name]
    connection = db.reader(Path(built.temp))
    assert len(lines(connection)) == 6
    connection.close()


def open_files():
    """The paths of what this process has open; the folder's own descriptor is gone by then."""
    return {str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}


def test_a_build_that_fails_has_closed_its_file_before_anybody_looks_at_why(world, monkeypatch):
    settings = three(world)
    temp = new_temp(settings)
    seen = []

    def check(*args, **more):
        seen.append(str(temp) in open_files())
        raise db.Damaged("no")

    monkeypatch.setattr(building.schema, "check_health", check)
    with pytest.raises(db.Damaged) as held:
        building.build(temp, settings)
    assert held.value.__traceback__ is not None  # it still has the frame, and the connection in it
    assert seen == [True]
    assert str(temp) not in open_files()


def test_words_of_many_pieces_are_joined_to_one(world, monkeypatch):
    for number in range(30):
        write(world.logs / f"{number}.jsonl", *owner(*(f"word{number}x{i}" for i in range(20))))
    monkeypatch.setattr(building, "HASH_BYTES", 64)
    built = build(world.settings())
    connection = db.reader(Path(built.temp))
    found = connection.execute("SELECT count(DISTINCT segid) FROM ft_0_idx").get
    connection.close()
    assert found == 1


@pytest.mark.parametrize("residue", [0, 5])
def test_words_of_what_was_deleted_on_the_way_are_taken_out(world, monkeypatch, residue):
    asked, done = [], []
    monkeypatch.setattr(building.purging, "bits", lambda c, name: (asked.append(name), residue)[1])
    monkeypatch.setattr(building.purging, "finish", done.append)
    build(three(world))
    assert asked[0] == building.purging.RESIDUE
    assert len(done) == bool(residue)


def test_a_log_that_starts_from_another_is_read_after_all_that_can_be(world, monkeypatch):
    """It waits only for a log of which nothing is read, and only while somebody else can be read before it."""
    settings = three(world)
    real, told = building.index_log, []

    def index_log(writer, file, *rest):
        patient = writer.patience(None)
        told.append((file.log, patient, writer.patience(7)))
        if patient and file.log != "a.jsonl":
            raise building.Waiting([])
        return real(writer, file, *rest)

    monkeypatch.setattr(building, "index_log", index_log)
    built = build(settings)
    assert told == [
        ("c.jsonl", True, False),
        ("b.jsonl", True, False),
        ("a.jsonl", False, False),  # all that is left waits, and has tried
        ("c.jsonl", True, False),  # something was read since it waited
        ("b.jsonl", False, False),
        ("c.jsonl", False, False),
    ]
    assert (built.counts, built.logs) == (Counts(6, 6), 3)


def test_every_row_is_written_before_vanished_logs_are_looked_for_and_theirs_count(
    world, monkeypatch
):
    real, rows = sweeping.look, []

    def look(settings, there, writer, catalogue):
        rows.append(writer.connection.execute("SELECT count(*) FROM row_0").get)
        return real(settings, there, writer, catalogue)

    kept = SimpleNamespace(logs=[SimpleNamespace(indexed=5), SimpleNamespace(indexed=30)])
    monkeypatch.setattr(sweeping, "look", look)
    monkeypatch.setattr(sweeping, "settle", lambda *args: kept)
    built = build(three(world))
    assert rows == [6]
    assert built.counts == Counts(6, 41)


def test_logs_in_one_file_and_of_one_age_keep_the_order_in_which_they_were_found(world):
    settings = three(world)
    file = discover.discover(settings.roots, {}).logs[0]
    age = 1_700_000_000_000_000_000
    found = [
        msgspec.structs.replace(file, log=log, mark=(1, 2, size, age))
        for log, size in (("x", 9), ("y", 3), ("z", 6))
    ]
    assert [size for size, _ in building._oldest_first(found, settings)] == [9, 3, 6]
