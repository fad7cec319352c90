"""Every view of the inspector's page, in a real browser with a real session."""

import json
from pathlib import Path

import pytest

from support.browser import Page
from support.sample_session import TASK
from windowsill import Session
from windowsill.cli.session_ids import entry_ids

pytestmark = pytest.mark.end_to_end
S = "s/mend-flaky-refunds"


def test_the_window_shows_its_bar_its_items_and_its_folds_with_prices(page: Page, place: Path) -> None:
    """The bar names each part, the list is what the model sees, and a fold says who made it, why, and its price."""
    page.go(f"{S}/window")
    bar = page.role("img", "The window")
    assert "stand-ins of folds" in (bar.get_attribute("aria-label") or "")
    page.click("button", "first")
    text = page.see("messages folded", "Unfold what fits", "per call", "pinned", TASK.splitlines()[0])
    assert "condense" in text
    assert "Windowsill" in text
    feed = page.role("feed", "Items as the model sees them")
    first = feed.find_element("css selector", "[role=article]")
    with Session.open("mend-flaky-refunds", store=str(place)) as session:
        assert first.get_attribute("aria-setsize") == str(len(list(session.view.items)))
        assert f"{session.folds[-1].reason}"[:20] in page.text()


def test_over_time_shows_calls_folds_and_cost(page: Page, place: Path) -> None:
    """Each call is in the chart and in the table, with what was cached, written and new, and each fold between them."""
    page.go(f"{S}/time")
    page.see("spent", "read from the cache", "cost so far", "Calls and folds, newest first")
    assert page.find("canvas")
    page.see("saved")
    with Session.open("mend-flaky-refunds", store=str(place)) as session:
        last, count = session.calls[-1].id, len(entry_ids(session, ("call",)))
    page.click("link", last)
    page.see(f"Call {count} of {count}, {last}")


def test_a_call_is_found_by_its_number(page: Page, place: Path) -> None:
    """As the chart counts: "what did the model see at call 7" is one field away."""
    with Session.open("mend-flaky-refunds", store=str(place)) as session:
        listed = entry_ids(session, ("call",))
    page.go(f"{S}/call")
    page.type("Number of a call", "7")
    page.see(f"Call 7 of {len(listed)}, {listed[6]}")


def test_a_call_shows_the_exact_request_and_what_changed(page: Page, place: Path) -> None:
    """A call is compared with the one before, and its raw text is the request byte for byte."""
    with Session.open("mend-flaky-refunds", store=str(place)) as session:
        call = session.calls[-2]
        body = session.request(call.id)
    page.go(f"{S}/call/{call.id}")
    page.see("Against the call before", "same as", "First difference", "expected", "reported", "Pretty")
    page.role("feed", "Messages of this request")
    page.see("tool_use_id")
    page.click("tab", "Raw")
    page.wait(lambda: page.find(".raw .text"))
    shown = page.find(".raw .text")[0].get_attribute("textContent")
    assert body.decode().startswith(shown)
    assert json.loads(body)["model"] in shown
    page.press("k")
    page.wait(lambda: call.id not in page.driver.current_url, "the call before")


def test_explain_finds_words_and_says_by_which_rule_they_are_out(page: Page) -> None:
    """Words that were folded are found, with the fold, its rule, and the price of bringing them back."""
    page.go(f"{S}/explain")
    page.see("Nothing is lost, only folded")
    page.press("/")
    page.type("Words to explain", "lease_seconds shorter than one slow commit")
    page.see("folded", "Why: hidden by", "Unfold what fits")
    assert "lease_seconds" in [mark.text for mark in page.find("mark")]
    page.type("Words to explain", "zebrafish")
    page.see("Nowhere in this session")


def test_history_shows_branches_and_checkpoints_and_compares_two_moments(page: Page) -> None:
    """The branch that was left and the checkpoint are in the tree, and a diff says what came and went since."""
    page.go(f"{S}/history")
    page.see("the patch hid the race", "before the first patch", "Switch to it", "Restore")
    row = page.wait(lambda: next(row for row in page.find(".tree-rows li") if "before the first patch" in row.text))
    row.find_element("link text", "Diff to now").click()
    page.see("became", "New in the window")


