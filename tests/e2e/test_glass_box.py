"""The glass box in a real Chromium: stored markup stays text, nothing leaves the machine, the keyboard suffices.

One daemon, one `memoryd web` and one browser serve the whole module. Every field that is shown holds markup that
would run, were it markup.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from selenium.webdriver.common.keys import Keys

from examples.disposable import Daemon, throwaway_home
from memoryd.client import Client
from memoryd.errors import Pending
from tests.support.glass_box import Browser, chromium, need_chromium, serving
from tests.support.logs import (
    claude,
    claude_assistant,
    claude_call,
    claude_result,
    claude_user,
    dated,
    native_assistant,
    native_call,
    native_owner,
    native_result,
    native_session,
    write,
)

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"
"""Runs as HTML; its parts are named by `_evil` for each field."""
URL = "http://203.0.113.7/leak"
FETCHES = (
    f'<img src="{URL}.png"><link rel=stylesheet href="{URL}.css"><iframe src="{URL}"></iframe>'
)
TURNED = "\u202egnp.exe\u202c \x1b[31m\u200bhidden"
NOTE = "/memories/internal/plan.md"
SESSION = "evening<svg onload=alert(3)>"
PROJECT = "/home/ada/<b>shop</b>"
HOSTED = [
    {"type": "text", "text": "before it"},
    {"type": "server_tool_use", "id": "h1", "name": "web_search", "input": {"query": "rounding"}},
    {"type": "text", "text": "after it"},
]
"""One record, in which the harness itself searched: its label rises between two blocks."""
OUTSIDE = f"made outside {EVIL}\n"
CALLER = {"log": "-hostile/hostile.jsonl", "n": 1}
ERROR = "error TS2304: Cannot find name '<script>alert(4)</script>'"


NETWORK = re.compile("(https?|wss?|ftp):")


class Box(NamedTuple):
    """What a test has: the browser, the daemon, the address of the page, the link."""

    browser: Browser
    daemon: Daemon
    origin: str
    link: str


def logs(state: Path) -> None:
    """Write a session in which every field holds markup, and a build that fails and is mended."""
    write(
        state / "sessions" / "evening.jsonl",
        *dated(
            native_session(SESSION, PROJECT),
            native_owner(f"Prepare the release {EVIL} {FETCHES}"),
            native_assistant(f"The changelog says {EVIL} {TURNED}"),
            native_call("read<i>file", {"path": f"CHANGELOG {EVIL}"}, "1"),
            native_result("1", "pudding", "internal"),
            native_assistant("Internal now <a href='javascript:alert(5)'>click</a>"),
            native_call("fetch_page", {"url": URL}, "2"),
            native_result("2", "pudding", "private", True),
            native_assistant("private and untrusted from here"),
        ),
    )
    build = {"command": f"npm run build '{EVIL}'"}
    for number in range(2):
        write(
            state / "sessions" / f"build-{number}.jsonl",
            *dated(
                native_session(f"build-{number}", PROJECT),
                native_owner("build it, please"),
                native_call("bash", build, "1"),
                native_result("1", ERROR, "internal", ok=False),
                native_call("edit", {"filePath": "src/<b>.ts"}, "2"),
                native_result("2", "done", "internal"),
                native_call("bash", build, "3"),
                native_result("3", "built", "internal"),
                {"kind": "end"},
            ),
        )


def fill(memory: Client) -> None:
    """Make notes with a history, a proposal, a change from outside, and tell a lesson to two sessions."""
    held = f"Deploys are on Wednesdays. {EVIL} {FETCHES}\n"
    memory.call("notes.create", path=NOTE, file_text=held, owner=True, reason=f"because {EVIL}")
    memory.call(
        "notes.str_replace",
        path=NOTE,
        old_str="Wednesdays",
        new_str=f"Thursdays {EVIL}",
        owner=True,
    )
    proposed = {
        "path": NOTE,
        "old_str": "Deploys",
        "new_str": f"Releases {EVIL}",
        "reason": f"a page says {EVIL}",
    }
    with pytest.raises(Pending):
        memory.call("notes.str_replace", **proposed, caller=CALLER)
    with pytest.raises(Pending):
        memory.call(
            "notes.create", path="/memories/internal/new.md", file_text=f"{EVIL}\n", caller=CALLER
        )
    for number in range(2):
        memory.call(
            "block", query=f"{ERROR} npm run build", session=f"later-{number}", project=PROJECT
        )
    rule = {"type": "rule", "content": f"Always {EVIL} {FETCHES}", "project": PROJECT}
    memory.call("lessons.save", **rule, owner=True)
    with pytest.raises(Pending):
        memory.call("lessons.save", **rule | {"content": f"Never {EVIL}"})


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    """A filled daemon, the page, and a browser that was let in by the link."""
    need_chromium()
    with throwaway_home("md-glass-") as home, Daemon(home, user_home=home) as daemon:
        logs(daemon.state)
        write(
            home / ".claude" / "projects" / "-hostile" / "hostile.jsonl",
            *dated(
                claude_user("look"),
                claude_call("WebFetch", {"url": URL}, "1"),
                claude_result("1", "x"),
                claude_assistant("done"),
            ),
        )
        write(
            home / ".claude" / "projects" / "-hosted" / "hosted.jsonl",
            *dated(
                claude_user("search it", sessionId="s2"),
                claude("assistant", HOSTED, sessionId="s2"),
            ),
        )
        daemon.start()
        with daemon.client() as memory:
            memory.call("sync", deadline_ms=120_000, lessons=True)
            fill(memory)
        outside = daemon.state / "notes" / "internal" / "outside.md"
        outside.write_text(OUTSIDE)
        outside.chmod(0o600)
        with serving(daemon.env) as link, chromium() as browser:
            browser.open(link)
            browser.one("#q")
            yield Box(browser, daemon, link.partition("/#")[0], link)


@pytest.fixture
def page(box: Box) -> Iterator[Browser]:
    """The browser, wide and light; whatever the test does, nothing may run, leave or be complained of."""
    browser = box.browser
    browser.resized(1440, 900)
    browser.colours("light")
    browser.go("status")
    yield browser
    assert (
        browser.run(
            "return document.querySelectorAll('main script, main img, main iframe, main link').length"
        )
        == 0
    )
    assert (
        browser.run("return document.querySelectorAll('[style], [onerror], [onload], base').length")
        == 0
    )
    assert [
        url
        for url in browser.requests()
        if NETWORK.match(url) and not url.startswith(f"{box.origin}/")
    ] == []
    assert browser.complaints() == []


def lesson(box: Box, kind: str = "error") -> str:
    with box.daemon.client() as memory:
        return next(
            one["id"] for one in memory.call("lessons.list")["lessons"] if one["type"] == kind
        )


def views(box: Box) -> dict[str, list[str]]:
    """Every view, with words that must stand on it as they were stored."""
    return {
        "search?q=changelog+release": [
            EVIL,
            "\\u202egnp.exe\\u202c",
            "\u241b[31m\\u200bhidden",
            "read<i>file",
        ],
        "search?q=deploys&kinds=note": [EVIL],
        "sessions": [f"Prepare the release {EVIL}"],
        f"sessions/{quote(SESSION, safe='')}?source=native": [
            EVIL,
            FETCHES,
            "read<i>file",
            "<a href='javascript:alert(5)'>click</a>",
            "rises to",
            "fetch_page",
        ],
        "notes": ["things wait for you", f"Never {EVIL}", "made outside"],
        f"notes/{quote(NOTE, safe='')}": [EVIL, FETCHES, f"because {EVIL}"],
        "lessons": ["<script>alert(4)</script>", "Always <img"],
        f"lessons/{lesson(box)}": ["<script>alert(4)</script>", "edit `src/<b>.ts`"],
        f"lessons/{lesson(box, 'rule')}": [EVIL, FETCHES],
        "outcomes": ["no figure yet", "2 tellings"],
        f"gate?q=build+TS2304&project={quote(PROJECT, safe='')}": ["<script>alert(4)</script>"],
        "status": ["What is read", "claude-code"],
    }


def test_stored_markup_stays_text_in_every_view_and_nothing_leaves(box: Box, page: Browser) -> None:
    for view, words in views(box).items():
        page.go(view)
        shown = [" ".join(word.split()) for word in words]
        page.until(lambda words=shown: all(word in " ".join(page.text().split()) for word in words))
        assert (
            page.run(
                "return document.querySelectorAll('main script, main img, main iframe').length"
            )
            == 0
        )


@pytest.mark.parametrize("size", [(360, 740), (1440, 900)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_fits_its_width_in_dark_and_in_light(
    box: Box, page: Browser, size: tuple[int, int], scheme: str
) -> None:
    page.resized(*size)
    page.colours(scheme)
    paper = page.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert paper == ("rgb(248, 246, 242)" if scheme == "light" else "rgb(20, 23, 26)")
    for view in views(box):
        page.go(view)
        wide = page.run(
            "const wide = [...document.querySelectorAll('body *')]"
            ".filter((one) => !one.closest('.wide, .unseen, .skip, .diff'))"
            ".filter((one) => one.getBoundingClientRect().right > innerWidth + 0.5)"
            ".map((one) => one.className || one.tagName);"
            "return [document.documentElement.scrollWidth, innerWidth, wide.slice(0, 5)]"
        )
        assert wide == [size[0], size[0], []], view


def test_texts_stand_out_from_their_ground_in_dark_and_in_light(box: Box, page: Browser) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1, for every text that is shown."""
    for scheme in ("light", "dark"):
        page.colours(scheme)
        for view in views(box):
            page.go(view)
            assert page.run(CONTRAST) == [], (scheme, view)


