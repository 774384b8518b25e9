"""The application over a daemon that only writes down what it is asked: routes, refusals, headers, leaving."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio

from memoryd import errors
from memoryd.web import asking, guard
from memoryd.web.app import STATUS, Door, application, pages
from memoryd.web.guard import KEY_HEADER, Keys
from tests.support.asgi import Told, asked

DOCS = Path(__file__).parents[3] / "docs"
HOST = "127.0.0.1:7707"
SAFE = {"host": HOST, "sec-fetch-site": "same-origin"}
KEYS = Keys("the-token", "the-cookie", "the-key")
LET_IN = SAFE | {
    "cookie": "memoryd-7707=the-cookie",
    KEY_HEADER: "the-key",
    "origin": f"http://{HOST}",
}
GETS = [
    "/",
    *(f"/page/{name}" for name in pages()),
    "/api/hello",
    *(f"/api/{name}" for name in asking.QUESTIONS),
]
POSTS = ["/open", *(f"/api/{name}" for name in asking.ACTS)]


class Daemon:
    """Answers every method with its own name, or with what `raises` says."""

    def __init__(self) -> None:
        self.server = {
            "server": "memoryd",
            "classes": ["public"],
            "clearance": "public",
            "methods": ["recall"],
            "versions": {"protocol": 1},
            "tools": ["*"],
            "limits": {},
        }
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.raises: Exception | None = None
        self.stays = False
        self.left = trio.Event()
        self.there = trio.Event()

    async def call(self, method: str, /, **args: Any) -> Any:
        self.asked.append((method, args))
        self.there.set()
        await trio.lowlevel.checkpoint()
        if self.raises is not None:
            raise self.raises
        if self.stays:
            try:
                await trio.sleep_forever()
            finally:
                self.left.set()
        return {"method": method}


@pytest.fixture
def daemon() -> Daemon:
    return Daemon()


@pytest.fixture
def app(daemon: Daemon) -> Any:
    return application(daemon, Door(KEYS, 7707))


def checked(told: Told) -> Told:
    """Every answer has every header of ours, once, and no other origin in it."""
    for name, value in guard.HEADERS.items():
        assert told.headers[name] == value, name
    assert "access-control-allow-origin" not in told.headers
    assert "server" not in told.headers
    return told


async def get(app: Any, path: str, headers: Mapping[str, str] = LET_IN) -> Told:
    return checked(await asked(app, "GET", path, headers))


async def post(app: Any, path: str, body: object, headers: Mapping[str, str] = LET_IN) -> Told:
    return checked(await asked(app, "POST", path, headers, json.dumps(body).encode()))


@pytest.mark.parametrize("path", ["/", *(f"/page/{name}" for name in pages())])
async def test_the_page_itself_is_open_to_this_machine(app: Any, daemon: Daemon, path: str) -> None:
    told = await get(app, path, {"host": HOST, "sec-fetch-site": "none"})
    assert told.status == 200
    kind = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    assert told.headers["content-type"].startswith(
        kind[(path if "." in path else "/index.html").rpartition(".")[2]]
    )
    assert daemon.asked == []


@pytest.mark.parametrize("host", ["evil.example:7707", "127.0.0.1:80", ""])
async def test_a_foreign_host_is_told_nothing(app: Any, daemon: Daemon, host: str) -> None:
    for path in (*GETS, *POSTS, "/nowhere"):
        told = await get(app, path, LET_IN | {"host": host})
        assert (told.status, told.json["code"]) == (421, "not_granted"), path
    assert daemon.asked == []


async def test_without_a_host_nothing_is_told(app: Any) -> None:
    headers = {name: value for name, value in LET_IN.items() if name != "host"}
    assert (await get(app, "/", headers)).status == 421


@pytest.mark.parametrize(
    ("without", "status"),
    [
        ({"cookie": ""}, 401),
        ({"cookie": "memoryd-7708=the-cookie"}, 401),
        ({"cookie": "memoryd-7707=the-token"}, 401),
        ({KEY_HEADER: ""}, 401),
        ({KEY_HEADER: "the-cookie"}, 401),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"origin": "http://127.0.0.1:3000"}, 403),
    ],
)
async def test_questions_need_cookie_key_and_our_own_page(
    app: Any, daemon: Daemon, without: dict[str, str], status: int
) -> None:
    for path in (path for path in GETS if path.startswith("/api/")):
        told = await get(app, path, LET_IN | without)
        assert told.status == status, path
        assert set(told.json) == {"code", "message", "remedy"}
    assert daemon.asked == []


@pytest.mark.parametrize(
    ("without", "status"),
    [
        ({"cookie": ""}, 401),
        ({KEY_HEADER: "x"}, 401),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
)
async def test_acts_need_all_of_it_and_an_origin(
    app: Any, daemon: Daemon, without: dict[str, str], status: int
) -> None:
    bare = {name: value for name, value in LET_IN.items() if name != "origin"}
    for path in POSTS[1:]:
        assert (await post(app, path, {}, LET_IN | without)).status == status, path
        assert (await post(app, path, {}, bare)).status == 403, path
    assert daemon.asked == []


async def test_the_token_sets_a_cookie_that_no_script_reads_and_gives_the_key(app: Any) -> None:
    told = await post(app, "/open", {"token": "the-token"}, SAFE | {"origin": f"http://{HOST}"})
    assert (told.status, told.json) == (200, {"key": "the-key"})
    cookie = told.headers["set-cookie"]
    assert cookie.startswith("memoryd-7707=the-cookie;")
    assert {part.strip().lower() for part in cookie.split(";")[1:]} == {
        "httponly",
        "path=/api",
        "samesite=strict",
    }


@pytest.mark.parametrize(
    "body", [{"token": "The-token"}, {"token": ""}, {}, {"token": "the-cookie"}]
)
async def test_a_wrong_token_gets_nothing(app: Any, body: object) -> None:
    told = await post(app, "/open", body, SAFE | {"origin": f"http://{HOST}"})
    assert told.status == 401
    assert "set-cookie" not in told.headers
    assert "the-" not in told.body.decode()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"token": 1}', b"\xff", b"the-token"])
async def test_a_body_that_is_no_object_of_words_is_refused(app: Any, body: bytes) -> None:
    for path in POSTS:
        told = checked(await asked(app, "POST", path, LET_IN, body))
        assert told.status == 400, path


async def test_the_token_is_taken_from_our_own_page_alone(app: Any) -> None:
    for foreign in (
        {"origin": "http://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"origin": ""},
    ):
        headers = SAFE | {"origin": f"http://{HOST}"} | foreign
        told = await post(app, "/open", {"token": "the-token"}, headers)
        assert told.status == 403
        assert "set-cookie" not in told.headers


@pytest.mark.parametrize("name", sorted(asking.QUESTIONS))
async def test_every_question_is_its_method_with_the_arguments_given(
    app: Any, daemon: Daemon, name: str
) -> None:
    question = asking.QUESTIONS[name]
    query = "&".join(
        f"{key}={'3' if make is asking.number else 'w%20%3Cb%3E'}"
        for key, make in question.takes.items()
    )
    told = await get(app, f"/api/{name}?{query}")
    assert (told.status, told.json) == (200, {"method": question.method})
    wanted = {
        key: 3 if make is asking.number else ["w <b>"] if make is asking.words else "w <b>"
        for key, make in question.takes.items()
    }
    assert daemon.asked == [(question.method, {**wanted, **question.fixed})]


@pytest.mark.parametrize("name", sorted(asking.ACTS))
async def test_every_act_is_its_method_with_the_words_given(
    app: Any, daemon: Daemon, name: str
) -> None:
    act = asking.ACTS[name]
    given = dict.fromkeys(sorted(act.takes), "x")
    assert (await post(app, f"/api/{name}", given)).json == {"method": act.method}
    assert daemon.asked == [(act.method, given)]


async def test_only_three_methods_that_change_something_can_be_reached(app: Any) -> None:
    reading = {question.method for question in asking.QUESTIONS.values()}
    acting = {act.method for act in asking.ACTS.values()}
    assert acting == {"notes.accept", "notes.reject", "lessons.feedback"}
    assert reading == {
        "status",
        "recall",
        "get",
        "sessions",
        "projects",
        "records",
        "explain",
        "notes.list",
        "notes.view",
        "notes.log",
        "notes.diff",
        "notes.pending",
        "lessons.list",
        "lessons.ledger",
        "lessons.days",
        "lessons.audit",
        "lessons.trace",
    }


@pytest.mark.parametrize("argument", ["force", "owner", "caller", "label", "deadline_ms"])
async def test_nobody_passes_an_argument_that_the_page_does_not_have(
    app: Any, daemon: Daemon, argument: str
) -> None:
    for name in asking.ACTS:
        assert (await post(app, f"/api/{name}", {argument: "x"})).status == 400
    for name in asking.QUESTIONS:
        assert (await get(app, f"/api/{name}?{argument}=1")).status == 400
    assert daemon.asked == []


async def test_an_argument_left_empty_is_left_out_and_a_list_may_repeat(
    app: Any, daemon: Daemon
) -> None:
    await get(app, "/api/recall?query=x&project=&kinds=owner&kinds=note")
    assert daemon.asked == [("recall", {"query": "x", "kinds": ["owner", "note"]})]
    assert (await get(app, "/api/recall?query=x&limit=ten")).status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_what_only_reads_takes_no_other_method(app: Any, daemon: Daemon, method: str) -> None:
    for path in GETS:
        told = checked(await asked(app, method, path, LET_IN))
        assert (told.status, told.json["code"]) == (405, "not_found"), path
        assert "GET" in told.headers["allow"]
    assert daemon.asked == []


async def test_what_changes_something_is_not_done_by_a_link(app: Any, daemon: Daemon) -> None:
    for path in POSTS:
        assert (await get(app, path)).status == 405, path
    assert daemon.asked == []


@pytest.mark.parametrize(
    "path",
    ["/nowhere", "/page/", "/page/../guard.py", "/page/%2e%2e/guard.py", "/api", "/api/dump"],
)
async def test_there_are_no_other_pages(app: Any, path: str) -> None:
    told = await get(app, path)
    assert told.status == 404
    assert told.json["code"] == "not_found"


@pytest.mark.parametrize("error", errors.ALL)
async def test_what_the_daemon_refuses_is_told_with_its_remedy(
    app: Any, daemon: Daemon, error: Any
) -> None:
    daemon.raises = error("no", remedy="do this", check="label")
    told = await get(app, "/api/status")
    assert told.status == STATUS.get(error.code, 503)
    assert told.json == {"code": error.code, "message": "no", "remedy": "do this", "check": "label"}


async def test_a_fault_of_ours_tells_nothing_of_where(app: Any, daemon: Daemon) -> None:
    daemon.raises = RuntimeError("stored words")
    with structlog.testing.capture_logs() as logged:
        told = await get(app, "/api/status")
    assert told.status == 500
    assert told.json["code"] == "internal"
    assert "stored words" not in told.body.decode()
    assert [one["event"] for one in logged] == ["a fault while answering the page"]


async def test_a_browser_that_leaves_takes_its_question_back(app: Any, daemon: Daemon) -> None:
    daemon.stays = True
    leaves = trio.Event()
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: asked(app, "GET", "/api/status", LET_IN, leaves=leaves))
            await daemon.there.wait()
            leaves.set()
            await daemon.left.wait()


async def test_a_request_beyond_its_size_is_not_read_to_the_end(app: Any, daemon: Daemon) -> None:
    told = await post(app, "/api/feedback", {"note": "x" * 70_000})
    assert told.status == 413
    assert (await post(app, "/open", {"token": "x" * 70_000})).status == 413
    assert daemon.asked == []


async def test_a_body_that_does_not_come_is_not_waited_for_for_ever(
    app: Any, autojump_clock: Any
) -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(name.encode(), value.encode()) for name, value in LET_IN.items()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/open",
        "query_string": b"",
        "headers": headers,
    }
    with trio.fail_after(60):
        await app(scope, trio.sleep_forever, send)
    assert sent[0]["status"] == 400


async def test_a_websocket_is_closed_at_once(app: Any) -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app({"type": "websocket", "path": "/", "headers": []}, trio.sleep_forever, send)
    assert sent == [{"type": "websocket.close"}]


async def test_hello_tells_the_page_what_it_may_show(app: Any) -> None:
    told = (await get(app, "/api/hello")).json
    assert told == {
        "classes": ["public"],
        "clearance": "public",
        "methods": ["recall"],
        "versions": {"protocol": 1},
    }


def test_the_page_names_no_other_place_and_writes_no_markup() -> None:
    whole = {name: text.decode() for name, text in pages().items()}
    forbidden = (
        r"innerHTML",
        r"outerHTML",
        r"insertAdjacent",
        r"document\.write",
        r"\beval\b",
        r"new Function",
        r"DOMParser",
        r"createContextualFragment",
        r"javascript:",
        r"srcdoc",
        r"\bimport\(",
        r"XMLHttpRequest",
        r"WebSocket",
        r"sendBeacon",
        r"setAttribute\(.style",
    )
    for name, text in whole.items():
        places = set(re.findall(r"https?://[^\s\"'`)]+", text))
        assert places <= {"http://www.w3.org/2000/svg"}, name
        assert not [word for word in forbidden if re.search(word, text)], name
        assert "url(" not in text, name
    html = whole["index.html"]
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)", html)
    assert set(re.findall(r'(?:src|href)="([^"]+)"', html)) <= {
        f"/page/{name}" for name in whole
    } | {"#main", "#/search"}


def test_views_and_keys_are_documented_and_pictures_are_small() -> None:
    told = (DOCS / "web.md").read_text("utf-8")
    whole = {name: text.decode() for name, text in pages().items()}
    views = re.findall(r'name: "(\w+)", show:', whole["main.js"])
    assert len(views) == 7
    assert [name for name in views if f"| {name} |" not in told] == []
    keys = re.findall(r'\["([^"]+)", "[^"]+"\]', whole["keys.js"])
    assert {"/", "Enter", "Esc", "?"} <= set(keys)
    assert [
        key for name in keys for key in re.split(r"[ ,·…]+", name) if f"`{key}`" not in told
    ] == []
    pictures = list((DOCS / "img").glob("*.png"))
    assert {picture.name for picture in pictures if picture.stat().st_size > 150_000} == set()
    assert [picture.name for picture in pictures if f"img/{picture.name}" not in told] == []


def test_every_module_that_the_page_imports_is_there() -> None:
    whole = pages()
    for name, text in whole.items():
        for imported in re.findall(r'from "\./([\w.]+)"', text.decode()):
            assert imported in whole, (name, imported)
