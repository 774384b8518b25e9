"""What linked logs say to each other: the relations between them (`relations`), solved by `lineage`.

In: rows of the log table as each turn leaves them. Out: the labels that a log hears while it is read, and,
after a turn, every log whose rows no longer say what the fixpoint says (`unsettled`). Of a log without
relations nothing is ever computed.
"""

from collections.abc import Iterable, Iterator

from memoryd.index import kinfolk, lineage, table
from memoryd.index.kinfolk import Dispatch
from memoryd.index.lineage import NOTHING, Account, Heard, Hearing, Ref
from memoryd.index.relations import Member, Relations, tokens_of, wants_of
from memoryd.index.table import Log, Place
from memoryd.labels import LOWEST, Label
from memoryd.records import Link


class Kinship(Relations):
    """The graph of one index, with what it means. One thread uses it; after a rollback it is loaded again."""

    def linked(self, log: Log, n: int, link: Link) -> Label:
        """Return the label that a log hears at a link, as far as things are known now."""
        member = self.member_of(log)
        label = LOWEST
        for hearing in self.starts(member, n, link):
            label = label.join(self._value(hearing))
        return label

    def answered(self, log: Log, dispatch: Dispatch) -> Label:
        """Return what the sub-agents that answered a call had met, as far as they are read."""
        return self._value(
            Hearing(0, 0, self.answerers(self.member_of(log), dispatch), start=False)
        )

    def below(self, log: Log) -> list[Place]:
        """Return where the known logs of a log's sub-agents lie."""
        member = self.member_of(log)
        keys = {key for d in log.kin.dispatches for key, _ in self.answerers(member, d)}
        return [self.members[key].place for key in sorted(keys)]

    def unlooked(self, log: Log) -> bool:
        """Say whether nobody has looked yet for a record that a log names; it is looked for with the next."""
        later = [self.look_later(token) for token in wants_of(self.member_of(log))]
        return any(later)

    def unread(self, log: Log) -> list[int] | None:
        """Return the logs that must be read further before this one can start; None: one is not known."""
        found: list[int] = []
        member = self.member_of(log)
        for hearing in self.hearings(member):
            if hearing.start and hearing.refs is None:
                return None
            for key, n in hearing.refs or ():
                if n >= self.members[key].records and not self.members[key].frozen:
                    found.append(key)
        return found

    def before(self, log: Log, n: int) -> Label:
        """Return the label that a log had before its record `n`, by its steps and by what it has heard."""
        return lineage.after(_known(self.member_of(log)), [], n - 1)

    def elders(self, log: Log) -> set[int]:
        """Return the names of records that rows of other logs stand for, should this log copy them."""
        member = self.member_of(log)
        if not member.told.first or member.side:
            return set()
        group = self._copiers(self._component({log.key} | self._around(member)) | {log.key}, member)
        held: set[int] = set()
        for key in group:
            if key == log.key:
                break
            for _, own, of in self._anchors(key):
                held.add(own)
                held.add(of)
        return held - {0}

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

    # ------------------------------------------------------------ the fixpoint over related logs

    def _value(self, hearing: Hearing) -> Label:
        """Return the label of one hearing, from what its logs have heard themselves."""
        if hearing.refs is None:
            return self.top
        label = LOWEST
        for key, n in hearing.refs:
            member = self.members[key]
            label = label.join(lineage.after(_known(member), [], n))
        return label

    def _around(self, member: Member) -> set[int]:
        found: set[int] = set()
        for token in tokens_of(member):
            found |= self.wanted.get(token)
            if token[0] == "first":
                found |= self.named.get(token)
        for token in wants_of(member):
            found |= self.named.get(token)
        for hearing in self.hearings(member):
            found.update(key for key, _ in hearing.refs or ())
        for value in self.holds.get(member.key, ()):
            found |= self.wanted.get(("name", "", value))
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
                member.start, tuple(member.told.steps), self.hearings(member)
            )
            for key in sorted(group) for member in (self.members[key],)
        }  # fmt: skip
        values = lineage.solve(accounts, self.top)
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
        origin: dict[int, int] = {}
        for key in ranked if len(ranked) > 1 else ():
            for n, value, copied in self._anchors(key):
                if copied and copied != value:
                    origin[value] = origin.get(copied, copied)
                first, at = owner.setdefault(origin.get(value, value), (key, n))
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
                above = self.of_session(member, link.session)
            else:
                above = frozenset(key for key, _ in self.find(link.uuid, member.key))
            depths += [
                1 + self._depth(self.members[key], seen)
                for key in above - seen
                if not self.members[key].side
            ]
        return max(depths)

    def _anchors(self, key: int) -> Iterator[tuple[int, int, int]]:
        for names in table.names(self.connection, self.members[key].id):
            copied = kinfolk.values(names.copied or bytes(len(names.own)))
            for n, (own, of) in enumerate(
                zip(kinfolk.values(names.own), copied, strict=True), names.first_n
            ):
                if own:
                    yield n, own, of


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


def _known(member: Member) -> Account:
    """Return a log's account with what it has heard so far among its own steps."""
    heard = [(n, level, untrusted) for n, _, level, untrusted in member.heard.raises]
    return Account(member.start, (*member.told.steps, *heard))


def _frozen(member: Member) -> Account:
    return _known(member)


__all__ = ["NOTHING", "Kinship", "Member", "runs"]
