"""Where session logs come from: one adapter a harness, and the reader that they share.

`discover` finds logs and tells their formats apart by content; `lines` reads one log from where reading
stopped; each module named after a harness knows that harness's format and nothing else.
"""

from memoryd.sources import claude_code, codex, native
from memoryd.sources.base import Adapter, LogFile, Root

ADAPTERS: dict[str, Adapter] = {
    adapter.id: adapter for adapter in (native.ADAPTER, claude_code.ADAPTER, codex.ADAPTER)
}
"""Every format that is read, by its id."""

__all__ = ["ADAPTERS", "Adapter", "LogFile", "Root"]
