"""`memoryd web` in a process of its own, and Debian's Chromium on it, watched for whatever leaves the machine.

In: a daemon's environment. Out: the printed link; a browser whose requests, console and dialogs can be asked for.
Nothing is downloaded: browser and driver are named by their paths.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PATIENCE_S = 120
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-default-apps --disable-extensions --hide-scrollbars"
    " --disable-dev-shm-usage --no-default-browser-check --force-color-profile=srgb --lang=en-GB"
)
SHOWN = (
    "const main = document.querySelector('main');"
    "return Number(main.dataset.shown ?? 0) > arguments[0] && !main.hasAttribute('aria-busy')"
)
"""Whether a view was drawn since."""


def need_chromium() -> None:
    """Skip where there is no Chromium; in CI, where one is installed, fail instead."""
    if CHROMIUM and DRIVER:
        return
    why = "Chromium is not here: apt-get install chromium chromium-driver"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


@contextmanager
def serving(env: Mapping[str, str], *args: str) -> Iterator[str]:
    """Run `memoryd web` on a free port (or as `args` say) and yield the link that it prints."""
    command = [sys.executable, "-m", "memoryd", "web", *(args or ("--port", "0"))]
    with subprocess.Popen(
        command, env=dict(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = iter(process.stdout.readline, "")
        link = next((line.strip() for line in lines if "#token=" in line), "")
        try:
            assert link, process.stderr.read()
            yield link
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


class Browser:
    """One Chromium with one window."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, link: str) -> None:
        """Go to an address. Of an open page only the hash may change, so the page is left first."""
        self.driver.get("about:blank")
        self.driver.get(link)

    def go(self, view: str) -> None:
        """Follow the address to a view, such as ``search?q=cent``, and wait for it."""
        before = self.run(
            "const { shown } = document.querySelector('main').dataset; const to = arguments[0];"
            "if (location.hash === to) window.dispatchEvent(new Event('hashchange'));"
            "else location.hash = to; return Number(shown ?? 0)",
            f"#/{view}",
        )
        self.until(lambda: self.run(SHOWN, before))

    def until(self, holds: Callable[[], Any]) -> Any:
        """Return what `holds` returns, once that is something."""
        try:
            return WebDriverWait(self.driver, PATIENCE_S, 0.03).until(lambda _: holds())
        except TimeoutException:
            raise AssertionError(f"{self.text()}\n{self.complaints()}") from None

    def all(self, css: str) -> list[Any]:
        """Return every element of a selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css: str) -> Any:
        """Return the first visible element of a selector, waiting for it."""
        return self.until(lambda: next((it for it in self.all(css) if it.is_displayed()), None))

    def text(self) -> str:
        """Return all that is shown."""
        return str(self.driver.find_element(By.TAG_NAME, "body").text)

    def says(self, words: str) -> bool:
        """Wait until the page shows some words."""
        return bool(self.until(lambda: words in self.text()))

    def press(self, keys: str) -> None:
        """Press keys where the focus is."""
        self.driver.switch_to.active_element.send_keys(keys)

    def run(self, script: str, *args: Any) -> Any:
        """Run a script and return what it returns."""
        return self.driver.execute_script(script, *args)

    def requests(self) -> list[str]:
        """Return the address of every request since the last time it was asked."""
        told = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        return [
            one["params"]["request"]["url"] for one in told if one["method"] == "Network.requestWillBeSent"
        ]  # fmt: skip

    def complaints(self) -> list[str]:
        """Return what the console says, violations of the policy among it, since the last time."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def resized(self, width: int, height: int) -> None:
        """Give the page a size, whatever a window's least width is."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def colours(self, scheme: str) -> None:
        """Prefer ``dark`` or ``light``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def _started(folder: str, tries: int = 4) -> webdriver.Chrome:
    """Start Chromium; its driver's own patience is short for a machine that does much else, so try again."""
    options = Options()
    options.binary_location = str(CHROMIUM)
    for flag in (*_FLAGS.split(), f"--user-data-dir={folder}/profile{tries}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    env = {**os.environ, "HOME": folder, "SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
    try:
        return webdriver.Chrome(options, Service(str(DRIVER), env=env))
    except WebDriverException:
        if tries == 1:
            raise
    return _started(folder, tries - 1)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a Chromium on an empty profile; end it."""
    with tempfile.TemporaryDirectory(prefix="md-chromium-") as folder:
        driver = _started(folder)
        try:
            yield Browser(driver)
        finally:
            driver.quit()


def shot(browser: Browser, path: Path) -> None:
    """Write what the window shows as a PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    browser.driver.save_screenshot(str(path))
