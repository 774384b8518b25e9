"""What the index hears while it reads, for whoever learns from the same records.

In: records as a turn folded them. Out: `Heard`, a record with its rows' labels and the label after it, and
`Told`, one log's turn, handed on once it is committed. Handing on copies nothing and reads nothing again:
decoding and folding a log a second time would cost a third of catching up. What is dropped on the way, or was
read before anybody listened, is read again (`memoryd.index.retelling`), with the same labels.
"""

import msgspec

from memoryd.labels import Label
from memoryd.records import Called, Record, Returned, Said


class Heard(msgspec.Struct, frozen=True, gc=False):
    """A record, its rows with the label before each, the label after it, and whose log it stands in.

    `above`: its log is above `max_class` from here on; what stands above it is not in the record, nor in the rows.
    """

    record: Record
    rows: list[tuple[Said | Called, Label]]
    after: Label
    session: str
    project: str | None
    above: bool = False

    @property
    def calls(self) -> bool:
        """Say whether there is a call or a result in it."""
        return self.above or any(isinstance(o, Called | Returned) for o in self.record.items)


class Told(msgspec.Struct, frozen=True):
    """Records `first` to `end` (exclusive) of the log `key`; of what is told again perhaps only those with calls.

    `anew`: the log is another one than it was, and these are its first. `excluded`: its owner does not want
    it read. `written`: when its file was changed last (ms).
    """

    key: int
    first: int
    end: int
    heard: list[Heard]
    written: int
    anew: bool = False
    excluded: bool = False
