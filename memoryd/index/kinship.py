"""Which logs refer to which, and what each therefore hears: the graph over `kinfolk`, solved by `lineage`.

In: rows of the log table as each turn leaves them. Out: the labels that a log hears while it is read, and,
after a turn, every log whose rows no longer say what the fixpoint says (`unsettled`). What is kept here of a
log without relations is its name, its session and its first anchor; nothing of it is ever computed.

A log finds its parent by a path and a record (native), by a session (a sub-agent, a fork), or by a record's
name (a resumed session). A sub-agent starts from the calls that name it; where none does, from its parent's
end, and from whoever else has a call that nobody was named for. A result hears the ends of the sub-agents
that it names; where it names none, of all. A kept log of a vanished file stands as it was.
"""

from collections.abc import Callable, Iterable, Iterator

import apsw
import msgspec

from memoryd.fold import call_hash
from memoryd.index import kinfolk, lineage, table
from memoryd.index.kinfolk import QUIET, SPAWN, TALK, Dispatch, Told
from memoryd.index.lineage import END, NOTHING, Account, Heard, Hearing, Ref
from memoryd.index.table import Log, Place
from memoryd.labels import LOWEST, Label
from memoryd.records import Link
from memoryd.sources import ADAPTERS

Token = tuple[str, str, object]


class Member(msgspec.Struct):
    """What the graph knows of a log. `side`: a sub-agent's log that carries its parent's session."""

    key: int
    id: int
    place: Place
    session: str
    records: int
    start: Label
    told: Told
    heard: Heard
    agent: bytes | None = None
    side: bool = False
    frozen: bool = False

    def hears(self) -> bool:
        """Say whether other logs can matter to this one's rows."""
        return bool(self.told.links or self.told.dispatches)