CONTRAST = """
const parse = (text) => { const found = text.match(/[\\d.]+/g).map(Number);
  if (text.startsWith('color(srgb')) return [found[0] * 255, found[1] * 255, found[2] * 255, found[3] ?? 1];
  return [found[0], found[1], found[2], found[3] ?? 1]; };
const over = (layer, under) => [0, 1, 2].map((at) => layer[at] * layer[3] + under[at] * (1 - layer[3])).concat(1);
const ground = (one) => { const layers = [];
  for (let at = one; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255, 1]); };
const light = (colour) => { const [r, g, b] = colour.map((part) => part / 255)
    .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const poor = [];
for (const one of document.querySelectorAll('body *')) {
  if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
  if (!one.getClientRects().length || one.closest('svg, .unseen, .skip, option, datalist, [aria-hidden]')) continue;
  const under = ground(one);
  const [high, low] = [light(over(parse(getComputedStyle(one).color), under)), light(under)].sort((a, b) => b - a);
  const ratio = (high + 0.05) / (low + 0.05);
  if (ratio < 4.5) poor.push(`${one.tagName}.${one.className} ${one.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
}
return poor.slice(0, 5);
"""


def test_search_follows_the_typing_and_its_filters(box: Box, page: Browser) -> None:
    page.go("search")
    field = page.one("#q")
    field.send_keys("changelog")
    page.says("2 hits")
    for choice in page.all(".choice input"):
        if choice.get_attribute("value") == "owner":
            page.run("arguments[0].click()", choice)
    page.until(lambda: "kinds=owner" in page.driver.current_url)
    page.says("Nothing found")
    page.one("#q").send_keys(Keys.BACKSPACE * 9, "release")
    page.says("1 hit")
    page.one("select[name=max_class]").send_keys("public")
    page.until(lambda: "max_class=public" in page.driver.current_url)
    page.says("1 hit")
    page.driver.refresh()
    page.says("1 hit")
    assert page.one("#q").get_attribute("value") == "release"
    page.go("search?q=deploys&kinds=note")
    page.one(".hit").click()
    page.one(".page")
    assert page.one("h1").text == "internal/plan.md"


