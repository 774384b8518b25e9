"""What a log looks like from outside and at its ends, value by value."""

import hashlib
import os
from types import SimpleNamespace

import pytest

from memoryd.index import identity
from memoryd.index.identity import Ends, Marks, Seen

BEFORE = Seen(dev=1, ino=2, size=300, mtime_ns=4_000_000_000)
CUT = (1 << 63) - 1


def hashed(content):
    return hashlib.blake2b(content, digest_size=16).digest()


@pytest.fixture
def opened(tmp_path):
    """A file of 3,000 bytes of which no two neighbours are alike, and its descriptor."""
    content = b"".join(b"%03d" % number for number in range(1_000))
    path = tmp_path / "log"
    path.write_bytes(content)
    handle = os.open(path, os.O_RDONLY)
    yield handle, content
    os.close(handle)


def test_what_is_seen_of_a_file_is_its_status_cut_to_63_bits(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"123")
    status = path.stat()
    assert identity.seen(status) == Seen(status.st_dev, status.st_ino, 3, status.st_mtime_ns)
    huge = SimpleNamespace(st_dev=CUT + 2, st_ino=CUT + 3, st_size=CUT + 4, st_mtime_ns=CUT + 5)
    assert identity.seen(huge) == Seen(1, 2, 3, 4)
    most = SimpleNamespace(st_dev=CUT, st_ino=CUT, st_size=CUT, st_mtime_ns=CUT)
    assert identity.seen(most) == Seen(CUT, CUT, CUT, CUT)


def test_a_log_is_looked_at_by_its_mark_by_its_kind_s_own_look_or_where_it_lies(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"123")
    link = tmp_path / "link"
    link.symlink_to(path)
    root = SimpleNamespace(path=tmp_path)

    def log(**more):
        return SimpleNamespace(
            **{"mark": None, "whole": None, "where": str(path), "root": root, **more}
        )

    assert identity.look(log()) == identity.seen(path.stat())
    assert identity.look(log(where=str(link))).size == len(
        str(path)
    )  # the link, not what it leads to
    assert identity.look(log(mark=(1, 2, 3, 4))) == Seen(1, 2, 3, 4)
    own = SimpleNamespace(look=lambda folder, name: (5, 6, len(name), len(str(folder))))
    assert identity.look(log(whole=own, log="x/y")) == Seen(5, 6, 3, len(str(tmp_path)))
    assert identity.look(log(whole=SimpleNamespace(look=None))).size == 3


@pytest.mark.parametrize("offset", [1, 255, 256, 257, 1_023, 1_024, 1_025, 3_000])
def test_marks_are_of_the_first_1024_and_the_last_256_bytes_before_the_offset(opened, offset):
    handle, content = opened
    read = content[:offset]
    assert identity.marks(handle, offset) == Marks(hashed(read[:1_024]), hashed(read[-256:]))


def test_of_nothing_there_are_no_marks(opened):
    handle, _ = opened
    assert identity.marks(handle, 0) == identity.marks(handle, 0, whole=True) == Marks(b"", b"")
    assert Ends().marks() == Marks()


@pytest.mark.parametrize("offset", [1, 10, 11, 2_999])
def test_of_a_log_that_is_read_whole_every_byte_counts(opened, monkeypatch, offset):
    monkeypatch.setattr(identity, "_PIECE", 10)
    handle, content = opened
    assert identity.marks(handle, offset, whole=True) == Marks(head=hashed(content[:offset]))


@pytest.mark.parametrize("cuts", [(1,), (255, 1), (256, 1), (1_023, 1, 1), (1_024, 700), (2_000,)])
def test_ends_that_are_read_piece_by_piece_are_those_of_the_whole(opened, cuts):
    handle, content = opened
    ends, at = Ends(), 0
    for cut in cuts:
        piece = content[at : at + cut]
        ends.add(piece[:1_024], piece[-1_024:])
        at += cut
        assert ends.marks() == identity.marks(handle, at)


@pytest.mark.parametrize("apart_ms", [-51, -50, 0, 50, 51])
def test_a_file_changed_within_the_clock_s_grain_is_remembered_as_changed_before(
    monkeypatch, apart_ms
):
    monkeypatch.setattr(identity, "now_ms", lambda: 4_000 + apart_ms)
    young = abs(apart_ms) <= 50
    expected = Seen(1, 2, 300, 3_999_999_999) if young else BEFORE
    assert identity.remembered(BEFORE) == expected
    assert not identity.differs(BEFORE, identity.remembered(BEFORE))


@pytest.mark.parametrize(
    ("now", "changed"),
    [
        (BEFORE, False),
        (Seen(1, 2, 300, 4_000_000_001), False),  # `before` was remembered a nanosecond early
        (Seen(1, 2, 300, 4_000_000_002), True),
        (Seen(1, 2, 300, 3_999_999_999), True),
        (Seen(1, 2, 301, 4_000_000_000), True),
        (Seen(1, 3, 300, 4_000_000_000), True),
        (Seen(2, 2, 300, 4_000_000_000), True),
    ],
)
def test_a_file_differs_in_any_value_but_for_one_nanosecond(now, changed):
    assert identity.differs(now, BEFORE) is changed


def test_a_log_goes_on_where_device_inode_length_and_both_ends_are_the_same():
    ends = Ends(b"head", b"tail")
    marks = Marks(hashed(b"head"), hashed(b"tail"))
    assert identity.same(BEFORE, BEFORE, 300, ends, marks) is True
    assert identity.same(Seen(1, 2, 301, 9), BEFORE, 300, ends, marks) is True
    for other in (Seen(9, 2, 300, 4), Seen(1, 9, 300, 4), Seen(1, 2, 299, 4)):
        assert identity.same(other, BEFORE, 300, ends, marks) is False
    for wrong in (Marks(hashed(b"x"), marks.tail), Marks(marks.head, hashed(b"x"))):
        assert identity.same(BEFORE, BEFORE, 300, ends, wrong) is False


def test_a_log_read_whole_goes_on_where_it_starts_with_all_that_was_read(opened):
    handle, content = opened
    for offset in (2_999, 3_000):
        known = Marks(head=hashed(content[:offset]))
        assert identity.same_whole(handle, offset, known) is True
    assert identity.same_whole(handle, 3_001, Marks(head=hashed(content))) is False
    assert identity.same_whole(handle, 3_000, Marks(head=hashed(b"other"))) is False
