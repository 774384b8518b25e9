"""Kills in the middle of an edit, a full disk, another user, planted links, a curious reader, a crowd.

In: a daemon of `disposable`. Out: one sentence a check, or `Failed`; `Skipped` where the machine does not let
it be tried.
"""

import math
import os
import random
import shutil
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgpack
from disposable import READY_S, Daemon

from device.store import Skipped, append, dump, expect, found, shell, sync
from memoryd.errors import MemorydError

EDIT_KILLS = 50
CROWD = 100
LONGEST_EDIT_S = 0.15
HIDDEN = 1_000
RUNS = 200
CHANCE = 0.01
TRIES = 3
"""One in a hundred samples of equal things differs this much; three in a row are one in a million."""
NOBODY = 65_534
DISK_MIB = 24
_NOTE = "/memories/internal/count.md"


def c3_kill_in_edit(daemon: Daemon) -> str:
    """Killed in the middle of edits, fifty times: the journal verifies and no acknowledged edit is lost."""
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    with daemon.client() as owner:
        owner.call("notes.create", path=_NOTE, file_text="edit 0\n", owner=True)
    done = [0]
    for number in range(EDIT_KILLS):
        editor = threading.Thread(target=_edit_on, args=(daemon, done))
        editor.start()
        time.sleep(rng.random() * LONGEST_EDIT_S)
        daemon.kill()
        editor.join(READY_S)
        daemon.start()
        with daemon.client() as owner:
            faults = owner.call("notes.verify")["faults"]
            expect(not faults, f"kill {number + 1}: {faults[:1]} (seed {seed})")
            text = owner.call("notes.view", path=_NOTE, raw=True)["text"]
        now = int(text.split()[1])
        expect(now in (done[0], done[0] + 1), f"kill {number + 1}: edit {done[0]} is lost ({now})")
        done[0] = now
    return f"{EDIT_KILLS} kills in {done[0]} edits: none that was acknowledged is lost"


def _edit_on(daemon: Daemon, done: list[int]) -> None:
    """Count up in the note until the daemon is gone; `done` holds the last number that was acknowledged."""
    try:
        with daemon.client(timeout=READY_S) as owner:
            while True:
                now = done[0]
                edit = {"old_str": f"edit {now}\n", "new_str": f"edit {now + 1}\n"}
                owner.call("notes.str_replace", path=_NOTE, owner=True, **edit)
                done[0] = now + 1
    except MemorydError:
        return


