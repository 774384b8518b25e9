"""Where session logs come from: one adapter a harness, and the reader that they share.

`discover` finds logs and tells their formats apart by content; `lines` reads one log from where reading
stopped; `whole` and `sqlite` make lines of what is none; each module named after a harness knows that harness's
format and nothing else.
"""

from memoryd.sources import (
    aider,
    claude_code,
    cline,
    codex,
    copilot,
    cursor,
    droid,
    gemini,
    goose,
    kimi,
    native,
    opencode,
    openhands,
    pi,
    qwen,
    swe_agent,
)
from memoryd.sources.base import Adapter, LogFile, Root

_HARNESSES = (
    *(native, claude_code, codex, opencode, gemini, qwen, pi, copilot, cursor, kimi, droid),
    *(aider, swe_agent, openhands, goose, cline),
)

ADAPTERS: dict[str, Adapter] = {harness.ADAPTER.id: harness.ADAPTER for harness in _HARNESSES}
"""Every format that is read, by its id."""

__all__ = ["ADAPTERS", "Adapter", "LogFile", "Root"]