def test_a_session_shows_where_its_label_rose_and_why(box: Box, page: Browser) -> None:
    page.go(f"sessions/{quote(SESSION, safe='')}?source=native")
    rises = [" ".join(one.text.split()) for one in page.until(lambda: page.all(".rise"))]
    assert len(rises) == 2
    assert rises[0].startswith("rises to internal because of result of read<i>file at record 4")
    assert rises[1].startswith(
        "rises to private untrusted because of result of fetch_page at record 7"
    )
    rows = [
        (one.get_attribute("class").split()[1], one.text)
        for one in page.all(".record:not(.rise)")
        if "record " in one.text
    ]
    assert [kind for kind, _ in rows] == ["yours", "theirs", "call", "theirs", "call", "theirs"]
    assert "private" in rows[-1][1]
    assert "untrusted" in rows[-1][1]
    page.go("sessions/s2?source=claude-code")
    order = [one.get_attribute("class").split()[-1] for one in page.all(".record")]
    assert order[1:] == ["yours", "theirs", "call", "tone-0", "theirs"]


def test_the_lanes_step_to_the_right(box: Box, page: Browser) -> None:
    page.go(f"sessions/{quote(SESSION, safe='')}?source=native")
    lanes = page.run(
        "return [...document.querySelectorAll('.record')].map((row) =>"
        " [...row.querySelectorAll('.gutter i')]"
        ".findIndex((lane) => lane.matches('.on, .to')))"
    )
    assert lanes == [0, 0, 0, 0, 1, 1, 1, 2, 2]


