"""Hostile transcripts, very long sessions, damage, a token, the proxy, a file without a server, missing libraries."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from support import browser
from windowsill import Session
from windowsill.store import open_store

pytestmark = pytest.mark.end_to_end
MANY = 100_000
HOSTILE = "<script>window.taken = 1</script><img src=x onerror='window.taken = 2'>{{7*7}}</textarea>"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def own(tmp_path: Path, page: browser.Page):
    """A store of one's own, a server that is started on request, and the page on it."""
    servers = []

    def serve(*arguments: str) -> browser.Page:
        servers.append(browser.Inspect(tmp_path / "own.db", *arguments))
        return browser.Page(page.driver, servers[-1].base)

    yield SimpleNamespace(path=tmp_path / "own.db", serve=serve, servers=servers)
    page.driver.get("about:blank")
    for server in servers:
        server.stop()


def test_a_hostile_transcript_is_only_text(own: SimpleNamespace) -> None:
    """Scripts do not run, hidden characters are visible, and a line of a megabyte is read in slices."""
    with (
        closing(open_store(str(own.path))) as store,
        Session.open("evil", store=store, model="claude-sonnet-4-5") as session,
    ):
        session.add(
            {"role": "user", "content": HOSTILE + " invoice\u202egnp.exe\u202c nul:\x00 bell:\x07 esc:\x1b[31m"}
        )
        session.add(
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": HOSTILE, "input": {HOSTILE: 1}}]}
        )
        session.add(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x" * 1_000_000}]}
        )
        session.compose_sync(system=HOSTILE)
        call = session.calls[-1].id
    page = own.serve()
    page.go("s/evil/window")
    page.see("<script>window.taken = 1</script>", "U+202E", "␀", "␇", "␛", "Show more")
    page.click("button", "Show more (996,000 characters left)")
    page.see("Show more (930,464 characters left)")
    for route in (
        f"s/evil/call/{call}",
        "s/evil/explain/script",
        "s/evil/history",
        "s/evil/state",
        "s/evil/message/m1",
        "",
    ):
        page.go(route)
        page.see("evil")
        page.wait(lambda: "Loading" not in page.text(), "the view")
        assert page.driver.execute_script("return [window.taken, document.images.length, document.scripts.length]") == [
            None,
            0,
            1,
        ]


def test_a_hundred_thousand_messages_are_a_handful_of_rows(own: SimpleNamespace) -> None:
    """Only what is seen is in the document, wherever the list stands; a link reaches the middle, a key the end."""
    with (
        closing(open_store(str(own.path))) as store,
        Session.open("long", store=store, model="claude-sonnet-4-5") as session,
    ):
        for start in range(0, MANY, 10_000):
            roles = ("user", "assistant")
            session.extend(
                [{"role": roles[n % 2], "content": f"message number {n}"} for n in range(start, start + 10_000)]
            )
        middle = list(session.view.items)[MANY // 2].id
    page = own.serve()
    page.go("s/long/window")
    page.see("100,000 items", f"message number {MANY - 1}")

    def rows() -> int:
        return len(page.find("[role=article]"))

    assert 3 < rows() < 80
    page.press("g")
    page.see("message number 0")
    page.go(f"s/long/window/{middle}")
    page.see(f"message number {MANY // 2}")
    assert rows() < 80
    pane = page.role("feed", "Items")

    def near(share: float) -> bool:
        return abs(int(pane.text.split("message number ")[1].split()[0]) / MANY - share) < 0.05

    for share in (0.1, 0.35, 0.9):
        page.driver.execute_script("arguments[0].scrollTop = arguments[0].scrollHeight * arguments[1]", pane, share)
        page.wait(partial(near, share), f"rows at {share}")
        assert rows() < 80


def test_a_damaged_session_says_what_is_wrong_and_what_to_do(own: SimpleNamespace, allowed: list[str]) -> None:
    """The page names the damage and the remedy, and the other sessions can still be read."""
    allowed.append("Failed to load resource")
    with closing(open_store(str(own.path))) as store:
        for id in ("broken", "sound"):
            with Session.open(id, store=store, model="claude-sonnet-4-5") as session:
                session.add(f"This is the {id} one.")
                session.add({"role": "assistant", "content": "Yes."})
    with sqlite3.connect(own.path) as database:
        key = database.execute("SELECT key FROM session WHERE id = 'broken'").fetchone()[0]
        database.execute("UPDATE entry SET hash = 7 WHERE session = ?", [key])
        database.execute("DELETE FROM snapshot WHERE session = ?", [key])
    page = own.serve()
    page.go("s/broken/window")
    page.see("This session is damaged")
    page.go("s/sound/window")
    page.see("This is the sound one.")
    page.go("s/nobody/window")
    page.see("Not found")


def test_beyond_loopback_a_token_is_needed_once(own: SimpleNamespace, allowed: list[str]) -> None:
    """Without the token the page says so; with it in the address it opens, and the address forgets it."""
    allowed.append("401")
    with (
        closing(open_store(str(own.path))) as store,
        Session.open("mine", store=store, model="claude-sonnet-4-5") as session,
    ):
        session.add("hello")
    page = own.serve("--token", "correct-horse-battery-staple")
    page.go("")
    page.see("A token is needed")
    page.driver.get("about:blank")
    page.driver.get(own.servers[0].address)
    page.see("mine")
    assert "correct-horse" not in page.driver.current_url


def test_the_proxy_serves_the_same_page(own: SimpleNamespace, page: browser.Page) -> None:
    """Below the proxy's own path everything is found, with the proxy's health beside it."""
    with (
        closing(open_store(str(own.path))) as store,
        Session.open("mine", store=store, model="claude-sonnet-4-5") as session,
    ):
        session.add("Said through the proxy.")
    own.servers.append(browser.Inspect(own.path, command=("proxy",)))
    behind = browser.Page(page.driver, f"{own.servers[0].base.rstrip('/')}/__windowsill/inspect/")
    behind.go("s/mine/window")
    behind.see("live", "Said through the proxy.")
    behind.go("engine")
    behind.see("Proxy ok", "No faults.", "anthropic")


def test_an_exported_file_is_the_page_without_a_server(page: browser.Page, place: Path, tmp_path: Path) -> None:
    """One file shows window, calls and history from disk, offers no changes, and asks nobody for anything."""
    file = tmp_path / "session.html"
    command = [sys.executable, "-m", "windowsill", "inspect", "mend-flaky-refunds", "--store", str(place)]
    subprocess.run([*command, "--html", str(file)], check=True, capture_output=True)
    page.driver.get(file.as_uri())
    page.see("exported file", "in the window", "Good. Now show me the fifty runs.")
    assert "Unfold what fits" not in page.text()
    for view, words in {
        "time": "read from the cache",
        "history": "before the first patch",
        "state": "Policies",
    }.items():
        page.driver.execute_script(f"location.hash = '#/s/mend-flaky-refunds/{view}'")
        page.see(words)
    page.driver.execute_script("location.hash = '#/s/mend-flaky-refunds/explain/lease'")
    page.see("Not in this file")
    assert [url for url in page.requests() if url.startswith("http")] == []


def test_without_its_libraries_the_page_says_so(page: browser.Page, allowed: list[str]) -> None:
    """What is missing and how to get it is said in words, although no script runs."""
    allowed.append("")
    page.driver.get((ROOT / "src/windowsill/inspector/static/index.html").as_uri())
    page.see("they are fetched by npm when", "Install npm, then install Windowsill again")