class Kinship:
    """The graph of one index. One thread uses it; after a rollback it must be made again."""

    def __init__(
        self, connection: apsw.Connection, top: Label, start: Callable[[Log], Label]
    ) -> None:
        """Take the logs of an open index. `start` gives a log's label before its first record."""
        self._connection = connection
        self._top = top
        self._start = start
        self.load()

    def load(self) -> None:
        """Read the graph from the database: at first, and after a rollback. Raises: apsw.Error."""
        self.members: dict[int, Member] = {}
        self._named: dict[Token, set[int]] = {}
        self._wanted: dict[Token, set[int]] = {}
        self._anchored: dict[int, set[Ref]] = {}
        self._holds: dict[int, set[int]] = {}
        self._by_id: dict[int, int] = {}
        for log in table.every(self._connection):
            self._take(log)
        for token in list(self._wanted):
            self._look_for(token)

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
        old, member = self.members.get(log.key), self._member(log)
        self.members[log.key] = member
        self._by_id[log.id] = log.key
        tokens, wants = _tokens(member), _wants(member)
        if old is not None:
            if (_tokens(old), _wants(old)) == (tokens, wants):
                return set()
            self._unname(old)
        for token in tokens:
            self._named.setdefault(token, set()).add(log.key)
        for token in wants:
            self._wanted.setdefault(token, set()).add(log.key)
        return wants

    def _look_for(self, token: Token) -> None:
        """Find out once where the record stands that a log starts from, so that its arrival is noticed."""
        if token[0] == "name" and isinstance(token[2], int):
            self._find_anchor(token[2])

    def _unname(self, member: Member) -> None:
        for tokens, found in ((_tokens(member), self._named), (_wants(member), self._wanted)):
            for token in tokens:
                found[token].discard(member.key)

    def drop(self, key: int) -> None:
        """Forget a log that the index no longer has, or will read from its start."""
        member = self.members.pop(key, None)
        if member is None:
            return
        self._by_id.pop(member.id, None)
        self._unname(member)
        for value in self._holds.pop(key, set()):
            self._anchored[value] = {ref for ref in self._anchored[value] if ref[0] != key}

    def names(self, key: int, blob: bytes, first_n: int) -> None:
        """Take the anchors of a turn, where any of them is looked for."""
        if self._anchored and blob:
            for n, value in kinfolk.named(blob, first_n):
                if value in self._anchored:
                    self._anchored[value].add((key, n))
                    self._holds.setdefault(key, set()).add(value)

    def linked(self, log: Log, n: int, link: Link) -> Label:
        """Return the label that a log hears at a link, as far as things are known now."""
        member = self._member(log)
        label = LOWEST
        for hearing in self._starts(member, n, link):
            label = label.join(self._value(hearing))
        return label

    def answered(self, log: Log, dispatch: Dispatch) -> Label:
        """Return what the sub-agents that answered a call had met, as far as they are read."""
        return self._value(Hearing(0, 0, self._answerers(self._member(log), dispatch), start=False))

    def below(self, log: Log) -> list[Place]:
        """Return where the known logs of a log's sub-agents lie."""
        member = self._member(log)
        keys = {key for d in log.kin.dispatches for key, _ in self._answerers(member, d)}
        return [self.members[key].place for key in sorted(keys)]

    def unread(self, log: Log) -> list[int] | None:
        """Return the logs that must be read further before this one can start; None: one is not known."""
        found: list[int] = []
        member = self._member(log)
        for hearing in self._hearings(member):
            if hearing.start and hearing.refs is None:
                return None
            for key, n in hearing.refs or ():
                if n >= self.members[key].records and not self.members[key].frozen:
                    found.append(key)
        return found

    def before(self, log: Log, n: int) -> Label:
        """Return the label that a log had before its record `n`, by its steps and by what it has heard."""
        return lineage.after(_known(self._member(log)), [], n - 1)

    def elders(self, log: Log) -> set[int]:
        """Return the names of records that rows of other logs stand for, should this log copy them."""
        member = self._member(log)
        if not member.told.first or member.side:
            return set()
        group = self._copiers(self._component({log.key} | self._around(member)) | {log.key}, member)
        held: set[int] = set()
        for key in group:
            if key == log.key:
                return held
            held.update(value for _, value in self._anchors(key))
        return held

    def around(self, key: int) -> set[int]:
        """Return the logs whose rows may depend on this one's."""
        member = self.members.get(key)
        return set() if member is None else self._around(member)

    def unsettled(self, touched: Iterable[int]) -> dict[int, Heard]:
        """Return what each log should have heard, of all that `touched` ones matter to and that differ."""
        found: dict[int, Heard] = {}
        done: set[int] = set()
        for key in touched:
            member = self.members.get(key)
            if member is None or key in done:
                continue
            group = self._component({key})
            done |= group
            if len(group) > 1 or member.hears():
                found.update(self._differing(group))
        return found

    # ------------------------------------------------------------ from links to references

    def _member(self, log: Log) -> Member:
        adapter = ADAPTERS.get(log.place.source)
        agent = None if adapter is None else adapter.agent(log.place.log, log.session)
        side = log.place.source != "codex" and any(
            link.how == "subagent" for _, link in log.kin.links
        )
        return Member(
            log.key, log.id, log.place, log.session, log.position.records, self._start(log), log.kin,
            log.heard, None if agent is None else call_hash(agent), side, log.state == table.GONE,
        )  # fmt: skip

    def _hearings(self, member: Member) -> tuple[Hearing, ...]:
        if member.frozen:
            return ()
        found: list[Hearing] = []
        for n, link in member.told.links:
            found += self._starts(member, n, link)
        for dispatch in member.told.dispatches:
            if dispatch.answers and (refs := self._answerers(member, dispatch)):
                found += [Hearing(n, block, refs, start=False) for n, block in dispatch.answers]
        return tuple(sorted(found, key=lambda hearing: hearing[:2]))

    def _starts(self, member: Member, n: int, link: Link) -> Iterator[Hearing]:
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
                refs = self._find(link.uuid, member.key)
        yield Hearing(n, -1, tuple(sorted(refs)) or None, start=True)

    def _at_record(self, member: Member, link: Link) -> set[Ref]:
        keys = self._named.get(("log", member.place.source, (member.place.root, link.log)), set())
        n = link.n
        return set() if n is None else {
            (key, n) for key in keys if n < self.members[key].records
        }  # fmt: skip

    def _forked(self, member: Member, link: Link) -> set[Ref]:
        keys = self._of_session(member, link.session)
        if link.uuid is None:
            return {(key, END) for key in keys if not self.members[key].side}
        return {ref for ref in self._find(link.uuid, member.key) if ref[0] in keys}

    def _spawned(self, member: Member, n: int, link: Link) -> Iterator[Hearing]:
        keys = self._of_session(member, link.session or member.session)
        mains = {key for key in keys if not self.members[key].side}
        if not mains:
            yield Hearing(n, -1, None, start=True)
            return
        named: set[Ref] = set()
        said: set[Ref] = set()
        idle: set[Ref] = set()
        for key in keys:
            for dispatch in self.members[key].told.dispatches:
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

    def _answerers(self, member: Member, dispatch: Dispatch) -> tuple[Ref, ...]:
        source = member.place.source
        heard_of = self._wanted.get(("session", source, member.session), set())
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

    def _of_session(self, member: Member, session: str | None) -> set[int]:
        return self._named.get(("session", member.place.source, session), set()) - {member.key}

    def _find(self, name: str | None, but: int) -> set[Ref]:
        """Return where the record with this name stands in other logs."""
        found = set() if name is None else self._find_anchor(kinfolk.anchor(name))
        return {ref for ref in found if ref[0] != but}

    def _find_anchor(self, value: int) -> set[Ref]:
        """Return where an anchor stands; the first question reads the database, later turns are told of."""
        if value not in self._anchored:
            self._anchored[value] = set()
            packed = value.to_bytes(8, kinfolk.BYTES)
            for log, first_n, blob in table.names_with(self._connection, packed):
                if (key := self._by_id.get(log)) is not None:
                    self.names(key, blob, first_n)
        return self._anchored[value]

    # ------------------------------------------------------------ the fixpoint over related logs

    def _value(self, hearing: Hearing) -> Label:
        """Return the label of one hearing, from what its logs have heard themselves."""
        if hearing.refs is None:
            return self._top
        label = LOWEST
        for key, n in hearing.refs:
            member = self.members[key]
            label = label.join(lineage.after(_known(member), [], n))
        return label

    def _around(self, member: Member) -> set[int]:
        found: set[int] = set()
        for token in _tokens(member):
            found |= self._wanted.get(token, set())
            if token[0] == "first":
                found |= self._named.get(token, set())
        for token in _wants(member):
            found |= self._named.get(token, set())
        for hearing in self._hearings(member):
            found.update(key for key, _ in hearing.refs or ())
        for value in self._holds.get(member.key, ()):
            found |= self._wanted.get(("name", "", value), set())
        return found - {member.key}

    def _component(self, keys: set[int]) -> set[int]:
        found = {key for key in keys if key in self.members}
        line = list(found)
        while line:
            new = self._around(self.members[line.pop()]) - found
            found |= new
            line += new
        return found

    def _differing(self, group: set[int]) -> dict[int, Heard]:
        """Return what the logs of a group should have heard, where they have heard something else."""
        accounts = {
            key: _frozen(member) if member.frozen else Account(
                member.start, tuple(member.told.steps), self._hearings(member)
            )
            for key in sorted(group) for member in (self.members[key],)
        }  # fmt: skip
        values = lineage.solve(accounts, self._top)
        skips, copies = self._copies(group)
        found: dict[int, Heard] = {}
        for key, account in accounts.items():
            member = self.members[key]
            if member.frozen:
                continue
            shared: list[tuple[int, int, bool]] = []
            for n, others in sorted(copies.get(key, {}).items()):
                label = LOWEST
                for log, at in others:
                    label = label.join(lineage.after(accounts[log], values[log], at - 1))
                if not lineage.after(account, values[key], n - 1).covers(label):
                    shared.append((n, *label))
            raises = lineage.raises(account, values[key], member.records)
            heard = Heard(raises, tuple(runs(skips.get(key, []))), tuple(shared))
            if heard != member.heard:
                found[key] = heard
        return found

    def _copies(
        self, group: set[int]
    ) -> tuple[dict[int, list[int]], dict[int, dict[int, list[Ref]]]]:
        """Return which records of each log are copies, and which copies each log's records have."""
        owner: dict[int, Ref] = {}
        skips: dict[int, list[int]] = {}
        copies: dict[int, dict[int, list[Ref]]] = {}
        ranked = self._copiers(group, None)
        for key in ranked if len(ranked) > 1 else ():
            for n, value in self._anchors(key):
                first, at = owner.setdefault(value, (key, n))
                if first != key:
                    skips.setdefault(key, []).append(n)
                    copies.setdefault(first, {}).setdefault(at, []).append((key, n))
        return skips, copies

    def _copiers(self, group: set[int], more: Member | None) -> list[int]:
        """Return the logs of a group whose records have names, those first from which others were copied."""
        known = {key: self.members[key] for key in group if key in self.members}
        if more is not None:
            known[more.key] = more
        able = [key for key, member in known.items() if member.told.first and not member.side]
        return sorted(
            able, key=lambda key: (self._depth(known[key], frozenset()), known[key].place)
        )

    def _depth(self, member: Member, seen: frozenset[int]) -> int:
        """Return over how many logs a log was copied; a forged circle counts as nothing."""
        seen |= {member.key}
        depths = [0]
        for _, link in member.told.links:
            if link.how == "fork":
                above = self._of_session(member, link.session)
            else:
                above = {key for key, _ in self._find(link.uuid, member.key)}
            depths += [
                1 + self._depth(self.members[key], seen)
                for key in above - seen
                if not self.members[key].side
            ]
        return max(depths)

    def _anchors(self, key: int) -> Iterator[tuple[int, int]]:
        for first_n, blob in table.names(self._connection, self.members[key].id):
            yield from kinfolk.named(blob, first_n)


def runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of consecutive numbers, which come in rising order."""
    first = last = None
    for number in numbers:
        if first is None or last is None:
            first = number
        elif number != last + 1:
            yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last


def _tokens(member: Member) -> set[Token]:
    """Return by what other logs may name this one."""
    source = member.place.source
    found: set[Token] = {
        ("session", source, member.session),
        ("log", source, (member.place.root, member.place.log)),
    }
    if member.told.first and not member.side:
        found.add(("first", source, member.told.first))
    return found


def _wants(member: Member) -> set[Token]:
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


def _known(member: Member) -> Account:
    """Return a log's account with what it has heard so far among its own steps."""
    heard = [(n, level, untrusted) for n, _, level, untrusted in member.heard.raises]
    return Account(member.start, (*member.told.steps, *heard))


def _frozen(member: Member) -> Account:
    return _known(member)


__all__ = ["NOTHING", "Kinship", "Member", "runs"]
