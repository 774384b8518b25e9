"""Make what a new database of lessons is made from: all that the steps of its migrations come to, as one text.

In: ``memoryd/migrations/lessons/``. Out: ``memoryd/migrations/lessons.sql``. Run it after adding a step:
``python etc/whole.py``; a test compares. The index has no such text: its few steps change nothing that others made.
"""

from collections.abc import Iterator
from pathlib import Path

import apsw

from memoryd import migrations

DATABASE = "lessons"
PATH = Path(migrations.__file__).with_name(f"{DATABASE}.sql")
_HEAD = (
    "-- Made by etc/whole.py from the steps in the folder beside this; change those, and run it."
)


def text() -> str:
    """Return the tables, indexes, views and triggers in the order in which they lie, and the rows that steps write."""
    connection = apsw.Connection(":memory:")
    migrations.apply(connection, DATABASE, at_once=False)
    number = connection.pragma("user_version")
    return "\n".join((_HEAD, *_parts(connection), f"PRAGMA user_version = {number};", ""))


def _parts(connection: apsw.Connection) -> Iterator[str]:
    made = list(connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY rowid"))
    yield from (f"{sql};" for _, _, sql in made if sql is not None)
    for kind, name, _ in made:
        if kind == "table":
            rows = connection.execute(f"SELECT * FROM {name}")
            told = [f"    ({', '.join(map(apsw.format_sql_value, row))})" for row in rows]
            yield from (f"INSERT INTO {name} VALUES", ",\n".join(told) + ";") if told else ()


if __name__ == "__main__":
    PATH.write_text(text(), "utf-8")
