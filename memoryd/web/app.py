"""The application: a page, a door, and a few questions that are passed on to the daemon.

In: HTTP requests (ASGI). Out: the files of the page; answers of the daemon as JSON, refusals as
``{code, message, remedy}``. Every answer, whoever made it, carries the headers of `guard`. When a browser goes
away, what it has asked is taken back at the daemon too.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from importlib.resources import files
from typing import Any, Protocol

import msgspec
import structlog
import trio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memoryd.errors import BadRequest, MemorydError, TooLarge
from memoryd.web import asking, guard
from memoryd.web.guard import Keys, Refusal

MOST_BODY = 64 * 1024
BODY_S = 10
"""How long a request's body is waited for."""
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
STATUS: Mapping[str, int] = {
    "bad_message": 400,
    "bad_request": 400,
    "unknown_method": 404,
    "not_granted": 403,
    "not_found": 404,
    "conflict": 409,
    "check_failed": 422,
    "pending": 409,
    "too_large": 413,
    "rate": 429,
    "timeout": 504,
    "internal": 500,
    "disk_full": 507,
    "io_error": 500,
}
"""The status of HTTP for each code of `memoryd.errors`; any other is 503: ask again."""

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = structlog.get_logger()


class Memory(Protocol):
    """The daemon, as the page sees it."""

    server: dict[str, Any]

    async def call(self, method: str, /, **args: Any) -> Any:
        """Return the answer. Raises: MemorydError."""


class Door(msgspec.Struct, frozen=True):
    """Where the page is served: the secrets of this start, and the port; None: a Unix socket, forwarded by any."""

    keys: Keys
    port: int | None

    @property
    def cookie(self) -> str:
        """Return the cookie's name. Browsers keep no cookies apart by port, so the port is in it."""
        return f"memoryd-{self.port or 'unix'}"


def application(memory: Memory, door: Door) -> App:
    """Return the whole of it, guarded."""
    routes = [
        Route("/", _file("index.html", pages())),
        *(Route(f"/page/{name}", _file(name, pages())) for name in pages()),
        Route("/open", partial(_open, door), methods=["POST"]),
        Route("/api/hello", _guarded(door, partial(_hello, memory))),
        *(
            Route(f"/api/{name}", _guarded(door, _reads(memory, question)))
            for name, question in asking.QUESTIONS.items()
        ),
        *(
            Route(f"/api/{name}", _guarded(door, _acts(memory, act)), methods=["POST"])
            for name, act in asking.ACTS.items()
        ),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _missed, Exception: _fell})
    return _wrapped(app, door)


def pages() -> dict[str, bytes]:
    """Return the files of the page by name."""
    folder = files("memoryd.web") / "page"
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir(), key=lambda f: f.name)}


