"""Of a note that has changed: what is told to those who follow along, at which label. No text of it.

In: the answer of an edit. Out: events of the topic ``note``. A note that was moved is told of at each of its
places, so that a reader of one class alone learns what it may and no more.
"""

from collections.abc import Mapping

from memoryd.errors import Pending
from memoryd.labels import Classes, Label
from memoryd.notes import names
from memoryd.notes.edit import place_label
from memoryd.serve.topics import Told, Topics


def edited(
    topics: Topics, classes: Classes, answer: Mapping[str, object], moved_from: str | None
) -> None:
    """Tell of what an edit changed, if it did; `moved_from` is the old path of a note that was moved."""
    label = answer.get("label")
    if not answer.get("changed") or not isinstance(label, Mapping):
        return
    told: Told = {name: answer.get(name) for name in ("status", "path", "hash")}
    if moved_from is not None:
        old = names.parse(moved_from, classes, classes.top)
        if old is not None:
            gone: Told = {"status": "deleted", "path": names.shown(classes, old), "hash": None}
            topics.publish("note", gone, label=place_label(old))
        told["status"] = "created"
    here = Label(classes.level(label["class"]), bool(label["untrusted"]))
    topics.publish("note", told, label=here)


def proposed(topics: Topics, classes: Classes, waits: Pending) -> None:
    """Tell the owner of an edit that waits."""
    told: Told = {"status": "pending", "path": waits.data["path"], "txn": waits.data["txn"]}
    topics.publish("note", told, label=classes.highest, owner=True)
