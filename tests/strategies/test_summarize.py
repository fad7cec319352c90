"""A running summary after the task, rewritten together with the oldest turns."""

import pytest

from support.conversations import result, use
from support.sessions import TASK, opened, talk
from support.strategies import BUDGET, WIDE, brief_of, chat, follow, shown
from windowsill import SettingError, strategies
from windowsill.compose.summaries import fill
from windowsill.history.view import units
from windowsill.strategies.base import items_of, new_tokens, turns, units_after_task
from windowsill.strategies.summarize import Summarize
from windowsill.summaries import Written

pytestmark = pytest.mark.unit


def test_past_ten_turns_the_oldest_five_become_the_summary():
    """S2: although the window is almost empty; the task stays, the summary stands right after it."""
    session, strategy = opened(), Summarize()
    chat(session, 10)
    assert not strategy.due(session.view, WIDE)
    chat(session, 1, start=10)
    assert strategy.due(session.view, WIDE)
    (proposal,) = follow(session, strategy, WIDE)
    assert shown(session)[:4] == ["question 0 w", "fold", "question 5 w", "answer 5 so"]
    assert proposal.kind == "condense"
    assert proposal.briefs[0].style == "summary"
    assert proposal.reason == "more than 10 turns stood in full"
    assert not strategy.due(session.view, WIDE)


def test_the_next_five_turns_and_the_summary_become_the_new_summary():
    """S2: one run over the old buffer and the turns after it; nothing is nested."""
    session, strategy = opened(), Summarize()
    chat(session, 11)
    follow(session, strategy, WIDE, text="The user asked five things.")
    chat(session, 5, start=11)
    assert len(follow(session, strategy, WIDE, text="The user asked ten things.")) == 1
    folds = [item for item in session.view.items if item.fold]
    assert [fold.hides for fold in folds] == [19]
    assert "ten things" in session.view.read(folds[0]).text
    assert "five things" not in session.view.read(folds[0]).text


def test_after_a_long_absence_a_multiple_of_the_batch_goes_at_once():
    """One summary, not one for every five turns."""
    session = opened()
    chat(session, 23)
    assert len(follow(session, Summarize(), WIDE)) == 1
    assert shown(session)[1:3] == ["fold", "question 15"]


def test_turns_that_weigh_less_than_a_marker_wait():
    """A summary of them would be longer than they are."""
    session = opened()
    chat(session, 11, words=1)
    assert not Summarize().due(session.view, WIDE)
    assert Summarize().plan(session.view, WIDE).proposals == ()


def test_past_the_high_mark_it_acts_on_tokens():
    """Also on a single turn, as an agent has it that works for hours on one task."""
    session = opened()
    talk(session, 30)
    assert not Summarize().due(session.view, BUDGET)
    follow(session, Summarize())
    assert session.view.tokens() <= BUDGET.low
    assert shown(session)[:2] == [TASK[:12], "fold"]


def test_the_users_latest_words_stay_through_a_long_turn():
    """H8: the model still reads what it was asked for, word for word."""
    session = opened()
    talk(session, 5)
    session.add({"role": "user", "content": "Now the cart, please."})
    talk(session, 30, start=5)
    follow(session, Summarize())
    assert shown(session)[:4] == [TASK[:12], "fold", "Now the cart", "fold"]


def test_nothing_is_planned_while_there_is_room():
    """Below both marks."""
    session = opened()
    talk(session, 3)
    assert Summarize().plan(session.view, BUDGET).proposals == ()


def test_when_nothing_is_written_the_summary_before_stays_word_for_word():
    """And one marker tells of all that is hidden, however often writing fails."""
    session, strategy = opened(), Summarize()
    chat(session, 11)
    follow(session, strategy, WIDE, text="The user likes green tea.")
    for start in (11, 16):
        chat(session, 5, start=start)
        follow(session, strategy, WIDE)
    (fold,) = (item for item in session.view.items if item.fold)
    text = session.view.read(fold).text
    assert text.count("The user likes green tea.") == 1
    assert text.count("29 earlier messages") == 1


