"""What the index hears while it reads, for whoever learns from the same records.

In: records as a turn folded them. Out: `Heard`, a record with its calls' labels and the label after it, and
`Told`, one log's turn, handed on once it is committed. Handing on copies nothing and reads nothing again:
decoding and folding a log a second time would cost a third of catching up. Only records with calls or results are
handed on, those after which a session rests, and those before which nothing stood for long: words alone teach
nothing, and keeping them alive costs more than looking at them. What is dropped on the way, or was
read before anybody listened, is read again (`memoryd.index.retelling`), with the same labels.
"""

import msgspec

from memoryd.labels import Label
from memoryd.records import Called, Record, Returned

Calls = list[tuple[Called, Label]]


class Heard(msgspec.Struct, frozen=True, gc=False):
    """A record, its calls with the label before each, the label after it, and whose log it stands in.

    `above`: its log is above `max_class` from here on; what stands above it is not in the record, nor in the calls.
    `before`: the newest time (ms) of the log's earlier records, also of those that are not handed on.
    """

    record: Record
    calls: Calls
    after: Label
    session: str
    project: str | None
    above: bool = False
    before: int | None = None


def tells(record: Record, before: int | None, pause: int) -> bool:
    """Say whether a record is handed on; `before` as in `Heard`. `pause`: for how many ms a session may be quiet."""
    for item in record.items:
        kind = type(item)
        if kind is Called or kind is Returned:
            return True
    late = record.ts is not None and before is not None and record.ts - before > pause
    return late or record.rest is not None


class Told(msgspec.Struct, frozen=True):
    """Records `first` to `end` (exclusive) of the log `key`, of which those that tell something are in `heard`.

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
