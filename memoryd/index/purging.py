"""Rows deleted at once, and their words taken out of the file in small steps.

In: a condition on one class's rows. Out: rows that no query finds, then a file that does not hold them.
FTS5 deletes in two ways. With its option ``secure-delete`` it takes each word of each row out of the index
where it stands: thirty times the cost of indexing the same rows, and more the longer the lists are. Without,
it writes down what is deleted (a third of that cost), and the words stay until segments are merged. So a few
rows are deleted the first way. Of many, the class is noted as `residue`, and whoever wants the words gone
(`want`) has the class merged into one segment, which leaves them behind: some seconds a million rows, in
steps that let others go on, and the same for a log as for a thousand. Then the file is written anew: where rows
were deleted SQLite moves others from page to page, and of those a copy stays in what the page does not use,
which its own ``secure_delete`` does not see (1,800 rows of 3,000 deleted: one or two of them were found again, in
every second file that was tried). At last the write-ahead log is emptied.
"""

import apsw

from memoryd import db
from memoryd.index.tombs import Values
from memoryd.points import reached

FEW = 16
"""Rows up to which each word is taken out where it stands."""
_PAGES = 100
"""Pages of a segment that one step writes, some 20 ms."""
RESIDUE, PURGE = "residue", "purge"
SPENT = "spent"
"""The greatest id of a deleted row: what readers know of a row by its id (`facts`) must never be true of another."""


def delete(connection: apsw.Connection, c: int, where: str, values: Values) -> int:
    """Delete the rows of class `c` that the SQL `where` names; return how many. Raises: apsw.Error."""
    found = f"SELECT count(*), max(id) FROM row_{c} WHERE {where}"
    many, last = next(iter(connection.execute(found, values)))
    if not many:
        return 0
    _set(connection, SPENT, max(bits(connection, SPENT), last))
    _set(connection, RESIDUE, bits(connection, RESIDUE) | _GAPS)
    sql = f"DELETE FROM ft_{c} WHERE rowid IN (SELECT id FROM row_{c} WHERE {where})"
    if many <= FEW:
        connection.execute(sql, values)
    else:
        # What waits in memory is written by the option that is in force then: hence the looks at `vocab_`.
        _flush(connection, c)
        _secure(connection, c, on=False)
        connection.execute(sql, values)
        _flush(connection, c)
        _secure(connection, c, on=True)
        _set(connection, RESIDUE, bits(connection, RESIDUE) | 1 << c)
    connection.execute(f"DELETE FROM row_{c} WHERE {where}", values)
    return int(many)


def _secure(connection: apsw.Connection, c: int, *, on: bool) -> None:
    connection.execute(f"INSERT INTO ft_{c}(ft_{c}, rank) VALUES ('secure-delete', ?)", (int(on),))


def _flush(connection: apsw.Connection, c: int) -> None:
    connection.execute(f"SELECT 1 FROM vocab_{c} LIMIT 1").fetchall()


def bits(connection: apsw.Connection, name: str) -> int:
    """Return which classes `name` (`RESIDUE` or `PURGE`) stands for, a bit each; or `SPENT`, a number.

    Raises: apsw.Error.
    """
    return int(connection.execute("SELECT value FROM meta WHERE key = ?", (name,)).get or 0)


def _set(connection: apsw.Connection, name: str, value: int) -> None:
    connection.execute("DELETE FROM meta WHERE key = ?", (name,))
    if value:
        connection.execute("INSERT INTO meta(key, value) VALUES (?, ?)", (name, value))


def finish(connection: apsw.Connection) -> None:
    """Do all there is to do at once, in a file that nobody else has open. Raises: apsw.Error."""
    begun: set[int] = set()
    want(connection)
    while step(connection, begun):
        pass


def want(connection: apsw.Connection) -> None:
    """Have the words of all that was deleted so far taken out; in the caller's transaction.

    The write-ahead log is to be emptied in any case. Raises: apsw.Error.
    """
    _set(connection, PURGE, bits(connection, RESIDUE) | _WAL)


_GAPS, _WAL = 1 << 61, 1 << 62
"""Bits that stand for what pages do not use, and for the write-ahead log."""


def step(connection: apsw.Connection, begun: set[int]) -> bool:
    """Do one step of what is wanted; say whether there is more to do. Outside of a transaction.

    `begun`: the classes whose merge has begun, kept between steps and lost with the connection.
    Raises: apsw.Error; apsw.BusyError while a reader looks at an older state, and db.NoRoom: then try again later.
    """
    wanted = bits(connection, PURGE)
    if not wanted:
        return False
    classes = wanted & ~(_GAPS | _WAL)
    if classes:
        c = classes.bit_length() - 1
        if not _merge(connection, c, begun):
            _done(connection, 1 << c)
        return True
    reached("purge: merged")
    if wanted & _GAPS:
        try:
            db.write_anew(connection)
        except db.NoRoom:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            raise
        _done(connection, _GAPS)
        reached("purge: written anew")
        return True
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    _set(connection, PURGE, 0)
    reached("purge: done")
    return False


def _done(connection: apsw.Connection, bit: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    _set(connection, PURGE, bits(connection, PURGE) & ~bit)
    _set(connection, RESIDUE, bits(connection, RESIDUE) & ~bit)
    connection.execute("COMMIT")


def _merge(connection: apsw.Connection, c: int, begun: set[int]) -> bool:
    """Merge some pages of a class's segments; say whether there were any to merge.

    A negative count has FTS5 first mark all segments for one merge; a positive one goes on with it, and what
    is written meanwhile lies beside (https://sqlite.org/fts5.html#the_merge_command).
    """
    before, pages = connection.total_changes(), _PAGES if c in begun else -_PAGES
    connection.execute(f"INSERT INTO ft_{c}(ft_{c}, rank) VALUES ('merge', ?)", (pages,))
    begun.add(c)
    more = connection.total_changes() - before >= _NOTHING_MERGED
    if not more:
        begun.discard(c)
    return more


_NOTHING_MERGED = 2
"""Changes from which on a merge has done something, by SQLite's documentation."""
