"""Who is let in, header by header: pure functions, each answer a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.web import guard
from memoryd.web.guard import CLOSED, FOREIGN, KEY_HEADER, Keys

KEYS = Keys("token", "cookie", "page")
OURS = {
    "host": "127.0.0.1:7707",
    "origin": "http://127.0.0.1:7707",
    "sec-fetch-site": "same-origin",
    KEY_HEADER: "page",
}


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7707", "localhost:7707", "LOCALHOST:7707", "[::1]:7707"]
)
def test_this_machine_s_own_names_are_at_home(host: str) -> None:
    assert guard.at_home(host, 7707)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:7708",
        "127.0.0.1:٧٧٠٧",
        "127.0.0.1:7707 ",
        "evil.example:7707",
        "127.0.0.1.evil.example:7707",
        "localhost.evil.example:7707",
        "evil.localhost:7707",
        "0.0.0.0:7707",
        "2130706433:7707",
        "[::]:7707",
        "user@127.0.0.1:7707",
        ":7707",
    ],
)
def test_any_other_name_is_not(host: str | None) -> None:
    assert not guard.at_home(host, 7707)


def test_port_80_needs_no_number() -> None:
    assert guard.at_home("localhost", 80)
    assert guard.at_home("[::1]", 80)


def test_a_forwarded_socket_may_have_any_port_and_no_other_name() -> None:
    assert guard.at_home("localhost:9000", None)
    assert not guard.at_home("evil.example:9000", None)
    assert not guard.at_home("localhost:x", None)


@given(st.text(), st.one_of(st.none(), st.integers(1, 65_535)))
def test_no_host_makes_the_check_fall(host: str, port: int | None) -> None:
    home = guard.at_home(host, port)
    assert home <= (host.lower().rpartition(":")[0] in guard.HOSTS or host.lower() in guard.HOSTS)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "", "SAME-ORIGIN"])
def test_another_page_is_foreign_whatever_it_sends(site: str) -> None:
    for changes in (False, True):
        told = guard.refused(OURS | {"sec-fetch-site": site}, "cookie", KEYS, changes=changes)
        assert told == FOREIGN


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "https://127.0.0.1:7707", "http://127.0.0.1:7708"]
)
def test_a_foreign_origin_is_refused_in_every_request(origin: str) -> None:
    for changes in (False, True):
        told = guard.refused(OURS | {"origin": origin}, "cookie", KEYS, changes=changes)
        assert told == FOREIGN


def test_what_changes_something_must_name_its_origin_and_what_reads_need_not() -> None:
    bare = {"host": OURS["host"], KEY_HEADER: "page"}
    assert guard.refused(bare, "cookie", KEYS, changes=True) == FOREIGN
    assert guard.refused(bare, "cookie", KEYS, changes=False) is None


@pytest.mark.parametrize(
    ("cookie", "key"),
    [
        (None, "page"),
        ("", "page"),
        ("cookie", ""),
        ("cookie", "Page"),
        ("token", "page"),
        ("cookies", "page"),
        ("cookie", "token"),
    ],
)
def test_cookie_and_key_are_both_needed(cookie: str | None, key: str) -> None:
    assert guard.refused(OURS | {KEY_HEADER: key}, cookie, KEYS, changes=True) == CLOSED


def test_our_own_page_is_let_in() -> None:
    assert guard.refused(OURS, "cookie", KEYS, changes=True) is None


def test_secrets_are_new_at_each_start_long_and_three() -> None:
    one, other = Keys.new(), Keys.new()
    drawn = {one.token, one.cookie, one.page, other.token, other.cookie, other.page}
    assert len(drawn) == 6
    assert min(map(len, drawn)) >= 43


def test_a_secret_of_any_letters_is_compared_without_a_fault() -> None:
    assert not guard.same("schlüssel \udcff".encode("utf-8", "replace").decode(), "token")
    assert not guard.same(None, "token")
    assert guard.same("token", "token")


def test_the_policy_allows_nothing_but_our_own() -> None:
    told = dict(part.split(" ", 1) for part in guard.POLICY.split("; "))
    assert told["default-src"] == "'none'"
    assert {told[name] for name in ("script-src", "style-src", "connect-src", "img-src")} == {
        "'self'"
    }
    assert {told[name] for name in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert "unsafe" not in guard.POLICY
    assert "http" not in guard.POLICY
