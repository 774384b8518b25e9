"""Who may open the page, and what the browser may do with it. Pure: headers in, a refusal or nothing out.

A browser stands between its owner and every page that is open in it, so each request is asked four things:

- **Host** names this machine: a foreign name that resolves to loopback (DNS rebinding) is turned away.
- **Sec-Fetch-Site, Origin** say that our own page asks: a page of another site can send a request, and may not.
- **A cookie** that only our answer to the right token has set (HttpOnly, SameSite=Strict).
- **A key** in a header, kept by the page's origin: to a browser all ports of one host are one site, so that
  another local server is sent the cookie. It is not sent the key.

Secrets are compared in constant time, and all are new at each start.
"""

import hmac
import secrets
from collections.abc import Mapping

import msgspec

_ALLOWED = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
POLICY = "; ".join(f"{name} {value}" for name, value in _ALLOWED.items())
"""Nothing from elsewhere, nothing inline, in nobody's frame; no text can become markup (Trusted Types)."""

HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""On every answer, refusals and faults among them."""

KEY_HEADER = "x-memoryd-key"
HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_BYTES = 32


class Keys(msgspec.Struct, frozen=True):
    """The secrets of one start: what opens the page, what the cookie holds, what the page sends beside it."""

    token: str
    cookie: str
    page: str

    @classmethod
    def new(cls) -> "Keys":
        """Draw them."""
        return cls(*(secrets.token_urlsafe(_BYTES) for _ in range(3)))


class Refusal(msgspec.Struct, frozen=True):
    """Why a request is turned away: the status of HTTP, our code, a sentence, what to do."""

    status: int
    code: str
    message: str
    remedy: str


ELSEWHERE = Refusal(
    421, "not_granted", "this page is served to this machine alone", "open the link as it was printed"
)  # fmt: skip
FOREIGN = Refusal(
    403, "not_granted", "another page has sent this request", "use the page that `memoryd web` serves"
)  # fmt: skip
CLOSED = Refusal(
    401, "not_granted", "this browser has not been let in", "open the link that `memoryd web` printed"
)  # fmt: skip


def same(given: str | None, wanted: str) -> bool:
    """Say whether a secret is the right one, in a time that tells nothing of where it differs."""
    return hmac.compare_digest((given or "").encode(), wanted.encode())


def at_home(host: str | None, port: int | None) -> bool:
    """Say whether a Host header names this machine, and `port` unless a Unix socket is forwarded (None)."""
    name, colon, number = (host or "").rpartition(":")
    if not colon or number.endswith("]"):
        name, number = host or "", "80"
    if name.lower() not in HOSTS or not number.isascii() or not number.isdigit():
        return False
    return port is None or number == str(port)


def foreign(headers: Mapping[str, str], *, changes: bool) -> bool:
    """Say whether another page asks. What `changes` something must say that it comes from ours.

    Sec-Fetch-Site cannot be set by scripts; browsers without it still send Origin with each post.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site not in (None, "same-origin"):
        return True
    return (changes or origin is not None) and origin != f"http://{headers.get('host')}"


def refused(
    headers: Mapping[str, str], cookie: str | None, keys: Keys, *, changes: bool
) -> Refusal | None:
    """Return why a question to the daemon is turned away; None: it is let through."""
    if foreign(headers, changes=changes):
        return FOREIGN
    # Both are compared, whatever the first comes to.
    known = same(cookie, keys.cookie) & same(headers.get(KEY_HEADER), keys.page)
    return None if known else CLOSED
