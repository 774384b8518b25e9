"""The sieve lets no secret through, with the C library's search and without it."""

import pytest

from memoryd.redact import sieve

TEXTS = [
    "nothing",
    "a Token",
    "PASSWORD",
    "café",
    "漢字 eyJ",
    "to\0ken",
    "",
    "x\ny bearer",
    "\ud800 sk-",
    "key" * 9,
]


@pytest.fixture(params=["C library", "Python"])
def search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "Python":
        monkeypatch.setattr(sieve, "_search_in", sieve._python_find)


def words(text: str) -> list[str]:
    return [word for word in sieve.NEEDLES.values() if word in text.lower()]


@pytest.mark.usefixtures("search")
def test_each_text_is_given_with_the_needles_that_it_holds():
    assert sieve.suspects(TEXTS) == {
        at: words(text) for at, text in enumerate(TEXTS) if words(text)
    }


@pytest.mark.usefixtures("search")
def test_a_text_alone_gives_what_it_gives_in_a_long_batch():
    found = sieve.suspects(TEXTS * 101)
    assert [found.get(at, []) for at in range(len(TEXTS) * 101)] == [
        sieve.needles(t) for t in TEXTS
    ] * 101


def test_no_needle_holds_what_stands_between_texts():
    assert not any(b"\n" in needle or b"\0" in needle for needle in sieve.NEEDLES)
    assert all(needle == needle.lower() for needle in sieve.NEEDLES)