def test_the_keyboard_suffices(box: Box, page: Browser) -> None:
    page.run("document.activeElement.blur()")
    page.press("/")
    page.until(lambda: page.run("return document.activeElement.id") == "q")
    page.press("release")
    page.says("hit")
    page.press(Keys.ENTER)
    assert "hit" in page.driver.switch_to.active_element.get_attribute("class")
    ring = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert ring == "solid"
    page.press(Keys.ENTER)
    page.until(lambda: page.run("return document.querySelector('main').dataset.view") == "sessions")
    page.until(lambda: page.all(".record.here"))
    page.press("j")
    first = page.driver.switch_to.active_element
    page.press(Keys.ARROW_DOWN)
    assert page.driver.switch_to.active_element != first
    page.press("k")
    assert page.driver.switch_to.active_element == first
    page.press(Keys.ESCAPE)
    page.until(lambda: page.driver.current_url.endswith("#/sessions"))
    page.press("?")
    assert page.one("dialog").is_displayed()
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog"))
    for number, view in enumerate(
        ("search", "sessions", "notes", "lessons", "outcomes", "gate", "status"), 1
    ):
        page.run("document.activeElement.blur()")
        page.press(str(number))
        page.until(
            lambda view=view: page.run("return document.querySelector('main').dataset.view") == view
        )


def test_the_skip_link_is_first_and_leads_to_the_content(box: Box, page: Browser) -> None:
    page.driver.refresh()
    page.one("main h1")
    page.run("document.activeElement.blur(); document.body.focus()")
    page.press(Keys.TAB)
    assert page.driver.switch_to.active_element.get_attribute("id") == "skip"
    page.press(Keys.ENTER)
    assert page.run("return document.activeElement.id") == "main"


def test_every_view_is_named_for_those_who_do_not_see_it(box: Box, page: Browser) -> None:
    for view in views(box):
        page.go(view)
        assert len(page.all("main h1")) == 1, view
        unnamed = page.run(
            "return [...document.querySelectorAll('input, select, button, a')]"
            ".filter((one) => !one.ariaLabel && !one.textContent.trim() && !one.labels?.length)"
            ".map((one) => one.outerHTML)"
        )
        assert unnamed == [], view
        assert (
            page.run("return document.querySelector('nav [aria-current=page]').firstChild.data")
            in page.driver.title
        )


def test_an_edit_shows_what_it_changed_when_it_is_opened(box: Box, page: Browser) -> None:
    page.go(f"notes/{quote(NOTE, safe='')}")
    changes = page.until(lambda: page.all(".history summary"))
    next(one for one in changes if "changed" in one.text and "proposed" not in one.text).click()
    page.says(f"+Deploys are on Thursdays {EVIL}")
    page.says(f"-Deploys are on Wednesdays. {EVIL}")


def test_accepting_says_what_it_does_and_does_nothing_before_the_second_press(
    box: Box, page: Browser
) -> None:
    path = "/memories/internal/accepted.md"
    with box.daemon.client() as memory:
        with pytest.raises(Pending):
            memory.call("notes.create", path=path, file_text=f"{EVIL}\n", caller=CALLER)
        waiting = len(memory.call("notes.pending")["pending"])
    page.go("notes")
    card = next(one for one in page.all(".waits-one") if path in one.text)
    card.find_element("css selector", "button.main").click()
    dialog = page.one("dialog")
    assert f"Accepting makes {path} a trusted note that agents may be shown." in dialog.text
    assert f"+{EVIL}" in dialog.text
    assert page.driver.switch_to.active_element.text == "Cancel"
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog"))
    with box.daemon.client() as memory:
        assert path not in {note["path"] for note in memory.call("notes.list")["notes"]}
    next(one for one in page.all(".waits-one") if path in one.text).find_element(
        "css selector", "button.main"
    ).click()
    page.one("dialog button.main").click()
    page.until(lambda: not page.all("dialog"))
    page.until(lambda: len(page.all(".waits-one")) == waiting - 1)
    with box.daemon.client() as memory:
        assert memory.call("notes.view", path=path, raw=True)["text"] == f"{EVIL}\n"