def c5_full_disk(daemon: Daemon) -> str:
    """On a full disk an edit is refused and leaves no half note; with room again all goes on."""
    with _small_disk(daemon.home / "disk") as disk, Daemon(disk) as small:
        small.env["HOME"] = str(disk)
        small.start()
        path, note = "/memories/internal/full.md", disk / "state/notes/internal/full.md"
        filler = disk / "filler"
        with filler.open("wb") as file:
            room = shutil.disk_usage(disk).free
            file.write(b"\0" * max(0, room - 8_192))
            file.flush()
        code = ""
        with small.client() as owner:
            try:
                owner.call(
                    "notes.create", path=path, file_text="a line of it\n" * 5_000, owner=True
                )
            except MemorydError as error:
                code = error.code
            expect(code in ("disk_full", "io_error"), f"an edit on a full disk is told {code!r}")
            expect(not note.exists(), "half a note was left")
        filler.unlink()
        small.stop()
        small.start()
        with small.client() as owner:
            owner.call("notes.create", path=path, file_text="y\n", owner=True)
            expect(not owner.call("notes.verify")["faults"], "the journal does not verify")
        expect(note.read_text() == "y\n", "the note is not what was written")
    return f"an edit is refused ({code}), no half note, and goes on once there is room"


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    """Yield a folder on a small file system of its own. Raises: Skipped where none can be mounted."""
    folder.mkdir(mode=0o700)
    options = f"size={DISK_MIB}m,mode=0700"
    mount = shutil.which("mount")
    done = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False
    )
    if not done or done.returncode:
        raise Skipped("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=False, capture_output=True)


_CONNECT = """
import socket, sys
peer = socket.socket(socket.AF_UNIX)
try:
    peer.connect(sys.argv[1])
    peer.sendall(bytes.fromhex(sys.argv[2]))
    print(len(peer.recv(4096)))
except OSError as error:
    print(type(error).__name__)
"""


def c6_another_uid(daemon: Daemon) -> str:
    """Another uid does not get in: not through the folder, and where that is open not through the socket."""
    setpriv, python = shutil.which("setpriv"), shutil.which("python3", path="/usr/bin:/bin")
    if os.geteuid() != 0 or setpriv is None or python is None:
        raise Skipped("only root can become another user")
    path = daemon.state / "run" / "memoryd.sock"
    hello = msgpack.packb([0, 1, "status", []]).hex()
    argv = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", python, "-c"]

    def tried() -> str:
        done = subprocess.run(
            [*argv, _CONNECT, path, hello],
            capture_output=True,
            text=True,
            check=False,
            timeout=READY_S,
        )
        return done.stdout.strip()

    shut = tried()
    expect(shut == "PermissionError", f"a folder that is shut lets another uid in: {shut}")
    opened = [path, *(above for above in path.parents if above.is_relative_to(daemon.home))]
    modes = {each: each.stat().st_mode & 0o777 for each in opened}
    try:
        for each in opened:
            each.chmod(0o777)
        said = tried()
    finally:
        for each, mode in modes.items():
            each.chmod(mode)
    expect(said in ("0", "ConnectionResetError", "BrokenPipeError"), f"another uid is told {said}")
    return "another uid is refused by the folder, and by the socket where the folder stands open"


def c7_links(daemon: Daemon) -> str:
    """Links, second names and pipes among notes and logs are refused, and nothing behind them is touched."""
    outside = daemon.home / "outside.md"
    outside.write_text("the quokka outside\n")
    notes, logs = daemon.state / "notes" / "internal", daemon.state / "sessions"
    (notes / "link.md").symlink_to(outside)
    os.link(outside, notes / "second.md")
    os.mkfifo(notes / "pipe.md", 0o600)
    (notes / "folder").symlink_to(daemon.home)
    (logs / "link.jsonl").symlink_to(outside)
    os.mkfifo(logs / "pipe.jsonl", 0o600)
    with daemon.client() as owner:
        for name in ("link.md", "second.md", "pipe.md", "folder/outside.md"):
            path = f"/memories/internal/{name}"
            for method, more in (("notes.view", {}), ("notes.delete", {"owner": True})):
                try:
                    owner.call(method, path=path, **more)
                except MemorydError:
                    continue
                expect(False, f"{method} goes through {name}")
    sync(daemon)
    with daemon.client() as owner:
        expect(not found(owner, "quokka"), "what lies behind a link was indexed")
    expect(outside.read_text() == "the quokka outside\n", "what lies behind a link was changed")
    for path in (*(notes / n for n in ("link.md", "second.md", "pipe.md", "folder")),):
        path.unlink()
    for name in ("link.jsonl", "pipe.jsonl"):
        (logs / name).unlink()
    outside.unlink()
    return "links, second names and pipes refused; nothing behind them read or changed"


def c8_leak_probe(daemon: Daemon) -> str:
    """A low reader's answer, byte for byte and in time, does not tell of rows above its clearance."""
    seen = '{"kind": "owner", "text": "a %s in the harbour, and nothing else"}\n'
    high = daemon.state / "sessions" / "high.jsonl"
    append(daemon.state / "sessions" / "low.jsonl", [seen % "axolotl", seen % "pangolin"])
    append(
        high,
        [
            '{"kind": "tool_call", "call": "c", "tool": "t", "args": {}}\n',
            '{"kind": "tool_result", "call": "c", "ok": true, "class": "private", "untrusted": false}\n',
        ],
    )
    sync(daemon)
    question = msgpack.packb([0, 1, "recall", [{"query": "axolotl"}]])
    before = _answered(daemon, question)
    hidden = '{"kind": "assistant", "text": "axolotl %d in the harbour"}\n'
    append(high, [hidden % n for n in range(HIDDEN)])
    sync(daemon)
    with daemon.client() as owner:
        expect(found(owner, "axolotl") > 1, "the hidden rows are not there")
    expect(
        _answered(daemon, question) == before, "the answer changed with rows above the clearance"
    )
    for _ in range(TRIES):
        taken = _timed(daemon, "axolotl", "pangolin")
        chance = _same_by_chance(*taken)
        if chance > CHANCE:
            break
    expect(
        chance > CHANCE, f"{HIDDEN} hidden rows show in the time an answer takes (p {chance:.4f})"
    )
    middle = [1_000 * statistics.median(times) for times in taken]
    return (
        f"the same {len(before)} bytes with {HIDDEN} hidden rows; "
        f"p50 {middle[0]:.2f} and {middle[1]:.2f} ms, p {chance:.2f}"
    )


def _timed(daemon: Daemon, *words: str) -> list[list[float]]:
    """Return the seconds of `RUNS` answers for each word, in turn: a slow machine slows down all."""
    taken: list[list[float]] = [[] for _ in words]
    with daemon.client("agent") as agent:
        for _ in range(RUNS):
            for word, times in zip(words, taken, strict=True):
                began = time.perf_counter()
                agent.call("recall", query=word)
                times.append(time.perf_counter() - began)
    return taken


def _answered(daemon: Daemon, question: bytes) -> bytes:
    """Return the bytes with which the agent's socket answers one request."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(READY_S)
        peer.connect(str(daemon.state / "run" / "agent.sock"))
        peer.sendall(question)
        unpacker, answer = msgpack.Unpacker(), b""
        while True:
            piece = peer.recv(65_536)
            expect(piece, "the agent's socket closed without an answer")
            answer += piece
            unpacker.feed(piece)
            for _ in unpacker:
                return answer


def _same_by_chance(one: list[float], two: list[float]) -> float:
    """Return how likely two samples of one distribution differ this much (Mann-Whitney, two-sided)."""
    ranked = sorted([(figure, 0) for figure in one] + [(figure, 1) for figure in two])
    ranks = sum(rank for rank, (_, which) in enumerate(ranked, 1) if which == 0)
    n, m = len(one), len(two)
    spread = math.sqrt(n * m * (n + m + 1) / 12)
    distance = abs(ranks - n * (n + m + 1) / 2) / spread
    return math.erfc(distance / math.sqrt(2))


def c10_rewritten(daemon: Daemon) -> str:
    """Logs that are truncated, replaced, moved and grown while it runs: the index is that of a rebuild."""
    logs = daemon.state / "sessions"
    line = '{"kind": "owner", "text": "%s"}\n'
    for name in ("cut", "replaced", "moved"):
        append(logs / f"{name}.jsonl", [line % f"the {name} wombat {n}" for n in range(50)])
    sync(daemon)
    os.truncate(logs / "cut.jsonl", 200)
    fresh = logs / "fresh"
    append(fresh, [line % "the fresh wombat"])
    fresh.rename(logs / "replaced.jsonl")
    (logs / "moved.jsonl").rename(logs / "gone-there.jsonl")
    append(logs / "gone-there.jsonl", [line % "one more wombat"])
    grown = dump(daemon)
    shell(daemon, "reindex")
    expect(grown == dump(daemon), "the index is not that of a rebuild")
    with daemon.client() as owner:
        expect(found(owner, "fresh wombat"), "the replaced log is not read")
    return f"{len(grown):,} rows equal a rebuild"


def c12_many_clients(daemon: Daemon) -> str:
    """A hundred clients, one of which never reads: the others are answered, or told at once to come back."""
    lazy = socket.socket(socket.AF_UNIX)
    lazy.connect(str(daemon.state / "run" / "memoryd.sock"))
    question = msgpack.packb([0, 1, "recall", [{"query": "crane", "limit": 100, "text": True}]])
    lazy.sendall(question * 20)
    told: list[str] = []
    crowd = [threading.Thread(target=_ask_once, args=(daemon, told)) for _ in range(CROWD)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(2 * READY_S)
    lazy.close()
    odd = set(told) - {"answered", "busy", "unavailable"}
    expect(len(told) == CROWD and not odd, f"{CROWD - len(told)} hang, others are told {odd}")
    answered = told.count("answered")
    expect(answered >= CROWD // 2, f"only {answered} are answered")
    return f"{answered} answered beside one that never reads, {CROWD - answered} told to come back"


def _ask_once(daemon: Daemon, told: list[str]) -> None:
    try:
        with daemon.client(timeout=READY_S) as memory:
            memory.call("recall", query="crane")
        told.append("answered")
    except MemorydError as error:
        told.append(error.code)


def c15_tainted(daemon: Daemon) -> str:
    """A session that was shown private things writes no public note, whatever it claims."""
    lines = [
        '{"kind": "session", "session": "tainted", "project": "/harbour"}\n',
        '{"kind": "tool_call", "call": "r", "tool": "recall", "args": {"query": "x"}}\n',
        '{"kind": "tool_result", "call": "r", "ok": true, "class": "private", "untrusted": false}\n',
    ]
    append(daemon.state / "sessions" / "tainted.jsonl", lines)
    note = {"file_text": "what I was shown\n", "caller": {"log": "tainted.jsonl", "n": 3}}
    with daemon.client("loop") as agent:
        code = check = ""
        try:
            agent.call("notes.create", path="/memories/public/leak.md", **note)
        except MemorydError as error:
            code, check = error.code, str(error.data.get("check"))
        expect(
            (code, check) == ("check_failed", "label"), f"a write down is told {code!r} {check!r}"
        )
        agent.call("notes.create", path="/memories/private/kept.md", **note)
    expect(
        not (daemon.state / "notes/public/leak.md").exists(), "the note was written all the same"
    )
    return "its public note is refused (label), its private one written"
