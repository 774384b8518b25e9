"""What happens, told to whoever asked to be told: topics, and the method `subscribe`.

In: events with their labels, from whatever part of the daemon they happen in. Out: notifications on the
connections that asked. A subscriber learns nothing above its clearance or outside its projects, not even that
something happened. Nobody is waited for: what a slow subscriber has no room for is dropped, and it is told
`lagged` with how many it missed. Everything here runs on trio's thread.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

import msgspec

from memoryd.clock import rfc3339
from memoryd.errors import NotGranted
from memoryd.index.fresh import Fresh
from memoryd.index.scope import Scope
from memoryd.labels import LOWEST, Classes, Label
from memoryd.serve.asking import scope_of
from memoryd.serve.calls import Common, Methods, Quick, fitting
from memoryd.serve.peers import Asker, Capability

Topic = Literal["record", "note", "lesson", "index", "progress"]
TOPICS: tuple[Topic, ...] = get_args(Topic)
NEEDS: Mapping[Topic, str] = {
    "record": "recall",
    "note": "notes.view",
    "lesson": "subscribe",
    "index": "subscribe",
    "progress": "reindex",
}
"""The method that a socket must grant for a topic: who may not ask may not be told either."""

Told = dict[str, object]


class SubscribeArgs(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What to be told of from now on, in place of what was asked for before; none ends it."""

    topics: list[Topic] | None = None
    max_class: str | None = None


class Subscriber(msgspec.Struct, frozen=True):
    """One connection that is told: what about, and how much of it."""

    asker: Asker
    scope: Scope
    topics: frozenset[Topic]


class Topics:
    """Who is told of what, and the way to tell them."""

    def __init__(self, classes: Classes) -> None:
        """Take the names of the classes; nobody is told of anything yet."""
        self._classes = classes
        self._subscribers: list[Subscriber] = []

    def wanted(self, topic: Topic) -> bool:
        """Say whether anybody is told of `topic`: what is costly to find out need not be, otherwise."""
        self._subscribers = [each for each in self._subscribers if each.asker.post is not None]
        return any(topic in each.topics for each in self._subscribers)

    def subscribe(self, asker: Asker, scope: Scope, topics: Iterable[Topic]) -> None:
        """Tell `asker` of `topics`, and of nothing else, until its connection ends."""
        self._subscribers = [each for each in self._subscribers if each.asker is not asker]
        asked = frozenset(topics)
        asker.told = bool(asked)
        if asked:
            self._subscribers.append(Subscriber(asker, scope, asked))

    def publish(
        self,
        topic: Topic,
        told: Told,
        *,
        label: Label = LOWEST,
        project: str | None = None,
        said: bool = True,
        owner: bool = False,
        labelled: bool = True,
    ) -> None:
        """Tell everybody who may know it; `label` is that of everything in `told`, and goes with it.

        `project`: what it belongs to. `said`: the owner's own words. `owner`: for the owner's socket only.
        `labelled` False: it tells of no stored text, and so carries no label.
        """
        if not self.wanted(topic):
            return
        if labelled:
            name = self._classes.name(label.level)
            told = {**told, "class": name, "untrusted": label.untrusted}
        for each in self._subscribers:
            post, scope = each.asker.post, each.scope
            if topic not in each.topics or post is None or (owner and not scope.owner):
                continue
            if not labelled or _covers(scope, label, project, said=said):
                post(topic, told)

    def records(self, found: Iterable[Fresh]) -> None:
        """Tell of rows that came into the index."""
        for one in found:
            told: Told = {
                "id": one.id,
                "session": one.session,
                "project": one.project,
                "source": one.source,
                "ts": None if one.ts is None else rfc3339(one.ts),
                "rows": one.rows,
            }
            self.publish("record", told, label=one.label, project=one.project, said=one.said)


def _covers(scope: Scope, label: Label, project: str | None, *, said: bool) -> bool:
    """Say whether a reader may be told of something with this label."""
    if label.level > scope.level or not scope.covers_project(project):
        return False
    shown = scope.untrusted == "include" or (scope.untrusted == "owner-only" and said)
    return shown or not label.untrusted


def table(topics: Topics, classes: Classes) -> Methods:
    """Return the method by its name; which socket grants which topic is in `NEEDS`."""
    return {
        "subscribe": Quick(
            fitting(SubscribeArgs), lambda asker, args: subscribe(topics, classes, asker, args)
        )
    }


def subscribe(topics: Topics, classes: Classes, asker: Asker, args: SubscribeArgs) -> Told:
    """Tell the asker from now on what it asked for, or all that its socket allows.

    Raises: NotGranted for a topic that it does not, BadRequest for a class above the clearance.
    """
    granted = granted_to(asker.capability)
    wanted = granted if args.topics is None else tuple(dict.fromkeys(args.topics))
    for topic in wanted:
        if topic not in granted:
            raise NotGranted(
                f"the socket {asker.capability.name!r} does not grant the topic {topic}",
                remedy=f"it grants {', '.join(granted)}",
                check="topic",
            )
    topics.subscribe(asker, scope_of(asker.capability, classes, args.max_class, None), wanted)
    return {"topics": list(wanted)}


def granted_to(allowed: Capability) -> tuple[Topic, ...]:
    """Return the topics that a socket may be told of."""
    return tuple(topic for topic in TOPICS if allowed.grants(NEEDS[topic]))
