"""After every test of a daemon: no file of its state is wider than its owner (promise P7)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.modes import too_wide

OTHERS = ("sessions", "filling")
"""What tests write there themselves: the agents' logs have the modes of their agents."""


@pytest.fixture(autouse=True)
def nothing_is_wider_than_its_owner(user_home: Path) -> Iterator[None]:
    yield
    state = user_home / "state"
    if (state / "memoryd.lock").exists():
        wide = too_wide(state)
        assert [line for line in wide if not line.split("state/")[-1].startswith(OTHERS)] == []
