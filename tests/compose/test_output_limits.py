"""Limits of tool outputs in every session, whatever its strategy."""

import json

import pytest

from support.conversations import result, text_block, use
from support.sessions import kept, opened
from support.tool_outputs import LONG, sent, working
from windowsill import Session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

ORDERS = json.dumps({"orders": [{"id": n, "name": f"order {n}", "price": n / 3} for n in range(300)]})
STRATEGIES = ["sliding-window", "condense", "mask", "compact", "mask+condense", "importance", "native"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_long_output_is_cut_by_default_when_it_is_first_shown(strategy):
    """Where the model can read the rest; the fold is in the report, and undone it shows all again."""
    session = working(LONG, strategy=strategy)
    before = kept(session)
    payload = session.compose_sync(tools=session.tools.tools)
    (fold,) = payload.report.folds
    assert (fold.kind, fold.strategy) == ("mask", "outputs")
    assert payload.tokens < 5_000
    session.unfold(fold.id)
    assert [session.view.read(item).raw for item in session.view.items] == before
    assert sent(session) == [LONG]


def test_the_request_only_grows_after_an_output_was_cut():
    """The cut is decided when the output is first shown, and stays."""
    session = working(LONG, strategy="sliding-window")
    first = session.compose_sync(tools=session.tools.tools)
    session.add({"role": "assistant", "content": [use("next")]})
    session.add({"role": "user", "content": [result("next", LONG)]})
    second = session.compose_sync(tools=session.tools.tools)
    assert second.messages[: len(first.messages)] == first.messages
    assert second.report.stable == first.tokens


def test_without_tools_nothing_is_cut_while_there_is_room():
    """What is out of reach is shown: 300 orders on one line, and a listing of 4,000 lines."""
    session = working(ORDERS, LONG, strategy="sliding-window", window=128_000)
    assert sent(session, tools=False) == [ORDERS, LONG]
    assert not session.folds


def test_json_within_the_bytes_is_shown_whole_with_tools_too():
    """The length of its only line says nothing."""
    assert sent(working(ORDERS, strategy="sliding-window")) == [ORDERS]


def test_without_tools_a_giant_is_shown_by_its_structure():
    """A log that no window holds shows its ends and its errors, and says what is missing."""
    lines = [f"10:00:{n % 60:02} INFO row {n} of the log, which is long" for n in range(60_000)]
    lines[30_000] = "10:00:00 FATAL the disk is full"
    session = working("\n".join(lines), strategy="sliding-window", window=128_000)
    (text,) = sent(session, tools=False)
    shown = text.splitlines()
    assert (shown[0], shown[-1]) == (lines[0], lines[-1])
    assert "30,001: 10:00:00 FATAL the disk is full" in shown
    assert any(line.startswith("[reduced: ") and "ref" not in line for line in shown)
    assert session.folds[-1].after < 128_000 // 2


def test_without_tools_what_the_model_has_read_is_left_to_the_strategy():
    """An output above the limits is cut when it is first shown, or not by them: the cached prefix stays whole."""
    session = working("short", strategy="economy", window=6_000)
    names = [f"Q{number:04}" for number in range(900)]
    session.add({"role": "assistant", "content": [use("late")]})
    session.add({"role": "user", "content": [result("late", json.dumps(names))]})
    session.compose_sync()
    assert not session.folds
    session.add({"role": "assistant", "content": "Read."})
    session.add({"role": "user", "content": "Go on. " * 1_500})
    session.compose_sync()
    assert {fold.strategy for fold in session.folds} == {"economy"}


def test_all_outputs_together_stay_within_their_budget():
    """The oldest are trimmed in batches where they can be read again."""
    session = working(*["words of it\n" * 1_000] * 12, strategy="condense")
    trimmed = [text.startswith("[tool output trimmed; ref=") for text in sent(session)]
    assert trimmed == sorted(trimmed, reverse=True)
    assert any(trimmed)
    whole = working(*["words of it\n" * 1_000] * 12, strategy="condense")
    assert not any(text.startswith("[tool") for text in sent(whole, tools=False))


def test_a_little_above_the_budget_is_not_trimmed_at_every_turn():
    """The latest outputs, which stay, may fill the budget: then small ones are left alone until they are a batch."""
    session = working(*["words of it\n" * 2_400] * 3, strategy="sliding-window")
    for number in range(12):
        session.add({"role": "assistant", "content": [use(f"s{number}")]})
        session.add({"role": "user", "content": [result(f"s{number}", f"small {number} " * 40)]})
        session.compose_sync(tools=session.tools.tools)
    assert len(session.folds) <= 2


def test_the_limits_can_be_switched_off():
    """With `outputs=False`, also after the session was opened again."""
    store = MemoryStore()
    session = Session.open("s", model="claude-sonnet-4-5", store=store, outputs=False)
    session.extend(
        [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [use("a")]},
            {"role": "user", "content": [result("a", LONG)]},
        ]
    )
    assert sent(session) == [LONG]
    assert sent(Session.open("s", store=store)) == [LONG]


def test_answers_of_the_reading_tools_are_not_cut_again():
    """What the model reads on keeps within limits of its own, and would never be seen otherwise."""
    session = working("x" * 9_000, strategy="sliding-window")
    sent(session)
    answer = session.tools.tool_output_cache("o3", column=2_001)
    session.add({"role": "assistant", "content": [use("r", "tool_output_cache")]})
    session.add({"role": "user", "content": [result("r", answer)]})
    assert sent(session)[-1] == answer


def test_a_pinned_output_stays_whole():
    """A pin is stronger than the limits."""
    session = working(LONG, strategy="sliding-window")
    session.pin("m3")
    assert sent(session) == [LONG]


def test_no_output_is_read_twice_while_the_session_grows():
    """What is within the limits is looked at once: turns do not get dearer."""
    session = opened(strategy="sliding-window", window=400_000, budget=400_000)
    session.add({"role": "user", "content": "Work."})
    read = 0

    def counting(item, inner=session.view.read):
        nonlocal read
        read += bool(item.results)
        return inner(item)

    session.view.read = counting
    reads = []
    for number in range(40):
        session.add({"role": "assistant", "content": [use(f"t{number}")]})
        session.add({"role": "user", "content": [result(f"t{number}", [text_block("words of it\n" * 300)])]})
        session.compose_sync(tools=session.tools.tools)
        reads.append(read)
    assert reads[39] - reads[29] <= reads[19] - reads[9] + 2
