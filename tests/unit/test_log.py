"""Log lines: JSON off a terminal, and never a word that came out of a record."""

import io
import json

import pytest
import structlog

from memoryd import log


@pytest.fixture
def written() -> io.StringIO:
    stream = io.StringIO()
    log.configure(stream)
    yield stream
    structlog.reset_defaults()


def line(stream: io.StringIO) -> dict[str, object]:
    (one,) = stream.getvalue().splitlines()
    found: dict[str, object] = json.loads(one)
    return found


def test_a_line_is_json_with_level_and_time(written: io.StringIO) -> None:
    structlog.get_logger().info("caught up", logs=3, seconds=0.5)
    found = line(written)
    assert found["event"] == "caught up"
    assert found["level"] == "info"
    assert found["logs"] == 3
    assert found["seconds"] == 0.5
    assert str(found["timestamp"]).endswith("Z")


def test_keys_that_are_not_on_the_list_are_dropped_and_named_v05(written: io.StringIO) -> None:
    structlog.get_logger().info("read", text="the owner's words", query="secret", count=1)
    found = line(written)
    assert found["dropped"] == "query,text"
    assert found["count"] == 1
    assert "words" not in written.getvalue()
    assert "secret" not in written.getvalue()


def test_no_listed_key_is_one_that_holds_stored_text() -> None:
    stored = {"text", "query", "snippet", "title", "session", "project", "tool", "args", "content"}
    assert not log.KEYS & stored


def test_an_exception_leaves_its_type_and_place_and_no_word_v05(written: io.StringIO) -> None:
    def inner() -> None:
        raise ValueError("the owner's words")

    try:
        inner()
    except ValueError:
        structlog.get_logger().exception("a method failed")
    found = line(written)
    assert found["exception"] == "ValueError"
    assert str(found["where"]).startswith("inner:test_log.py:")
    assert "words" not in written.getvalue()


def test_long_values_are_cut(written: io.StringIO) -> None:
    structlog.get_logger().info("read", path="x" * 5_000)
    assert len(str(line(written)["path"])) == 300


def test_debug_lines_are_not_written(written: io.StringIO) -> None:
    structlog.get_logger().debug("detail")
    assert written.getvalue() == ""


def test_a_terminal_gets_a_line_for_people() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    log.configure(stream)
    structlog.get_logger().warning("behind", logs=3)
    structlog.reset_defaults()
    assert "behind" in stream.getvalue()
    assert "{" not in stream.getvalue()


def test_a_stream_that_takes_no_more_lines_stops_nobody() -> None:
    stream = io.StringIO()
    log.configure(stream)
    stream.close()
    structlog.get_logger().error("unheard")
    structlog.reset_defaults()
