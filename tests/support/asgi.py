"""An ASGI application asked in this process: one request in, its answer out; no socket, no server.

In: method, path, headers, body. Out: `Told`. The asker stays until it is answered, or leaves when it is told to.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import trio


class Told(msgspec.Struct):
    """An answer: its status, its headers (names in lower case, values of one name joined by a line end), its bytes."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


async def asked(
    app: Any, method: str, path: str, headers: Mapping[str, str], body: bytes = b"",
    *, leaves: trio.Event | None = None,
) -> Told:  # fmt: skip
    """Return what the application answers. With `leaves`, the asker goes away once that is set."""
    route, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.1"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": route, "raw_path": route.encode(), "query_string": query.encode(),
        "root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 7707),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
    }  # fmt: skip
    given = [{"type": "http.request", "body": body, "more_body": False}]
    told = Told(0, {}, b"")

    async def receive() -> dict[str, Any]:
        if given:
            return given.pop()
        await (trio.Event() if leaves is None else leaves).wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        if message["type"] == "http.response.start":
            told.status = message["status"]
            for name, value in message["headers"]:
                key, text = name.decode().lower(), value.decode()
                told.headers[key] = f"{told.headers[key]}\n{text}" if key in told.headers else text
        else:
            told.body += message.get("body", b"")

    await app(scope, receive, send)
    return told
