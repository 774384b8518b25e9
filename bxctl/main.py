"""bxctl: ask memoryd from a shell.

In: command-line words and the environment. Out: text or JSON on standard output, talk on standard error,
and the exit code: 0 done; 1 nothing found, or a check failed; 2 usage; 69 memoryd unreachable; 70 internal
fault; 74 input or output failed; 75 busy; 77 refused; 78 configuration; 130 interrupted.

A plain command line is read by `bxctl.fast`; whatever that does not take goes to click (`bxctl.shell`).
Nobody sees a traceback unless BXCTL_DEBUG is set.
"""

import os
import sys
from collections.abc import Mapping, Sequence

from bxctl import fast, output
from bxctl.context import Context
from bxctl.grammar import Call
from memoryd.errors import Internal, IOFailed, MemorydError


def main() -> None:
    """Run the command that the process was started with, and exit."""
    sys.exit(run(sys.argv[1:], os.environ))


def run(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Do what `argv` says and return the exit code; every failure is one line on standard error."""
    try:
        return _done(argv, env)
    except output.ReaderGone:
        output.drop(sys.stdout)
        return 0
    except KeyboardInterrupt:
        output.drop(sys.stdout)
        output.say("interrupted")
        return 130
    except MemorydError as error:
        return _failed(error, json="--json" in argv)
    except OSError as error:
        failed = IOFailed(f"input or output failed: {error.strerror}", remedy="see what it says")
        return _failed(failed, json="--json" in argv)
    except Exception as error:  # the last net: a person gets one line, and a way to see more
        if env.get("BXCTL_DEBUG"):
            raise
        fault = Internal(
            f"a fault in bxctl itself ({type(error).__name__})",
            remedy="BXCTL_DEBUG=1 shows where; please report it",
        )
        return _failed(fault, json="--json" in argv)


def _done(argv: Sequence[str], env: Mapping[str, str]) -> int:
    call = None if "_BXCTL_COMPLETE" in env else fast.parse(argv)
    if call is None:
        from bxctl import shell

        parsed = shell.parse(argv)
        code = parsed if isinstance(parsed, int) else _ran(parsed, env)
    else:
        code = _ran(call, env)
    output.flush()
    return code


def _ran(call: Call, env: Mapping[str, str]) -> int:
    out = output.Output(env, json=call.common["json"], color=call.common["color"] or "auto")
    return call.command.run(Context(env, out, call.common["socket"]), **call.values)


def _failed(error: MemorydError, *, json: bool) -> int:
    """Print what went wrong, after the data that was written before it; return its exit code."""
    try:
        output.flush()
    except (MemorydError, output.ReaderGone):
        output.drop(sys.stdout)
    if json:
        told = {"code": error.code, "message": error.message, "remedy": error.remedy}
        output.tell(output.encoded("error", 1, {**told, "exit": error.exit_code}))
    else:
        output.say(str(error))
    return error.exit_code