def test_little_is_not_summarised_while_the_request_fits():
    """Or a request just above its mark would be summarised anew, and its cache lost, at every turn."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    session.add({"role": "assistant", "content": "so " * 60})
    session.add({"role": "user", "content": "why " * 1_150})
    assert session.view.tokens() > BUDGET.high
    assert Summarize().plan(session.view, BUDGET).proposals == ()


def test_what_the_summary_weighs_is_not_counted_as_new():
    """Whether another summary is worth it follows from what came since."""
    session = opened()
    chat(session, 25)
    follow(session, Summarize(), text="told " * 300)
    found = items_of(session.view, units_after_task(session.view))
    new = session.view.tokens(*(item for item in found if not item.fold))
    assert new_tokens(session.view, units_after_task(session.view)) == new < session.view.tokens(*found) - 300


def test_a_pin_that_is_left_of_a_turn_is_no_turn():
    """Ten turns may stand in full, whatever was pinned in those before."""
    session = opened()
    chat(session, 1, words=150)
    session.add({"role": "user", "content": "never touch main " * 5}, marks=["pinned"])
    session.add({"role": "assistant", "content": "so " * 100})
    chat(session, 9, start=1)
    follow(session, Summarize(), WIDE)
    chat(session, 4, start=10)
    assert shown(session)[1:3] == ["fold", "never touch"]
    assert len(turns(session.view)) == 10
    assert not Summarize().due(session.view, WIDE)


def test_what_stands_before_the_task_is_left_alone():
    """Programs speak first in many agents: the summary is of what came after the task."""
    session = opened()
    session.add({"role": "user", "content": "<environment_context>" + " word" * 200 + "</environment_context>"})
    session.add({"role": "user", "content": TASK})
    talk(session, 30)
    follow(session, Summarize())
    assert shown(session)[:3] == ["<environment", TASK[:12], "fold"]


def test_units_stay_whole_where_a_turn_ends_inside_one():
    """What the user said while a tool ran begins no turn that could be cut off from the call."""
    session = opened()
    chat(session, 4)
    session.add({"role": "assistant", "content": [use("late")]})
    session.add({"role": "user", "content": "hurry up " * 30})
    session.add({"role": "user", "content": [result("late", "done " * 30)]})
    chat(session, 7, start=5)
    follow(session, Summarize(), WIDE)
    assert not any(unit.open for unit in units(session.view.items))
    calls = {id for item in session.view.items for id in item.calls}
    assert {id for item in session.view.items for id in item.results} == calls


@pytest.mark.parametrize(
    ("strategy", "wanted"),
    [
        (Summarize(threshold=6, batch=5), ["fold", "question 5 w"]),
        (Summarize(threshold=10, batch=3), ["fold", "question 3 w"]),
        (Summarize(threshold=20), ["answer 0 so", "question 1 w"]),
    ],
)
def test_threshold_and_batch_say_when_and_how_much(strategy, wanted):
    """With eleven turns."""
    session = opened()
    chat(session, 11)
    follow(session, strategy, WIDE)
    assert shown(session)[1:3] == wanted


def test_the_wishes_of_the_user_reach_the_writer():
    """Model, prompt and directives as they were stated."""
    session = opened()
    talk(session, 30)
    brief = brief_of(
        Summarize(model="gemini:flash", instructions="Be brief.", directives=("Keep paths.", " ")), session
    )
    assert (brief.model, brief.instructions, brief.directives) == ("gemini:flash", "Be brief.", ("Keep paths.",))
    assert brief_of(Summarize(directives="Keep paths."), session).directives == ("Keep paths.",)


def test_the_text_has_a_share_of_the_limit_and_at_most_half_of_what_is_new():
    """`room` is a share of the request's limit."""
    session = opened()
    talk(session, 30)
    assert brief_of(Summarize(room=0.2), session).room == 300
    hidden = brief_of(Summarize(room=1), session).room
    assert 300 < hidden < session.view.tokens() / 2


@pytest.mark.parametrize(
    ("setting", "value"),
    [("threshold", 0), ("threshold", 10_001), ("batch", 0), ("batch", 11), ("room", -0.1), ("room", 1.1)],
)
def test_a_setting_out_of_range_is_refused(setting, value):
    """With its name, its value and its range."""
    with pytest.raises(SettingError, match=f"setting '{setting}' is {value}; give"):
        Summarize(**{setting: value})


def test_it_can_be_had_by_its_path_with_settings_behind_it():
    """As every strategy."""
    path = "windowsill.strategies.summarize:Summarize"
    assert strategies.get(f"{path}:threshold=20,model=m") == Summarize(threshold=20, model="m")


@pytest.mark.parametrize("text", ["", "long " * 5_000])
def test_what_code_knows_is_kept_where_no_text_was_good(text):
    """A marker stands where nothing usable was written, and the ledger is still there for the next summary."""
    session = opened()
    chat(session, 12)
    proposal = Summarize().plan(session.view, BUDGET).proposals[0]
    filled = fill(session.view, proposal, [Written(text=text, digest={"files": ["a.py"]}) for _ in proposal.spans])
    assert not filled.whole
    assert filled.proposal.stand_ins == proposal.stand_ins
    assert [span.facts["ledger"] for span in filled.proposal.spans] == [{"files": ["a.py"]}]
