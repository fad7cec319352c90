"""A real browser for the inspector's page, and the server behind it as a user starts it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

LONG = 60.0
"""Seconds to wait for what has to come: a machine may be busy."""

MISSING = (
    None
    if shutil.which("chromedriver") and shutil.which("chromium")
    else "chromium or chromedriver is not installed: apt-get install chromium chromium-driver"
)
PASSING = (NoSuchElementException, StaleElementReferenceException, ElementClickInterceptedException, IndexError)


TAGS = {"button": "button", "link": "a[href]", "textbox": "input"}
LOOK = """
const nameOf = (element) => element.getAttribute("aria-label") || (element.labels && element.labels.length
  ? element.labels[0].textContent : element.innerText) || element.title;
const root = document.querySelector("dialog[open]") || document;
const fits = [...root.querySelectorAll(arguments[0])].filter((each) => each.checkVisibility() && !each.disabled);
return fits.find((each) => nameOf(each) === arguments[1]) || fits.find((each) => nameOf(each).includes(arguments[1]));
"""


def start_browser() -> webdriver.Chrome:
    """A browser without a window that notes its console and its requests."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in (
        "--headless=new",
        "--no-sandbox",  # tests may run as root
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--no-proxy-server",
        "--hide-scrollbars",
        "--window-size=1280,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(LONG)
    return driver


class Inspect:
    """`windowsill inspect` as a process, or another command that serves the page."""

    def __init__(
        self, store: Path, *arguments: str, port: int = 0, command: Sequence[str] = ("inspect", "--no-browser")
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "windowsill", *command, *arguments, "--store", str(store), "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            cwd=store.parent,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"https?://\S+", line)
        assert found, f"no address: {line!r}"
        self.address = found[0]
        self.base = self.address.split("#")[0]
        self.port = int(self.base.rstrip("/").rpartition(":")[2])

    def stop(self) -> None:
        """End it as Ctrl-C does, without waiting for pages that listen."""
        self._process.terminate()
        try:
            self._process.wait(LONG)
        finally:
            self._process.kill()
            assert self._process.stdout is not None
            self._process.stdout.close()


class Page:
    """The page in a browser: asks for what a person sees, by role and text."""

    def __init__(self, driver: webdriver.Chrome, base: str) -> None:
        self.driver = driver
        self.base = base

    def go(self, route: str) -> None:
        """Open an address of the page, as if it had been pasted."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.base}#/{route}")

    def wait(self, condition: Callable[[], Any], what: str = "it") -> Any:
        """Return what the condition returns as soon as it is true."""
        until = time.monotonic() + LONG
        while True:
            try:
                value = condition()
            except PASSING:
                value = None
            if value:
                return value
            if time.monotonic() > until:
                raise AssertionError(f"{what} did not come; the page says: {self.text()[:1500]!r}")
            time.sleep(0.05)

    def text(self) -> str:
        """All words of the page."""
        return str(self.driver.execute_script("return document.body.innerText") or "")

    def see(self, *words: str) -> str:
        """Wait until the page shows all of these words; return its text."""
        return str(self.wait(lambda: all(word in self.text() for word in words) and self.text(), " and ".join(words)))

    def see_no(self, words: str) -> None:
        """Wait until the page no longer shows these words."""
        self.wait(lambda: words not in self.text(), f"the end of {words!r}")

    def find(self, selector: str) -> list[WebElement]:
        """The elements of a CSS selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def role(self, role: str, name: str = "") -> WebElement:
        """Wait for an element that is seen, with this role and with these words in its accessible name."""
        found = self.wait(
            lambda: self.driver.execute_script(LOOK, TAGS.get(role, f"[role={role}]"), name), f"{role} {name!r}"
        )
        assert isinstance(found, WebElement)
        return found

    def click(self, role: str, name: str) -> None:
        """Click on a button or link."""
        self.wait(lambda: self.role(role, name).click() is None, f"a click on {name!r}")

    def press(self, key: str) -> None:
        """Press a key, wherever the focus is."""
        self.driver.switch_to.active_element.send_keys(key)

    def type(self, name: str, text: str) -> None:
        """Fill a field and press Enter."""
        field = self.role("textbox", name)
        field.clear()
        field.send_keys(text, Keys.ENTER)

    def faults(self) -> list[str]:
        """Return what the console complained about."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the last look."""
        events = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