def test_state_shows_layers_tools_and_policies(page: Page) -> None:
    """Goal, plan, facts, decisions and tools are shown, and what was never set is not."""
    page.go(f"{S}/state")
    text = page.see("Mend the flaky test of the refunds", "Use a fake clock in the test", "read_file", "Policies")
    assert "null" not in text


def test_all_sessions_are_listed_and_searched(page: Page) -> None:
    """The list has cost, folds and fill; a search over everything leads to the message."""
    page.go("")
    page.see("mend-flaky-refunds", "claude-sonnet-4-5", "%")
    page.type("Search all sessions", "fifty runs")
    page.see("Now show me the fifty runs.")
    page.click("link", "mend-flaky-refunds")
    page.see("in the window", "Good. Now show me the fifty runs.")


def test_engine_and_comparisons_have_pages(page: Page) -> None:
    """Engines are listed with phase and cost; where nothing was compared yet, the page says how to."""
    page.go("engine")
    page.see("Engine and health", "mend-flaky-refunds", "model calls", "executing")
    page.click("link", "Comparisons")
    page.see("Nothing to compare yet")


def test_links_lead_to_a_message_a_fold_and_a_call(page: Page, place: Path, allowed: list[str]) -> None:
    """A link to a folded message opens the fold that hides it, and the message as it was added."""
    with Session.open("mend-flaky-refunds", store=str(place)) as session:
        hidden = next(message.id for message in session.messages() if not session.explain(message.id).visible)
        fold = session.folds[-1].id
    page.go(f"{S}/window/{hidden}")
    page.see("is folded here", "What stands in its place", "What this fold hides")
    page.click("button", "Open it")
    page.see("as it was added", "not in the window")
    page.go(f"{S}/window/{fold}")
    page.wait(lambda: page.find("[role=article][aria-current=true]")[0].text.startswith("fold"), "the fold")
    allowed.append("id=m99999")
    page.go(f"{S}/window/m99999")
    page.see("Not found")


def test_keys_move_open_search_and_help(page: Page) -> None:
    """Keys j and k move, Enter opens, the digits change the view, ? lists the keys, t turns the light."""
    page.go(f"{S}/window")
    page.wait(lambda: page.find("[role=article]"))

    def selected() -> int:
        return int(page.find("[role=article][aria-current=true]")[0].get_attribute("aria-posinset") or 0)

    page.press("g")
    page.wait(lambda: selected() == 1)
    page.press("j")
    page.press("j")
    page.wait(lambda: selected() == 3)
    page.press("k")
    page.wait(lambda: selected() == 2)
    page.press("?")
    page.see("unfold the selected fold")
    page.click("button", "Close")
    before = page.find("html")[0].get_attribute("data-theme")
    page.press("t")
    page.wait(lambda: page.find("html")[0].get_attribute("data-theme") != before)
    page.press("t")
    page.press("2")
    page.see("read from the cache")
    page.press("/")
    page.see("Why is it in, why is it out?")
    page.wait(lambda: page.driver.switch_to.active_element.tag_name == "input", "the field")


@pytest.mark.parametrize("width", [400, 3840])
def test_each_view_fits_a_small_and_a_huge_screen(page: Page, width: int) -> None:
    """No view is wider than the screen."""
    size = {"width": width, "height": 800 if width < 1000 else 2160, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    views = {"window": "in the window", "time": "spent", "call": "Pretty", "explain": "Find", "history": "checkpoint"}
    try:
        page.go(f"{S}/state")
        page.see("Policies")
        for view, words in {**views, "state": "Policies"}.items():
            page.driver.execute_script(f"location.hash = '#/{S}/{view}'")
            page.see(words)
            script = "const c = document.getElementById('content'); return [c.scrollWidth, c.clientWidth]"
            wide, seen = page.driver.execute_script(script)
            assert wide <= seen <= width, view
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
