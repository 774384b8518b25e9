"""The way to the daemon: patient before a question is sent, never twice after."""

from typing import Any, Self

import pytest

from memoryd.errors import Busy, NotGranted, Unavailable

link = pytest.importorskip("memoryd.mcp.link", reason="the extra memoryd[mcp] is not installed")


class Daemon:
    """A daemon that is away for some attempts and then answers, or hangs up in the middle of an answer."""

    def __init__(self, away: int = 0, error: Exception | None = None) -> None:
        self.server = {"methods": ["recall"]}
        self.away, self.error = away, error
        self.server = {"methods": ["recall"]}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.closed = 0

    def connect(self) -> "Daemon":
        if self.away > 0:
            self.away -= 1
            raise (Unavailable if self.away % 2 else Busy)("not there")
        return self

    def call(self, method: str, /, **args: Any) -> str:
        self.asked.append((method, args))
        if self.error is not None:
            raise self.error
        return "answer"

    def close(self) -> None:
        self.closed += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def test_a_daemon_that_is_being_restarted_is_waited_for(monkeypatch):
    monkeypatch.setattr(link, "PAUSE_S", 0.001)
    daemon = Daemon(away=3)
    way = link.Link(daemon.connect)
    assert await way.ask("recall", query="x") == "answer"
    assert daemon.asked == [("recall", {"query": "x", "deadline_ms": link.ANSWER_MS})]
    assert daemon.closed == 1
    assert await way.server() == {"methods": ["recall"]}
    assert daemon.closed == 2


async def test_a_question_that_was_sent_is_not_sent_again():
    daemon = Daemon(error=Unavailable("memoryd closed the connection"))
    with pytest.raises(Unavailable, match="closed"):
        await link.Link(daemon.connect).ask("notes.insert", path="x")
    assert len(daemon.asked) == 1


async def test_patience_ends(monkeypatch):
    monkeypatch.setattr(link, "PATIENCE_S", 0.0)
    with pytest.raises((Unavailable, Busy)):
        await link.Link(Daemon(away=1_000_000).connect).ask("recall")


async def test_what_waiting_does_not_mend_is_told_at_once():
    def refuse() -> Daemon:
        raise NotGranted("no")

    with pytest.raises(NotGranted):
        await link.Link(refuse).ask("recall")
    with pytest.raises(NotGranted):
        await link.Link(refuse).there()


async def test_somebody_who_waits_for_the_daemon_is_told_when_it_is_there(monkeypatch):
    monkeypatch.setattr(link, "LOOK_S", 0.001)
    daemon = Daemon(away=5)
    await link.Link(daemon.connect).there()
    assert (daemon.away, daemon.closed) == (0, 1)