def test_rejecting_leaves_the_note_and_keeps_the_reason(box: Box, page: Browser) -> None:
    with box.daemon.client() as memory, pytest.raises(Pending) as waits:
        memory.call(
            "notes.str_replace", path=NOTE, old_str="on ", new_str="never on ", caller=CALLER
        )
    txn = waits.value.data["txn"]
    page.go("notes")
    page.until(lambda: any("never on" in one.text for one in page.all(".waits-one")))
    card = next(one for one in page.all(".waits-one") if "never on" in one.text)
    card.find_element("css selector", "button:not(.main)").click()
    page.one("#reason").send_keys("no such rule")
    page.one("dialog button.main").click()
    page.until(lambda: not page.all("dialog"))
    with box.daemon.client() as memory:
        assert txn not in {one["txn"] for one in memory.call("notes.pending")["pending"]}
        assert memory.call("notes.log", limit=1)["entries"][0]["reason"] == "no such rule"
        assert "never on" not in memory.call("notes.view", path=NOTE, raw=True)["text"]


def test_an_outside_edit_is_accepted_as_it_was_shown_or_not_at_all(box: Box, page: Browser) -> None:
    file = box.daemon.state / "notes" / "internal" / "outside.md"
    page.go("notes")
    page.says("made outside")
    card = next(one for one in page.all(".waits-one") if "Made outside" in one.text)
    file.write_text("something else meanwhile\n")
    card.find_element("css selector", "button.main").click()
    page.one("dialog button.main").click()
    page.until(lambda: page.all("dialog [role=alert]"))
    assert page.complaints()[0].endswith("status of 409 ()")
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog"))
    file.write_text(OUTSIDE)


def test_a_verdict_is_given_after_it_was_explained(box: Box, page: Browser) -> None:
    name = lesson(box, "rule")
    page.go(f"lessons/{name}")
    next(one for one in page.all("main button") if one.text == "Useful…").click()
    assert "confidence rises by 0.05" in page.one("dialog").text
    page.one("dialog button.main").click()
    page.until(lambda: not page.all("dialog"))
    page.says("So far 1 for it and 0 against.")
    with box.daemon.client() as memory:
        assert memory.call("lessons.list", id=name)["lessons"][0]["useful"] == 1


def test_outcomes_have_no_figure_before_anything_was_measured(box: Box, page: Browser) -> None:
    page.go("outcomes")
    figures = {
        one.text.split("\n")[0]: one.text.split("\n")[1]
        for one in page.until(lambda: page.all(".figure"))
    }
    assert figures == {"Precision": "no figure yet", "Coverage": "0 %", "Prevented": "0"}
    assert page.all(".curve.precision circle") == page.all(".legend .curve.precision circle")
    assert len(page.all(".drawing .curve.coverage rect")) == 1


def test_nobody_is_let_in_without_the_token(box: Box, page: Browser) -> None:
    page.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    page.open(f"{box.origin}/")
    page.says("The glass box is closed")
    page.run("localStorage.clear()")
    page.one("#token").send_keys("wrong", Keys.ENTER)
    page.says("That is not the token of this start.")
    assert page.run("return localStorage.length") == 0
    page.one("#token").send_keys(box.link, Keys.ENTER)
    page.one("#q")
    assert "token" not in page.driver.current_url
    cookies = page.driver.execute_cdp_cmd("Network.getAllCookies", {})["cookies"]
    told = [(one["httpOnly"], one["sameSite"], one["path"]) for one in cookies]
    assert told == [(True, "Strict", "/api")]
    assert page.run("return document.cookie") == ""
    assert {line.rpartition("status of ")[2] for line in page.complaints()} == {"401 ()"}


def test_another_page_of_this_machine_gets_no_answer(box: Box, page: Browser) -> None:
    """Another port is the same site to a browser, cookie and all: Fetch metadata and the key keep it out."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=box.daemon.home,
    ) as other:
        try:
            assert other.stdout is not None
            port = other.stdout.readline().strip()
            (box.daemon.home / "index.html").write_text("<p>another page")
            page.open(f"http://127.0.0.1:{port}/")
            tried: Any = page.driver.execute_async_script(STEAL, box.origin)
        finally:
            other.terminate()
    page.driver.get_log("browser")
    page.driver.get_log("performance")
    assert tried == ["refused", "refused", "refused"]
    page.open(f"{box.origin}/")
    page.one("#q")


OTHER = """
from http.server import HTTPServer, SimpleHTTPRequestHandler
server = HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler)
print(server.server_port, flush=True)
server.serve_forever()
"""
STEAL = """
const [origin, done] = arguments;
const tried = [
  fetch(`${origin}/api/status`, { credentials: 'include' }),
  fetch(`${origin}/api/reject`, { method: 'POST', credentials: 'include', body: '{}' }),
  fetch(`${origin}/api/status`, { credentials: 'include', headers: { 'x-memoryd-key': 'guessed' } }),
].map((one) => one.then((answer) => answer.status, () => 'refused'));
Promise.all(tried).then(done);
"""
