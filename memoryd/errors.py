"""What can go wrong, for a program (code), a shell (exit code) and a person (message, remedy).

::

    MemorydError                 code           exit
      |- BadMessage              bad_message      70   bytes that are no request
      |- BadRequest              bad_request       2   a request that asks wrongly
      |   `- ConfigError         bad_request      78   a configuration that cannot be used
      |- UnknownMethod           unknown_method    2
      |- NotGranted              not_granted      77   this socket may not
      |- NotFound                not_found         1   absent, hidden or held: one answer
      |- Conflict                conflict          1   the world moved on: ask again
      |- CheckFailed             check_failed      1   `data["check"]` names the check
      |- Pending                 pending           1   waits for the owner
      |- TooLarge                too_large         2
      |- RateLimited             rate             75
      |- Behind                  behind           75   the caller's log is not read that far
      |- Busy                    busy             75
      |- IndexBusy               index_busy       75   another process holds the index open
      |- TimedOut                timeout          75
      |- Cancelled               cancelled        75
      |- Unavailable             unavailable      69   nobody answers, or nothing to answer from
      |- DiskFull                disk_full        74
      |- IOFailed                io_error         74
      |- ShuttingDown            shutting_down    75
      `- Internal                internal         70   a fault of ours

The tree is shallow on purpose: whoever catches one of these decides by its code. `remedy` is one sentence
that says what to do next; messages and remedies never hold stored text.
"""

from typing import ClassVar


class MemorydError(Exception):
    """The root: something memoryd refuses or cannot do, said so that a person can act."""

    code: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, remedy: str = "", **data: object) -> None:
        """Keep the one-line `message`, its `remedy` and machine-readable `data` (JSON-like values)."""
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.data: dict[str, object] = data

    def __str__(self) -> str:
        """Return the message and, where there is one, what to do about it."""
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


class BadMessage(MemorydError):
    """The peer sent bytes that are no MessagePack-RPC message."""

    code, exit_code = "bad_message", 70


class BadRequest(MemorydError):
    """The request names an argument, a value or a form that does not exist."""

    code, exit_code = "bad_request", 2


class ConfigError(BadRequest):
    """The configuration cannot be used; names file, line, key and what would be right."""

    exit_code = 78


class UnknownMethod(MemorydError):
    """No method of that name."""

    code, exit_code = "unknown_method", 2


class NotGranted(MemorydError):
    """The socket asked through does not grant this."""

    code, exit_code = "not_granted", 77


class NotFound(MemorydError):
    """Absent, hidden or held back: one answer for all three."""

    code, exit_code = "not_found", 1


class Conflict(MemorydError):
    """What the request was based on has changed."""

    code, exit_code = "conflict", 1


class CheckFailed(MemorydError):
    """An edit failed a check; `data["check"]` names it."""

    code, exit_code = "check_failed", 1


class Pending(MemorydError):
    """Accepted, but waiting for the owner's decision."""

    code, exit_code = "pending", 1


class TooLarge(MemorydError):
    """A request, an answer or a file beyond its limit."""

    code, exit_code = "too_large", 2


class RateLimited(MemorydError):
    """Too many of these in too short a time."""

    code, exit_code = "rate", 75


class Behind(MemorydError):
    """The log named by the caller is not yet read as far as the caller says."""

    code, exit_code = "behind", 75


class Busy(MemorydError):
    """All places are taken; `data["retry_after_ms"]` says when to try again."""

    code, exit_code = "busy", 75


class IndexBusy(MemorydError):
    """Another process holds the index open, so it cannot be replaced."""

    code, exit_code = "index_busy", 75


class TimedOut(MemorydError):
    """The deadline passed first."""

    code, exit_code = "timeout", 75


class Cancelled(MemorydError):
    """The client took the request back."""

    code, exit_code = "cancelled", 75


class Unavailable(MemorydError):
    """Nobody answers, or there is no index yet to answer from."""

    code, exit_code = "unavailable", 69


class DiskFull(MemorydError):
    """No room left on the device."""

    code, exit_code = "disk_full", 74


class IOFailed(MemorydError):
    """Reading or writing failed."""

    code, exit_code = "io_error", 74


class ShuttingDown(MemorydError):
    """The daemon is stopping and takes no new requests."""

    code, exit_code = "shutting_down", 75


class Internal(MemorydError):
    """A fault of memoryd itself; `data["error_id"]` finds it in the daemon's log."""

    code, exit_code = "internal", 70


ALL: tuple[type[MemorydError], ...] = (
    BadMessage,
    BadRequest,
    UnknownMethod,
    NotGranted,
    NotFound,
    Conflict,
    CheckFailed,
    Pending,
    TooLarge,
    RateLimited,
    Behind,
    Busy,
    IndexBusy,
    TimedOut,
    Cancelled,
    Unavailable,
    DiskFull,
    IOFailed,
    ShuttingDown,
    Internal,
)

BY_CODE: dict[str, type[MemorydError]] = {error.code: error for error in ALL}
"""Wire code to class; ConfigError never travels, so `bad_request` is BadRequest."""
