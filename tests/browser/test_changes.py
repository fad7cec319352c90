"""What a click changes, and how the page follows what others write."""

import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from support import browser
from support.sample_session import Provider, work
from support.sessions import opened
from windowsill import Session
from windowsill.store import open_store

pytestmark = pytest.mark.end_to_end


def test_a_fold_is_unfolded_by_a_click(fresh: SimpleNamespace) -> None:
    """One click brings the messages back, and the page says what became of the window."""
    page, session = fresh.page, fresh.session
    before = len(list(session.view.items))
    page.go(f"{fresh.route}/window/{session.folds[-1].id}")
    page.click("button", "Unfold what fits")
    page.see("tokens became")
    session.journal.refresh()
    assert len(list(session.view.items)) > before


def test_the_key_u_unfolds_what_is_selected(fresh: SimpleNamespace) -> None:
    """The selected fold is unfolded; a message that is not folded is left alone."""
    page = fresh.page
    page.go(f"{fresh.route}/window/{fresh.session.folds[-1].id}")
    page.wait(lambda: page.find("[role=article][aria-current=true]")[0].text.startswith("fold"), "the fold")
    page.press("u")
    page.see("tokens became")
    page.press("g")
    page.press("u")
    page.see("The selected message is not folded.")


def test_a_session_is_rewound_and_taken_forward_again_by_clicks(fresh: SimpleNamespace) -> None:
    """A rewind asks first, moves the head, and can be undone from the message that reports it."""
    page, session = fresh.page, fresh.session
    items = [item.id for item in session.view.items]
    page.go(f"{fresh.route}/window/{items[-4]}")
    page.click("button", "Rewind to here")
    page.see("stays as a branch")
    page.click("button", "Rewind")
    page.see("Go back", f"went back to {items[-4]}")
    session.journal.refresh()
    assert list(session.view.items)[-1].id == items[-4]
    page.click("button", "Go back")
    page.see("switched to", f"{len(items)} items")


def test_a_checkpoint_is_saved_and_restored_by_clicks(fresh: SimpleNamespace) -> None:
    """A name makes a checkpoint; restoring one leaves a branch."""
    page = fresh.page
    page.go(f"{fresh.route}/history")
    page.see("before the first patch")
    page.type("Name of a new checkpoint", "the race is found")
    page.see("made the checkpoint the race is found")
    row = page.wait(lambda: next(row for row in page.find(".tree-rows li") if "before the first patch" in row.text))
    row.find_element("css selector", "button").click()
    page.click("button", "Restore")
    page.see("restored before the first patch")
    fresh.session.journal.refresh()
    assert len(list(fresh.session.view.items)) == 13


def test_a_running_agent_is_followed_in_two_tabs(fresh: SimpleNamespace) -> None:
    """Messages appear while the agent works, without a reload, in each tab that is looked at."""
    page, session = fresh.page, fresh.session
    page.go(f"{fresh.route}/window")
    page.see("items")
    page.driver.execute_script("window.sameDocument = true")
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    page.go(f"{fresh.route}/time")
    page.see("spent")
    page.driver.execute_script("window.sameDocument = true")

    def agent() -> None:
        with Session.open(session.id, store=str(fresh.place)) as own:
            for _ in work(own, 6, start=300, provider=Provider()):
                pass
            own.add({"role": "user", "content": "The agent is done here."})

    running = threading.Thread(target=agent)
    running.start()
    calls = len(session.calls)
    page.wait(lambda: f"in {calls + 4 + 6} calls" in page.text(), "the calls")
    page.driver.switch_to.window(first)
    page.see("The agent is done here.")
    running.join()
    for handle in page.driver.window_handles:
        page.driver.switch_to.window(handle)
        assert page.driver.execute_script("return window.sameDocument") is True


def test_a_page_finds_its_server_again(page: browser.Page, tmp_path: Path, allowed: list[str]) -> None:
    """A server that ends and comes back is found again, with all that was written in between."""
    allowed += [
        "ERR_CONNECTION_REFUSED",
        "ERR_INCOMPLETE_CHUNKED_ENCODING",
        "ERR_CONNECTION_RESET",
        "ERR_EMPTY_RESPONSE",
    ]
    with closing(open_store(str(tmp_path / "own.db"))) as store, opened(store, "mine") as session:
        session.add("First words.")
        server = browser.Inspect(tmp_path / "own.db")
        own = browser.Page(page.driver, server.base)
        own.go("s/mine/window")
        own.see("live", "First words.")
        server.stop()
        own.see("connecting")
        session.add({"role": "assistant", "content": "Written while nobody was looking."})
        again = browser.Inspect(tmp_path / "own.db", port=server.port)
        own.see("live", "Written while nobody was looking.")
        page.driver.get("about:blank")
        again.stop()


def test_a_store_that_is_damaged_while_it_is_watched_is_reported(
    driver: browser.webdriver.Chrome, tmp_path: Path
) -> None:
    """The page says what is wrong and what to do; when the file is whole again, it shows the session again."""
    place = tmp_path / "sessions.db"
    with opened(store=place, id="watched") as session:
        session.add("Hello there")
    whole = place.read_bytes()
    server = browser.Inspect(place)
    try:
        page = browser.Page(driver, server.base)
        page.go("s/watched/window")
        page.see("Hello there", "live")
        place.write_bytes(b"no database" * 1_000)
        page.see("unreadable", "put a backup in its place")
        place.write_bytes(whole)
        page.see("Hello there", "live")
    finally:
        driver.get("about:blank")
        server.stop()
