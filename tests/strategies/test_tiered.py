"""Tiers: an immediate buffer, a short-term window, and an archive behind them."""

import pytest

from support.conversations import result, use
from support.sessions import TASK, opened, problems, turn
from windowsill import SettingError
from windowsill.outputs.show import TRIMMED

pytestmark = pytest.mark.unit


MUCH = ", and more of it" * 40


def chatting(turns, **settings):
    session = opened(budget=50_000, **settings)
    session.add({"role": "user", "content": TASK})
    for number in range(turns):
        session.add({"role": "assistant", "content": f"answer {number}: the code is {number * 7919}" + MUCH})
        session.add({"role": "user", "content": f"question {number}"})
        assert problems(session.compose_sync()) == []
    return session


def words(session):
    return [session.view.read(item).text for item in session.view.items if not item.fold]


def test_turns_leave_the_short_term_window_in_batches():
    """M2: past immediate + short + batch turns the oldest go, and nothing moves until the next batch is full."""
    strategy = "tiered:immediate=2,short=4,batch=3"
    assert chatting(8, strategy=strategy).folds == []
    session = chatting(9, strategy=strategy)
    assert len(session.folds) == 1
    assert "answer 2: the code is 15838" + MUCH not in words(session)
    assert "answer 3: the code is 23757" + MUCH in words(session)
    assert len(chatting(11, strategy=strategy).folds) == 1


def test_the_cut_says_what_was_there():
    """M4: a memory summary stands where turns were, with what the user asked."""
    session = chatting(9, strategy="tiered:immediate=2,short=4,batch=3")
    marker = next(session.view.read(item).text for item in session.view.items if item.fold)
    assert "question 0" in marker


def test_what_left_is_in_the_archive():
    """M3: a turn that left the window is found again."""
    session = chatting(9, strategy="tiered:immediate=2,short=4,batch=3")
    assert session.archive.retrieve("code 7919", 1)[0].text == "answer 1: the code is 7919" + MUCH


def test_the_immediate_turns_stay_when_the_request_is_too_large():
    """M1: the latest turns are not touched while anything else can go."""
    session = opened(strategy="tiered:immediate=5,short=30", budget=1_500)
    session.add({"role": "user", "content": TASK})
    for number in range(30):
        for message in turn(number, words=30):
            session.add(message)
        session.compose_sync()
        latest = session.view.items[-10:]
        assert not any(item.fold or item.cuts for item in latest)
    assert session.folds


def test_old_observations_are_masked_first():
    """M6: when room is needed, outputs older than their time to live go before words do."""
    session = opened(strategy="tiered:immediate=2,ttl=300", budget=2_000)
    session.add({"role": "user", "content": TASK}, at=1.0)
    for number in range(40):
        for message in turn(number, words=25):
            session.add(message, at=100.0 * number)
        session.compose_sync()
        if session.folds:
            break
    assert session.folds[0].kind == "mask"
    stale = [item for item in session.view.items if item.cuts]
    assert stale
    assert all(session.view.read(item).results[0].content[0].text.startswith(TRIMMED) for item in stale)


def test_exempt_outputs_keep_no_stale_ones():
    """M6: neither a fresh plan nor a time from a clock that was set back keeps another output past its time."""
    session = opened(strategy="tiered:immediate=2,ttl=300", budget=1_500, low=300)
    session.add({"role": "user", "content": TASK}, at=1.0)
    for number in range(40):
        for name, after in (("read", 0.0), ("TodoWrite", 1.0)):
            id, at = f"{name}{number}", 9_000.0 * (number == 0) + 200.0 * number + after
            session.add({"role": "assistant", "content": [use(id, name)]}, at=at)
            session.add({"role": "user", "content": [result(id, "word " * 30)]}, at=at)
        session.compose_sync()
        if session.folds:
            break
    now = session.view.read(session.view.items[-1]).at
    old = [item for item in session.view.items if item.results and now - session.view.read(item).at > 300]
    reads = [item for item in old if item.results[0].startswith("read")]
    assert reads
    assert all(item.cuts for item in reads)


@pytest.mark.parametrize("setting", ["immediate=0", "short=-1", "batch=0", "ttl=-1", "quote=2"])
def test_a_value_out_of_range_is_refused(setting):
    """With the setting, the value and the range."""
    with pytest.raises(SettingError, match=setting.split("=")[0]):
        opened(strategy=f"tiered:{setting}")
