"""Make the pictures of docs/img: the glass box over an invented memory, in Debian's Chromium.

In: `examples/sessions`, and notes and lessons that are made up here. Out: PNG files, none over 150 kB. No real log is
read: the daemon runs on a home of its own, which is deleted. Run it as ``python etc/screens.py`` after changing
the page.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from demo import laid_out, native_samples, samples  # noqa: E402 - found by the line above
from disposable import Daemon, throwaway_home  # noqa: E402 - the same

from memoryd import clock  # noqa: E402 - the same
from memoryd.errors import Pending  # noqa: E402 - the same
from memoryd.labels import Label  # noqa: E402 - the same
from memoryd.lessons import feedback, store  # noqa: E402 - the same
from tests.support.glass_box import Browser, chromium, serving, shot  # noqa: E402 - the same
from tests.support.teaching import DAY, HOUR, OWNER, World  # noqa: E402 - the same

IMAGES = ROOT / "docs" / "img"
MOST_BYTES = 150_000
WIDE, NARROW = (1280, 800), (360, 740)
CODEX = "2026/01/02/rollout-2026-01-02T10-23-20-019b7d3a-5a10-7c41-9f20-6d5e4c3b2a19.jsonl"
SHOP, GARDEN = "/home/ada/shop", "/home/ada/garden"
FAILURES = (
    (
        "npm run build",
        "src/basket.ts(41,7): error TS2345: Argument of type 'string' is not assignable to 'Money'.",
        "src/basket.ts",
    ),
    (
        "pytest -q tests/test_totals.py",
        "FAILED tests/test_totals.py::test_cent - AssertionError: 19.99 != 20.00",
        "shop/totals.py",
    ),
    (
        "cargo test",
        "error[E0433]: failed to resolve: use of undeclared crate or module `jitter`",
        "Cargo.toml",
    ),
    (
        "python water.py --dry-run",
        "ModuleNotFoundError: No module named 'gpiozero'",
        "requirements.txt",
    ),
)
NOTES = {
    "public/style.md": """\
---
title: House style
---
Plain words, short sentences, no exclamation marks.
""",
    "internal/MEMORY.md": """\
Deploys happen on Wednesdays from 19:00; Ada starts them.
Totals are rounded once, at the end of the basket.
""",
    "internal/deploy.md": """\
---
title: Deploys
description: when, by whom, and what to watch
---
1. Tag the release.
2. Deploy on Wednesday evening.
3. Watch the error rate for ten minutes.
""",
    "private/suppliers.md": """\
---
description: who delivers what, and when they answer
---
The mill answers on Mondays.
""",
}


def taught(home: Path) -> None:
    """Fill the lessons with three weeks in which builds fail, are mended, and somebody is told."""
    connection = store.opened(home / store.NAME)
    world = World(connection)
    world.now = clock.now_ms() - 24 * DAY
    for day in range(22):
        command, error, file = FAILURES[(day * 3) % 4]
        project, session = (GARDEN if file == "requirements.txt" else SHOP), f"day-{day:02}"
        label = Label(1, day % 7 == 4)
        told = {"command": command, "project": project, "label": label}
        world.later(DAY - HOUR)
        if day % 5 != 3:
            world.fail(session, error, **told)
        if day > 3:
            world.block(
                session, f"{command} fails: {error}", project=project, label=Label(1, False)
            )
        if day % 5 != 3:
            world.later(HOUR // 12)
            world.call(
                session, tool="edit", args={"filePath": file}, ok=True, project=project, label=label
            )
            if day % 6 == 5:
                world.fail(session, error, **told)
        world.succeed(session, **told)
        world.later(HOUR // 2)
        world.idle(session, ended=day < 21)
    first = connection.execute(
        "SELECT id FROM lesson WHERE type = 'pattern' ORDER BY row LIMIT 1"
    ).get
    if first is not None:
        feedback.give(connection, OWNER, str(first), "useful", now=world.now)
    connection.close()


def noted(daemon: Daemon) -> None:
    """Keep notes, edit one, and let an untrusted session propose two edits."""
    with daemon.client() as memory:
        for path, text in NOTES.items():
            memory.call("notes.create", path=f"/memories/{path}", file_text=text, owner=True)
        memory.call(
            "notes.str_replace",
            path="/memories/internal/deploy.md",
            old_str="Wednesday evening",
            new_str="Wednesday from 19:00, never on a Friday",
            owner=True,
            reason="the Friday of the missing cent",
        )
        proposals = (
            (
                "notes.str_replace",
                {
                    "path": "/memories/internal/deploy.md",
                    "old_str": "ten minutes",
                    "new_str": "an hour",
                    "reason": "the payment provider's page says so",
                },
            ),
            (
                "notes.create",
                {
                    "path": "/memories/internal/retries.md",
                    "file_text": "Payments: full jitter, a cap of ten seconds, five tries.\n",
                    "reason": "settled in this session",
                },
            ),
        )
        for method, args in proposals:
            try:
                memory.call(method, **args, caller={"log": CODEX, "n": 1})
            except Pending:
                continue


def pictures(lesson: str) -> Iterator[tuple[str, tuple[int, int], str, str]]:
    """Yield name, size, colours and view of each picture; one shows a `lesson`."""
    session = "sessions/release-evening?source=native"
    yield "search", WIDE, "light", "search?q=missing+cent"
    yield "session", WIDE, "light", session
    yield "session-narrow", NARROW, "dark", session
    yield "notes", WIDE, "light", "notes"
    yield "lesson", WIDE, "light", f"lessons/{lesson}"
    yield "outcomes", WIDE, "dark", "outcomes"
    yield "gate", WIDE, "light", f"gate?q=cargo+test+fails&project={quote(SHOP, safe='')}"


def take(browser: Browser, lesson: str, to: Path) -> list[Path]:
    """Take every picture; return the files."""
    made = []
    for name, size, scheme, view in pictures(lesson):
        browser.resized(*size)
        browser.colours(scheme)
        browser.go("status")
        browser.go(view)
        if name == "search":
            browser.one(".hit")
        browser.run("document.activeElement.blur()")
        shot(browser, to / f"{name}.png")
        made.append(to / f"{name}.png")
    return made


def main(arguments: list[str]) -> int:
    """Make the pictures, and say which are too large."""
    to = Path(arguments[0]) if arguments else IMAGES
    with ExitStack() as opened:
        home = opened.enter_context(throwaway_home("md-screens-"))
        config = laid_out(samples(), home / "logs")
        daemon = opened.enter_context(Daemon(home, config, user_home=home))
        source = f'[[source]]\nkind = "native"\npath = "{daemon.state}/sessions"\n'
        (home / "memoryd.toml").open("a").write(source)
        native_samples(daemon.state)
        taught(daemon.state)
        daemon.start()
        with daemon.client() as memory:
            memory.call("sync", deadline_ms=60_000)
            listed = memory.call("lessons.list")["lessons"]
        noted(daemon)
        told = max(listed, key=lambda one: sum(one["told"].values()))
        with serving(daemon.env) as link, chromium() as browser:
            browser.open(link)
            browser.one("#q")
            made = take(browser, told["id"], to)
    large = [path.name for path in made if path.stat().st_size > MOST_BYTES]
    print(
        f"screens: {len(made)} pictures, {'too large: ' + ', '.join(large) if large else 'none too large'}"
    )
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