def _wrapped(app: App, door: Door) -> App:
    """Return `app` with our headers on every answer, behind the check of Host, and without loose ends."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        begun = False

        async def out(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = _with_ours(message.get("headers", ()))
            await send(message)

        try:
            if guard.at_home(Request(scope).headers.get("host"), door.port):
                await app(scope, receive, out)
            else:
                await _refusal(guard.ELSEWHERE)(scope, receive, out)
        except Exception:  # the last net: a browser is told nothing of where we failed
            log.exception("a fault while answering the page")
            if not begun:
                await _fault()(scope, receive, out)

    return run


def _with_ours(headers: Any) -> list[tuple[bytes, bytes]]:
    theirs = [pair for pair in headers if pair[0].decode("latin-1").lower() not in guard.HEADERS]
    return theirs + [(name.encode(), value.encode()) for name, value in guard.HEADERS.items()]


Endpoint = Callable[[Request], Awaitable[Response]]


def _file(name: str, held: Mapping[str, bytes]) -> Endpoint:
    content, kind = held[name], TYPES[name.rpartition(".")[2]]

    async def run(_request: Request) -> Response:
        return Response(content, media_type=kind)

    return run


async def _open(door: Door, request: Request) -> Response:
    """Let a browser in that has the token: set the cookie, and give the page its key."""
    if guard.foreign(request.headers, changes=True):
        return _refusal(guard.FOREIGN)
    try:
        given = msgspec.json.decode(await _body(request), type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _error(BadRequest("the body is no JSON object of words", remedy="use the page"))
    except MemorydError as error:
        return _error(error)
    if not guard.same(given.get("token"), door.keys.token):
        return _refusal(guard.CLOSED)
    answer = _json({"key": door.keys.page})
    answer.set_cookie(
        door.cookie, door.keys.cookie, path="/api", httponly=True, samesite="strict"
    )  # fmt: skip
    return answer


def _guarded(door: Door, endpoint: Endpoint) -> Endpoint:
    """Return `endpoint` behind the cookie, the key and, where it changes something, the origin."""

    async def run(request: Request) -> Response:
        changes = request.method not in ("GET", "HEAD")
        cookie = request.cookies.get(door.cookie)
        refusal = guard.refused(request.headers, cookie, door.keys, changes=changes)
        return await endpoint(request) if refusal is None else _refusal(refusal)

    return run


async def _hello(memory: Memory, _request: Request) -> Response:
    """Tell what the daemon's socket is."""
    told = memory.server
    names = ("classes", "clearance", "methods", "versions")
    return _json({name: told[name] for name in names})


def _reads(memory: Memory, question: asking.Question) -> Endpoint:
    async def run(request: Request) -> Response:
        try:
            args = asking.asked(question, request.query_params.multi_items())
        except MemorydError as error:
            return _error(error)
        return await _told(request, memory, question.method, args)

    return run


def _acts(memory: Memory, act: asking.Act) -> Endpoint:
    async def run(request: Request) -> Response:
        try:
            args = asking.acted(act, await _body(request))
        except MemorydError as error:
            return _error(error)
        return await _told(request, memory, act.method, args)

    return run


async def _told(request: Request, memory: Memory, method: str, args: asking.Args) -> Response:
    """Return the daemon's answer; a browser that goes away meanwhile takes its question back."""
    answer = Response(status_code=503)
    async with trio.open_nursery() as nursery:

        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

        nursery.start_soon(gone)
        try:
            answer = _json(await memory.call(method, **args))
        except MemorydError as error:
            answer = _error(error)
        nursery.cancel_scope.cancel()
    return answer


async def _body(request: Request) -> bytes:
    """Return the body. Raises: TooLarge; BadRequest where it does not come, or not to its end."""
    body, more = b"", True
    with trio.move_on_after(BODY_S):
        while more:
            message = await request.receive()
            body += message.get("body", b"")
            if len(body) > MOST_BODY:
                raise TooLarge("the request is too large", remedy="shorten it")
            more = message.get("more_body", False)
            if message["type"] == "http.disconnect":
                break
        else:
            return body
    raise BadRequest("the request has no end", remedy="use the page")


async def _missed(_request: Request, error: Exception) -> Response:
    """Answer what no route takes: there is no such page, or it takes another method."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    kept = error.headers if isinstance(error, HTTPException) else None
    known = "this page takes another method" if status == 405 else "there is no such page"
    answer = _refusal(Refusal(status, "not_found", known, "start at /"))
    answer.headers.update(kept or {})
    return answer


async def _fell(_request: Request, _error: Exception) -> Response:
    """Answer in place of what failed; Starlette raises the fault again behind it, for `_wrapped` to write down."""
    return _fault()


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _refusal(why: Refusal) -> Response:
    told = {"code": why.code, "message": why.message, "remedy": why.remedy}
    return _json(told, why.status)


def _error(error: MemorydError) -> Response:
    told = {"code": error.code, "message": error.message, "remedy": error.remedy, **error.data}
    return _json(told, STATUS.get(error.code, 503))


def _fault() -> Response:
    return _refusal(
        Refusal(500, "internal", "a fault in memoryd web", "see its log, and please report it")
    )
