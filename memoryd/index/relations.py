"""Which logs refer to which: by their paths, their sessions, and the names of their records.

In: rows of the log table as each turn leaves them. Out: for a log, where it hears from others (`hearings`).
What is kept here of a log without relations is its name, its session and its first anchor.

A log finds its parent by a path and a record (native), by a session (a sub-agent, a fork), or by a record's
name (a resumed session). A sub-agent starts from the calls that name it; where none does, from its parent's
end, and from whoever else has a call that nobody was named for. A result hears the ends of the sub-agents
that it names; where it names none, of all. A kept log of a vanished file stands as it was.
"""

from collections.abc import Callable, Iterator, Mapping

import apsw
import msgspec

from memoryd.fold import call_hash
from memoryd.index import kinfolk, related, table
from memoryd.index.kinfolk import QUIET, SPAWN, TALK, WAIT, Dispatch, Told
from memoryd.index.lineage import END, NOTHING, Heard, Hearing, Ref
from memoryd.index.naming import Keys
from memoryd.index.table import Known, Log, Place
from memoryd.labels import Label
from memoryd.records import Link
from memoryd.sources import ADAPTERS

Token = tuple[str, str, object]
_PLAIN = kinfolk.encode(Told())[:3]
"""How a `Told` without links and dispatches begins."""


class Member(msgspec.Struct, gc=False):
    """What the graph knows of a log. `side`: a sub-agent's log that carries its parent's session.

    `kin` is what it tells of others; packed where it tells of none, as there may be a hundred thousand such.
    """

    key: int
    id: int
    place: Place
    session: str
    records: int
    start: Label
    kin: Told | bytes
    heard: Heard
    agent: bytes | None = None
    side: bool = False
    frozen: bool = False

    @property
    def told(self) -> Told:
        """Return what the log tells of others; it is not to be changed."""
        return kinfolk.decode(self.kin) if isinstance(self.kin, bytes) else self.kin

    def hears(self) -> bool:
        """Say whether other logs can matter to this one's rows, or did and are gone now."""
        return not isinstance(self.kin, bytes) or self.heard != NOTHING


