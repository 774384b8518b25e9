"""Other names for logs, wherever lessons name one: after the key that names are made with has changed.

In: an open database, which name stands for which. Out: the same rows under the new names, in one transaction.
"""

from collections.abc import Mapping

import apsw

from memoryd import db

_TABLES = ("failed", "well", "charge", "waiting", "progress")
_DIGITS = 12


def rename(connection: apsw.Connection, names: Mapping[str, str]) -> int:
    """Put for each log's name (twelve hexadecimal digits) the one that `names` has; return how many logs.

    What follows the digits (`.1` of a log that was rewritten) stays. A name that is not in `names` stays: it is of
    a log that nobody knows. Raises: apsw.Error, with nothing changed.
    """
    done = set[str]()
    with db.transaction(connection):
        for table in _TABLES:
            for (name,) in list(connection.execute(f"SELECT DISTINCT log FROM {table}")):
                if (other := names.get(str(name)[:_DIGITS])) is not None:
                    new = other + str(name)[_DIGITS:]
                    connection.execute(f"UPDATE {table} SET log = ? WHERE log = ?", (new, name))
                    done.add(new)
        for table in ("lesson", "fix"):
            found = connection.execute(f"SELECT row, call FROM {table} WHERE call IS NOT NULL")
            for row, call in list(found):
                head, rest = str(call)[:_DIGITS], str(call)[_DIGITS:]
                if rest[:1] in {"\0", "."} and head in names:
                    connection.execute(
                        f"UPDATE {table} SET call = ? WHERE row = ?", (names[head] + rest, row)
                    )
    return len(done)
