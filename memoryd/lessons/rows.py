"""Many rows a statement.

In: an open transaction and the columns of rows. Out: the rows, as one statement each would write them, for three
quarters of what that costs.
"""

from collections.abc import Sequence

import apsw

Value = str | float | None
_TOGETHER = 32
"""From there on a statement takes longer to prepare and to bind than it saves."""


def insert(connection: apsw.Connection, into: str, width: int, values: Sequence[Value]) -> None:
    """Insert rows whose columns stand in `values` one row after the other.

    `into`: the statement as far as VALUES; `width`: the columns of a row. Raises: apsw.ConstraintError.
    """
    row = f"({','.join('?' * width)})"
    step = width * _TOGETHER
    whole = len(values) - len(values) % step
    connection.executemany(
        f"{into} VALUES {','.join([row] * _TOGETHER)}",
        [values[at : at + step] for at in range(0, whole, step)],
    )
    connection.executemany(
        f"{into} VALUES {row}",
        [values[at : at + width] for at in range(whole, len(values), width)],
    )
