"""A desk of notes for each test; syncing is left out, except where a test is about it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd import points
from tests.support.notes import Desk


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it wrote, synced or not; a power cut is not simulated."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(autouse=True)
def nobody_observes() -> Iterator[None]:
    yield
    points.observe(None)


@pytest.fixture
def desk(memoryd_home: Path) -> Iterator[Desk]:
    with Desk(memoryd_home) as desk:
        yield desk
