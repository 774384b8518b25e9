"""What the index hears while it reads, for whoever learns from the same records.

In: records as a turn folded them. Out: `Told`, one log's turn in passages, handed on once it is committed. Handing on
reads nothing again: decoding and folding a log a second time would cost a third of catching up. What is taken of a
batch is taken while the processor still has it at hand, and neither its records nor its lines are kept. What is
dropped on the way, or was read before anybody listened, is read again (`memoryd.index.retelling`), with the same
labels.
"""

import msgspec

from memoryd.lessons.passage import Passage


class Told(msgspec.Struct, frozen=True):
    """Records `first` to `end` (exclusive) of the log `key`: what those of them say that tell something.

    `anew`: the log is another one than it was, and these are its first. `excluded`: its owner does not want
    it read. `written`: when its file was changed last (ms).
    """

    key: int
    first: int
    end: int
    heard: list[Passage]
    written: int
    anew: bool = False
    excluded: bool = False

    @property
    def size(self) -> int:
        """Return about how much there is to learn from."""
        return sum(passage.size for passage in self.heard)
