"""What one log tells of other logs: its links, its calls of sub-agents, the names of its records.

In: records, as they are folded. Out: `Told`, which is stored with the log's progress and is a function of
its bytes and the rules alone; `anchors`, eight bytes a record by which copies and link targets are found.

Ids of sub-agents stand as hashes: a call's arguments may lie above `max_class`.
"""

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from uuid import UUID

import msgspec

from memoryd.fold import Step, call_hash
from memoryd.records import Called, Link, Record, Returned
from memoryd.records import values as argument_values
from memoryd.sources.base import Adapter

SPAWN, TALK, WAIT, QUIET = range(4)
"""What a call does with sub-agents: starts one, says more to one, asks after one, or may start one."""

DISPATCHERS = {
    **dict.fromkeys(("Task", "Agent", "Workflow", "spawn_agent", "spawn_agents_on_csv"), SPAWN),
    **dict.fromkeys(("task", "agent", "delegate", "AgentSwarm", "Subagent", "newTask"), SPAWN),
    **dict.fromkeys(("SendMessage", "send_input", "send_message", "followup_task"), TALK),
    **dict.fromkeys(("resume_agent", "interrupt_agent"), TALK),
    **dict.fromkeys(("TaskOutput", "AgentOutputTool", "wait", "wait_agent", "close_agent"), WAIT),
    **dict.fromkeys(("list_agents", "ListAgents", "report_agent_job_result"), WAIT),
    **dict.fromkeys(("Skill", "SlashCommand"), QUIET),
}
"""Tools through which a session hears from sub-agents whose logs are their own."""

BYTES = sys.byteorder
"""How an anchor lies in a blob: as the machine writes it; the index moves to no other."""

_MOST_IDS, _LONGEST_ID = 32, 64
_NO_NAME = "00000000-0000-0000-0000-000000000000"
_WIDTH = len(_NO_NAME)


class Dispatch(msgspec.Struct, array_like=True):
    """A call of a sub-agent: its id's hash, its record, what it does, and where it was answered.

    `ids`: hashes of the sub-agents that its arguments or answers name; `told`: an answer named one.
    """

    call: bytes
    n: int
    kind: int
    ids: list[bytes] = []
    told: bool = False
    answers: list[tuple[int, int]] = []

    def answered(self, n: int, result: Returned, adapter: Adapter) -> None:
        """Take note of an answer, and of whom it names."""
        if result.more is not None and memoryview(result.more):
            names = adapter.agents(result.more)[:_MOST_IDS]
            self.ids += [call_hash(name) for name in names]
            self.told = self.told or bool(names)
        self.answers.append((n, result.block))


class Told(msgspec.Struct, array_like=True):
    """All that a log tells of others. `first` is the anchor of its first named record, 0 if none is named."""

    links: list[tuple[int, Link]] = []
    dispatches: list[Dispatch] = []
    steps: list[Step] = []
    first: int = 0

    def link(self, n: int, link: Link) -> None:
        """Take a link; a second look at the same record changes nothing."""
        if (n, link) not in self.links:
            self.links.append((n, link))

    def session(self, n: int, session: str) -> None:
        """Take the session that record `n` names: a fork that goes on with its parent's meta holds it whole."""
        if self.links:
            at, link = self.links[-1]
            if link.how == "fork" and link.session == session and at == n - 1 and not link.whole:
                self.links[-1] = (at, msgspec.structs.replace(link, whole=True))

    def called(self, n: int, name: str, call: Called) -> Dispatch:
        """Take note of a call that sub-agents may answer, under its id."""
        found = [v for v in argument_values(call.args) if len(v) <= _LONGEST_ID and not v.isspace()]
        ids = [call_hash(one) for one in found[:_MOST_IDS]]
        dispatch = Dispatch(call_hash(name), n, DISPATCHERS[call.tool], ids)
        self.dispatches.append(dispatch)
        return dispatch

    def called_before(self, name: str) -> Dispatch | None:
        """Return the latest call with this id that sub-agents may answer."""
        hashed = call_hash(name)
        return next((one for one in reversed(self.dispatches) if one.call == hashed), None)

    def answered_since(self, n: int) -> bool:
        """Say whether sub-agents answered in record `n` or later."""
        return any(at >= n for dispatch in self.dispatches for at, _ in dispatch.answers)


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Told).decode


def anchor(name: str) -> int:
    """Return the 8 bytes that stand for a record's name: the later half of a UUID, as it varies most."""
    if _are_uuids([name], name):
        try:
            return int.from_bytes(UUID(name).bytes[8:], BYTES)
        except ValueError:
            pass
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def anchors(records: list[Record]) -> bytes:
    """Return the anchors of records, eight bytes each, zero for one without a name; b"" if none has one."""
    return _anchors([record.uuid or _NO_NAME for record in records])


def origins(records: list[Record]) -> bytes:
    """Return the anchors of the records that these say they copy; b"" if none does."""
    return _anchors([record.copy_of or _NO_NAME for record in records])


def _anchors(names: list[str]) -> bytes:
    joined = "".join(names)
    if _are_uuids(names, joined):
        try:
            whole = bytes.fromhex(joined.replace("-", ""))
        except ValueError:
            whole = b""
        if len(whole) == 16 * len(names):
            return _packed(array("Q", memoryview(whole).cast("Q")[1::2]))
    return _packed(array("Q", [0 if name is _NO_NAME else anchor(name) for name in names]))


def _are_uuids(names: list[str], joined: str) -> bool:
    """Say whether all names have the dashes of a UUID, and no more; their digits are not looked at."""
    count = len(names)
    return (
        len(joined) == _WIDTH * count
        and joined.count("-") == 4 * count
        and all(joined[at::_WIDTH] == "-" * count for at in (8, 13, 18, 23))
    )


def _packed(found: "array[int]") -> bytes:
    return found.tobytes() if any(found) else b""


def values(blob: bytes) -> Sequence[int]:
    """Return the anchors in a blob, 0 for records without a name."""
    return memoryview(blob).cast("Q")


def named(blob: bytes, first_n: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the record number and the anchor of each named record."""
    for n, value in enumerate(values(blob), first_n):
        if value:
            yield n, value


class Names(msgspec.Struct):
    """The anchors of a turn's records, and of what they copy, from record `first_n` on."""

    first_n: int = 0
    own: bytes = b""
    copied: bytes = b""

    def add(self, records: list[Record], *, fork: bool) -> None:
        """Add the next records, of a log that is a fork or is none."""
        blob = anchors(records)
        if not self.own and blob:
            self.first_n = records[0].n
        elif not blob and self.own:
            blob = bytes(8 * len(records))
        if blob and (fork or self.copied):
            found = origins(records) or bytes(len(blob))
            self.copied = self.copied.ljust(len(self.own), b"\0") + found
        self.own += blob


def first_of(blob: bytes) -> int:
    """Return the first anchor; 0 where there is none."""
    return next((value for _, value in named(blob)), 0)


def peek(records: Iterable[Record]) -> Told:
    """Return what a log's first records tell of where it comes from, before they are folded."""
    told = Told()
    for record in records:
        if record.about is not None:
            if record.about.session is not None:
                told.session(record.n, record.about.session)
            if record.about.link is not None:
                told.link(record.n, record.about.link)
    return told
