"""The labels that kept rows have today, when the rules are no longer those that labelled them.

In: what `vanished` kept of a log, in its order. Out: each row's label: the one it had, joined with what
today's rules say of the results before it. Of a call only its tool and its argument values are left, so
keys play no part here; a rule can raise what is gone, never lower it.
"""

from memoryd.index.settings import Settings
from memoryd.index.vanished import About, Kept, label_of
from memoryd.labels import LOWEST, Label


class Judge:
    """Judges one kept log; give it every line after the first, in order. `label` is the whole log's."""

    def __init__(self, about: About, settings: Settings) -> None:
        """Start before the first row; under the same rules nothing is judged again."""
        self.label = label_of(about.cls, about.untrusted, settings.classes)
        self._classes, self._rules = settings.classes, settings.rules
        self._again = about.rules != settings.rules.fingerprint
        self._trusted = any(r.trusted and str(r.path) == about.root for r in settings.roots)
        self._more = LOWEST
        self._calls: dict[tuple[int, int], Kept] = {}

    def row(self, kept: Kept) -> Label:
        """Return the label of a row."""
        if self._again and kept.tool is not None:
            self._calls[kept.n, kept.block] = kept
        return label_of(kept.cls, kept.untrusted, self._classes).join(self._more)

    def raised(self, kept: Kept) -> None:
        """Take an event that raised the label."""
        if self._again:
            self._more = self._more.join(self._today(kept))
            self.label = self.label.join(self._more)

    def _today(self, kept: Kept) -> Label:
        if kept.name is not None:
            args = None if kept.paths is None else {"path": list(kept.paths)}
            brought = self._rules.brought(kept.name.removeprefix(":"), args)
            return LOWEST if brought is None else brought
        call = None if kept.of is None else self._calls.get(kept.of)
        if call is None or call.tool is None:
            return LOWEST  # nothing is left to judge by; its own label was recorded
        args = {"values": (call.text or "").split("\n")[1:]}
        if kept.of == (kept.n, kept.block):
            return self._rules.hosted(call.tool, args)
        if self._trusted:
            return self._rules.paths(call.tool, args)
        return self._rules.result(call.tool, args)
