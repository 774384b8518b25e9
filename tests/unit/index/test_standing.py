"""What the owner is told of an index."""

import os

from memoryd.index import catch_up


def test_a_name_that_is_no_text_is_told_as_text(world):
    (world.logs / os.fsdecode(b"a\xff.jsonl")).write_bytes(b"{}\n")
    with world.index('[index]\nmax_class = "secret"\n' + world.toml) as index:
        catch_up(index)
        told = index.status().skipped
    assert {name.rpartition("/")[2]: why for name, why in told.items()} == {
        r"a\xff.jsonl": "its name is not UTF-8"
    }
    assert all(name.encode() for name in told)
