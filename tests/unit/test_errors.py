"""Every refusal has a code, an exit code of the documented set, and room for a remedy."""

import pytest

from memoryd import errors

CODES = (
    "bad_message bad_request unknown_method not_granted not_found conflict check_failed pending "
    "too_large rate behind busy index_busy timeout cancelled unavailable disk_full io_error "
    "shutting_down internal"
).split()


def test_the_codes_are_the_decided_ones() -> None:
    assert [error.code for error in errors.ALL] == CODES
    assert set(errors.BY_CODE) == set(CODES)


@pytest.mark.parametrize("error", [*errors.ALL, errors.ConfigError])
def test_exit_codes_are_the_documented_ones(error: type[errors.MemorydError]) -> None:
    assert error.exit_code in {1, 2, 69, 70, 74, 75, 77, 78}
    raised = error("what", remedy="do this", check="name")
    assert str(raised) == "what; do this"
    assert raised.data == {"check": "name"}
    assert str(error("what")) == "what"
