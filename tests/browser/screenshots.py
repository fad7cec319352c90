"""Pictures of each view, light and dark, for the documentation: `make screenshots` writes them to docs/images.

The best of them are part of the documentation (see .gitignore), the others are there to be looked at.
"""

import base64
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support import browser
from support.sample_session import sample
from windowsill import Session
from windowsill.store import open_store

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SESSION = "mend-flaky-refunds"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A longer session in a larger window, a few minutes old, among others."""
    path = tmp_path_factory.mktemp("pictures") / "sessions.db"
    with closing(open_store(str(path))) as place:
        for number, id in enumerate(("explain-the-cache", "write-the-changelog", "port-to-postgres")):
            sample(place, id, turns=6 + 9 * number, began=time.time() - 86_400 * (3 - number)).close()
        sample(place, SESSION, turns=110, budget=40_000, began=time.time() - 1_500).close()
    return path


@pytest.fixture(scope="module")
def page(driver: browser.webdriver.Chrome, store: Path) -> Iterator[browser.Page]:
    """The page on that session."""
    server = browser.Inspect(store)
    yield browser.Page(driver, server.base)
    driver.get("about:blank")
    server.stop()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures(page: browser.Page, store: Path, theme: str) -> None:
    """Each view is shown and drawn."""
    with closing(open_store(str(store))) as place, Session.open(SESSION, store=place) as session:
        fold = session.folds[-1]
        call = next(each.id for each in session.calls if int(each.id[1:]) > int(fold.id[1:]))
    views = {
        "window": (f"s/{SESSION}/window/{fold.id}", "messages folded"),
        "time": (f"s/{SESSION}/time", "newest first"),
        "call": (f"s/{SESSION}/call/{call}", "First difference"),
        "explain": (f"s/{SESSION}/explain/shorter%20than%20one%20slow%20commit", "Why:"),
        "history": (f"s/{SESSION}/history", "before the first patch"),
        "diff": (f"s/{SESSION}/diff/{call}/now", "became"),
        "state": (f"s/{SESSION}/state", "Policies"),
        "sessions": ("", "port-to-postgres"),
        "engine": ("engine", "model calls"),
    }
    driver = page.driver
    size = {"width": 1360, "height": 850, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    IMAGES.mkdir(exist_ok=True)
    for name, (route, words) in views.items():
        page.go(route)
        page.see(words)
        page.wait(lambda: "Loading" not in page.text() and not page.find("[aria-busy=true]"), "the whole view")
        if name == "window":
            page.press("o")  # close the fold that the link opened: the list says more
        page.wait(
            lambda: driver.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 300, true))")
        )
        taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 88})
        (IMAGES / f"inspect-{name}-{theme}.webp").write_bytes(base64.b64decode(taken["data"]))