class Named:
    """Which logs name themselves, or others, by a token: kept by its last part, which the log's row holds anyway."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[object, ...], Keys[object]] = {}

    def add(self, token: Token, key: int) -> None:
        """Let a log name something."""
        kind, last = _split(token)
        self._kinds.setdefault(kind, Keys()).add(last, key)

    def discard(self, token: Token, key: int) -> None:
        """Let a log name something no more."""
        kind, last = _split(token)
        self._kinds[kind].discard(last, key)

    def get(self, token: Token) -> frozenset[int]:
        """Return the logs that name something."""
        kind, last = _split(token)
        found = self._kinds.get(kind)
        return frozenset() if found is None else found.get(last)


def _split(token: Token) -> tuple[tuple[object, ...], object]:
    kind, source, name = token
    return ((kind, source, name[0]), name[1]) if isinstance(name, tuple) else ((kind, source), name)


class Relations:
    """The graph of one index. One thread uses it; after a rollback it must be made again."""

    def __init__(
        self, connection: apsw.Connection, top: Label, start: Callable[[Log], Label]
    ) -> None:
        """Know nothing before `load`. `start` gives a log's label before its first record: by its folder and floor."""
        self.connection = connection
        self.top = top
        self._start = start
        self._starts: dict[tuple[str, Label], Label] = {}

    def load(self, known: Mapping[int, Known]) -> None:
        """Read the graph from the database: at first, and after a rollback. Raises: apsw.Error."""
        self.members: dict[int, Member] = {}
        self.named, self.wanted = Named(), Named()
        self.anchored: dict[int, set[Ref]] = {}
        self.holds: dict[int, set[int]] = {}
        self._by_id: dict[int, int] = {}
        self._unlooked: set[int] = set()
        for log in related.logs(self.connection, known):
            for token in self._take(log):
                self.look_later(token)
        self._look()

    def put(self, log: Log) -> None:
        """Take a log as its turn left it."""
        if log.state not in (table.LIVE, table.GONE):
            self.drop(log.key)
            return
        for token in self._take(log):
            self._look_for(token)

    def _take(self, log: Log) -> set[Token]:
        """Take a log, and return by what it names others, if that is new."""
        if log.state not in (table.LIVE, table.GONE):
            return set()
        old, member = self.members.get(log.key), self.member_of(log)
        self.members[log.key] = member
        self._by_id[log.id] = log.key
        tokens, wants = tokens_of(member), wants_of(member)
        if old is not None:
            if (tokens_of(old), wants_of(old)) == (tokens, wants):
                return set()
            self._unname(old)
        for token in tokens:
            self.named.add(token, log.key)
        for token in wants:
            self.wanted.add(token, log.key)
        return wants

    def _look_for(self, token: Token) -> None:
        """Find out once where the record stands that a log starts from, so that its arrival is noticed."""
        self.look_later(token)
        self._look()

    def look_later(self, token: Token) -> bool:
        """Have it found out with the next one that is asked for; say whether that is still to be done.

        Looking for one reads the names of all records, and so does looking for a thousand.
        """
        if token[0] != "name" or not isinstance(token[2], int):
            return False
        if token[2] not in self.anchored:
            self.anchored[token[2]] = set()
            self._unlooked.add(token[2])
        return token[2] in self._unlooked

    def _unname(self, member: Member) -> None:
        for tokens, found in ((tokens_of(member), self.named), (wants_of(member), self.wanted)):
            for token in tokens:
                found.discard(token, member.key)

    def drop(self, key: int) -> None:
        """Forget a log that the index no longer has, or will read from its start."""
        member = self.members.pop(key, None)
        if member is None:
            return
        self._by_id.pop(member.id, None)
        self._unname(member)
        for value in self.holds.pop(key, set()):
            self.anchored[value] = {ref for ref in self.anchored[value] if ref[0] != key}

    def names(self, key: int, blob: bytes, first_n: int) -> None:
        """Take the anchors of a turn, where any of them is looked for."""
        if not (blob and self.anchored) or self.anchored.keys().isdisjoint(kinfolk.values(blob)):
            return
        for n, value in kinfolk.named(blob, first_n):
            if value in self.anchored:
                self.anchored[value].add((key, n))
                self.holds.setdefault(key, set()).add(value)

    # ------------------------------------------------------------ from links to references

    def member_of(self, log: Log) -> Member:
        """Return what the graph knows of a log as its row says."""
        adapter = ADAPTERS.get(log.place.source)
        agent = None if adapter is None else adapter.agent(log.place.log, log.session)
        side = log.place.source != "codex" and any(
            link.how == "subagent" for _, link in log.kin.links
        )
        packed = kinfolk.encode(log.kin)
        begins = log.place.root, log.floor
        if (start := self._starts.get(begins)) is None:
            start = self._starts[begins] = self._start(log)
        return Member(
            log.key, log.id, log.place, log.session, log.position.records, start,
            packed if packed.startswith(_PLAIN) else log.kin,
            log.heard, None if agent is None else call_hash(agent), side, log.state == table.GONE,
        )  # fmt: skip

    def hearings(self, member: Member) -> tuple[Hearing, ...]:
        """Return where a log hears from others, in the order of its records."""
        if member.frozen:
            return ()
        found: list[Hearing] = []
        for n, link in member.told.links:
            found += self.starts(member, n, link)
        for dispatch in member.told.dispatches:
            if dispatch.answers and (refs := self.answerers(member, dispatch)):
                found += [Hearing(n, block, refs, start=False) for n, block in dispatch.answers]
        return tuple(sorted(found, key=lambda hearing: hearing[:2]))

    def starts(self, member: Member, n: int, link: Link) -> Iterator[Hearing]:
        """Yield what a log hears at a link."""
        if link.whole:
            return
        if link.how == "subagent":
            yield from self._spawned(member, n, link)
            return
        match link.how:
            case "parent":
                refs = self._at_record(member, link)
            case "fork":
                refs = self._forked(member, link)
            case _:
                refs = self.find(link.uuid, member.key)
        yield Hearing(n, -1, tuple(sorted(refs)) or None, start=True)

    def _at_record(self, member: Member, link: Link) -> set[Ref]:
        keys = self.named.get(("log", member.place.source, (member.place.root, link.log)))
        n = link.n
        return set() if n is None else {
            (key, n) for key in keys if n < self.members[key].records
        }  # fmt: skip

    def _forked(self, member: Member, link: Link) -> set[Ref]:
        keys = self.of_session(member, link.session)
        if link.uuid is None:
            return {(key, END) for key in keys if not self.members[key].side}
        return {ref for ref in self.find(link.uuid, member.key) if ref[0] in keys}

    def _spawned(self, member: Member, n: int, link: Link) -> Iterator[Hearing]:
        keys = self.of_session(member, link.session or member.session)
        mains = {key for key in keys if not self.members[key].side}
        if not mains:
            yield Hearing(n, -1, None, start=True)
            return
        named: set[Ref] = set()
        said: set[Ref] = set()
        idle: set[Ref] = set()
        for key in keys:
            for dispatch in self.members[key].told.dispatches:
                if dispatch.kind == WAIT:
                    continue  # it says nothing to the sub-agent
                if member.agent is not None and member.agent in dispatch.ids:
                    named.add((key, dispatch.n))
                elif dispatch.kind == TALK and not dispatch.told:
                    said.add((key, dispatch.n))
                elif dispatch.kind == SPAWN and not dispatch.told:
                    idle.add((key, END))
        refs = named | said if named else {(key, END) for key in mains}
        yield Hearing(n, -1, tuple(sorted(refs)), start=True)
        if not named and idle - refs:
            yield Hearing(n, -1, tuple(sorted(idle - refs)), start=False)

    def answerers(self, member: Member, dispatch: Dispatch) -> tuple[Ref, ...]:
        """Return the ends of the sub-agents' logs that an answer rests on."""
        source = member.place.source
        heard_of = self.wanted.get(("session", source, member.session))
        children = [
            key
            for key in heard_of
            if key != member.key
            and any(k.how == "subagent" for _, k in self.members[key].told.links)
        ]
        named = [key for key in children if self.members[key].agent in dispatch.ids]
        if not named and (dispatch.told or dispatch.kind == QUIET):
            return ()
        return tuple(sorted((key, END) for key in named or children))

    def of_session(self, member: Member, session: str | None) -> frozenset[int]:
        """Return the other logs of a session, as far as they are of the same harness."""
        return self.named.get(("session", member.place.source, session)) - {member.key}

    def find(self, name: str | None, but: int) -> set[Ref]:
        """Return where the record with this name stands in other logs."""
        found = set() if name is None else self._find_anchor(kinfolk.anchor(name))
        return {ref for ref in found if ref[0] != but}

    def _find_anchor(self, value: int) -> set[Ref]:
        """Return where an anchor stands; the first question reads the database, later turns are told of."""
        self._look_for(("name", "", value))
        return self.anchored[value]

    def _look(self) -> None:
        """Find out where the records stand that are looked for."""
        if not self._unlooked:
            return
        wanted, self._unlooked = self._unlooked, set()
        for log, first_n, blob in related.names_with(self.connection, wanted):
            if (key := self._by_id.get(log)) is not None:
                self.names(key, blob, first_n)


def tokens_of(member: Member) -> set[Token]:
    """Return by what other logs may name this one."""
    source = member.place.source
    found: set[Token] = {
        ("session", source, member.session),
        ("log", source, (member.place.root, member.place.log)),
    }
    if member.told.first and not member.side:
        found.add(("first", source, member.told.first))
    return found


def wants_of(member: Member) -> set[Token]:
    """Return by what this log names others."""
    source, found = member.place.source, set[Token]()
    for _, link in member.told.links:
        if link.how == "parent":
            found.add(("log", source, (member.place.root, link.log)))
        elif link.how == "resume":
            if link.uuid is not None:
                found.add(("name", "", kinfolk.anchor(link.uuid)))
        else:
            session = link.session or (member.session if link.how == "subagent" else None)
            found.add(("session", source, session))
    return found
