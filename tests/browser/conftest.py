"""A browser and a server for all tests; after each one, the console is clean and no request has left the machine."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from support import browser
from support.sample_session import sample
from windowsill.store import open_store

ROOT = Path(__file__).parents[2]
LOCAL = ("http://127.0.0.1:", "data:", "about:", "file:", "blob:", "chrome")


@pytest.fixture(scope="session")
def driver() -> Iterator[browser.webdriver.Chrome]:
    """The browser."""
    if browser.MISSING:
        pytest.skip(browser.MISSING)
    if not (ROOT / "src/windowsill/inspector/static/vendor/packages.json").is_file():
        pytest.skip("the libraries of the page are missing: python hatch_build.py fetches them with npm")
    found = browser.start_browser()
    yield found
    found.quit()


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the sample session, and what it looked like when it was made."""
    path = tmp_path_factory.mktemp("inspected") / "sessions.db"
    with closing(open_store(str(path))) as store:
        sample(store).close()
    return path


@pytest.fixture(scope="session")
def server(place: Path) -> Iterator[browser.Inspect]:
    """The server of that store."""
    found = browser.Inspect(place)
    yield found
    found.stop()


@pytest.fixture
def allowed() -> list[str]:
    """Words of complaints that a test provokes."""
    return []


@pytest.fixture
def page(driver: browser.webdriver.Chrome, server: browser.Inspect, allowed: list[str]) -> Iterator[browser.Page]:
    """The page, watched."""
    found = browser.Page(driver, server.base)
    found.faults()
    found.requests()
    yield found
    faults = [each for each in found.faults() if not any(words in each for words in allowed)]
    away = [url for url in found.requests() if not url.startswith(LOCAL)]
    while len(driver.window_handles) > 1:
        driver.switch_to.window(driver.window_handles[-1])
        driver.close()
    driver.switch_to.window(driver.window_handles[0])
    assert not faults
    assert not away


@pytest.fixture
def fresh(place: Path, page: browser.Page, request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    """A session of one's own beside the sample, and the page on it."""
    with closing(open_store(str(place))) as store, sample(store, request.node.name, turns=16) as session:
        yield SimpleNamespace(session=session, page=page, place=place, route=f"s/{session.id}")
        page.driver.get("about:blank")
