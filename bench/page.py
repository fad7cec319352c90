"""How soon the inspector's page shows a session, short and very long, in a real browser."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from bench.measure import show

SHORT, LONG = 1_000, 100_000
RUNS = 7
# Notes when the first message is in the document and painted, in milliseconds since the page was asked for.
WATCH = """
const look = () => document.querySelector("[role=article] .text")
  ? requestAnimationFrame(() => { window.seen = performance.now(); }) : requestAnimationFrame(look);
look();
"""


def _fill(path: Path) -> None:
    from windowsill import Session
    from windowsill.store import open_store

    roles = ("user", "assistant")
    with closing(open_store(str(path))) as store:
        for count in (SHORT, LONG):
            with Session.open(f"n{count}", store=store, model="claude-sonnet-4-5") as session:
                for start in range(0, count, SHORT):
                    numbers = range(start, start + SHORT)
                    session.extend([{"role": roles[n % 2], "content": f"message number {n}"} for n in numbers])


def run(*, quick: bool) -> None:
    """Print the figures."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support import browser

    if browser.MISSING:
        print(f"not measured: {browser.MISSING}")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        _fill(path)
        server = browser.Inspect(path)
        driver = browser.start_browser()
        try:
            driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
            page = browser.Page(driver, server.base)
            seconds: dict[int, list[float]] = {SHORT: [], LONG: []}
            for number in range(3 if quick else RUNS + 1):
                for count in (SHORT, LONG):
                    page.go(f"s/n{count}/window")
                    taken = page.wait(lambda: driver.execute_script("return window.seen"), "a message") / 1000
                    if number:
                        seconds[count].append(taken)
                    else:
                        print(f"first opened by the server, {count:,} messages: {taken:.2f} s")
                    time.sleep(0.2)
        finally:
            driver.quit()
            server.stop()
    short, long = (min(seconds[count]) for count in (SHORT, LONG))  # noise only ever adds
    show(f"first message of {LONG:,} on the page", f"{long:.2f} s", "< 1 s", met=long < 1)
    show(f"{LONG:,} messages against {SHORT:,}", f"{long / short:.2f} x", "<= 1.5", met=long / short <= 1.5)
