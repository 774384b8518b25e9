"""The rebuild's own process.

In: a `Ticket` (MessagePack) on standard input. Out: the file that the ticket names, and lines of JSON on
standard output: `Progress`, at last `Built` or `Failed`. If nobody reads them any more, the process ends and
removes what it made, as it does on SIGTERM.
"""

import os
import signal
import sys
from pathlib import Path
from types import FrameType

import msgspec

from memoryd.errors import MemorydError
from memoryd.index import building, swap
from memoryd.index.process import Failed, Said, Ticket
from memoryd.index.settings import from_config

_NICE = 5


def main() -> int:
    """Do what the ticket says and return the exit code."""
    os.nice(_NICE)  # whoever asks the old index meanwhile comes first
    signal.signal(signal.SIGTERM, _end)
    asked = sys.stdin.buffer.read()
    if not asked:
        return 1  # whoever started this has ended before it could say what to do
    ticket = msgspec.msgpack.decode(asked, type=Ticket)
    temp = Path(ticket.temp)
    try:
        settings = from_config(ticket.config, Path(ticket.home), ticket.key, ticket.env)
        _say(building.build(temp, settings, _say))
    except BrokenPipeError:
        swap.remove(temp)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing to flush into
        return 1
    except MemorydError as error:
        swap.remove(temp)
        _say(Failed(error.code, error.message, error.remedy))
        return error.exit_code
    except BaseException:
        swap.remove(temp)
        raise
    return 0


def _say(said: Said) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    sys.stdout.buffer.flush()


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
