"""A state folder and a folder of logs for each test of the index."""

import pytest

from tests.support.indexing import World


@pytest.fixture
def world(user_home):
    return World(user_home)
