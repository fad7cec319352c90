"""One summary in sections between the task and the last messages; where that fails, a cut that spares what matters."""

import msgspec
import pytest

from support.conversations import result, text_block, use
from support.sessions import TASK, opened, problems, talk
from support.strategies import BUDGET, brief_of, chat, follow, shown
from windowsill import SettingError
from windowsill.strategies.condense import Condense

pytestmark = pytest.mark.unit


def test_everything_between_the_first_message_and_the_last_three_becomes_one_summary():
    """S7: past the high mark, in one step."""
    session = opened()
    chat(session, 25)
    (proposal,) = follow(session, Condense(), text="the six sections")
    assert (proposal.kind, proposal.briefs[0].style) == ("condense", "condense")
    assert shown(session) == ["question 0 w", "fold", "answer 23 so"[:12], "question 24", "answer 24 so"[:12]]


def test_nothing_happens_below_the_high_mark():
    """It is asked only then, and says nothing otherwise."""
    session = opened()
    chat(session, 10)
    assert Condense().plan(session.view, BUDGET).proposals == ()


def test_the_next_summary_covers_the_one_before():
    """What it hides it was written from, the earlier summary included."""
    session = opened()
    chat(session, 25)
    follow(session, Condense(), text="the first")
    chat(session, 25, start=25)
    follow(session, Condense(), text="the second")
    folds = [item for item in session.view.items if item.fold]
    assert [item.hides for item in folds] == [100 - 4]
    assert "the first" not in session.view.read(folds[0]).text


def test_a_failed_summary_leaves_a_marker_and_the_earlier_summary():
    """S7: what was told before is not lost because a model did not answer."""
    session = opened()
    chat(session, 25)
    follow(session, Condense(), text="the first")
    chat(session, 25, start=25)
    follow(session, Condense())
    (fold,) = (item for item in session.view.items if item.fold)
    text = session.view.read(fold).text
    assert "the first" in text
    assert "96 earlier messages" in text
    assert session.view.tokens() <= BUDGET.limit


def test_a_caller_without_a_session_gets_the_same_cut_for_many_turns():
    """B9: the budget of a stateless caller hides a multiple of its step, counted from the start."""
    stateless = msgspec.structs.replace(BUDGET, step=450)
    session = opened()
    chat(session, 25)
    cuts = []
    for number in range(25, 33):
        chat(session, 1, start=number)
        cuts.append(Condense().plan(session.view, stateless).proposals[0].spans[0].last)
    assert len(set(cuts)) <= 2 < len(cuts)


@pytest.mark.parametrize(("limit", "acts"), [(1_500, False), (1_200, True)])
@pytest.mark.parametrize("keep", [1, 2])
def test_little_is_neither_condensed_nor_truncated_while_the_request_fits(keep, limit, acts):
    """Or it would be done at every turn just above the high mark; with `keep` 2 only a truncation is possible."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    session.add({"role": "assistant", "content": "so " * 100})
    session.add({"role": "user", "content": "why " * 1_150})
    budget = msgspec.structs.replace(BUDGET, limit=limit)
    assert bool(Condense(keep=keep).plan(session.view, budget).proposals) is acts


def heavy_end(**marks):
    """A session with nothing left to condense, and more at its end than the high mark allows."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    session.add({"role": "assistant", "content": "alpha " * 300}, **marks)
    session.add({"role": "user", "content": "beta " * 300})
    session.add({"role": "assistant", "content": "gamma " * 300})
    session.add({"role": "user", "content": "delta " * 400})
    return session


def test_where_nothing_can_be_condensed_the_oldest_half_is_truncated():
    """S7: of what may go, or more if the low mark needs it; a marker stands there, nothing is to be written."""
    session = heavy_end()
    (proposal,) = follow(session, Condense(keep=4))
    assert (proposal.kind, proposal.briefs) == ("truncate", ())
    assert shown(session) == [TASK[:12], "fold", "gamma gamma", "delta delta"]


@pytest.mark.parametrize(("share", "left"), [(0.3, 3), (1.0, 2)])
def test_a_truncation_takes_at_least_a_share_of_the_messages(share, left):
    """`share`, oldest first."""
    budget = msgspec.structs.replace(BUDGET, high=1_290, low=1_280)
    session = heavy_end()
    follow(session, Condense(keep=4, share=share), budget)
    assert len(session.view.items) == left + 1 + (share < 1)


def test_a_truncation_spares_what_is_important():
    """S7: marked by the user."""
    session = heavy_end(marks=["important"])
    follow(session, Condense(keep=4))
    assert shown(session) == [TASK[:12], "alpha alpha", "fold", "delta delta"]


def test_a_truncation_spares_tool_calls_with_their_results():
    """S7: as a unit, and it says so when nothing else is left and the request does not fit."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    for number in range(3):
        session.add({"role": "assistant", "content": [text_block("looking"), use(f"t{number}")]})
        session.add({"role": "user", "content": [result(f"t{number}", "word " * 600)]})
    plan = Condense(keep=6).plan(session.view, BUDGET)
    assert plan.proposals == ()
    assert plan.notes == ("condense: nothing is left to condense or to truncate",)


@pytest.mark.parametrize(
    ("words", "spared"), [("We decided to use tabs.", True), ("この方針で進めます。", True), ("Tabs are fine.", False)]
)
def test_a_truncation_spares_decisions(words, spared):
    """S7: in English and in Japanese."""
    session = heavy_end()
    session.add({"role": "assistant", "content": words + " so" * 120})
    session.add({"role": "user", "content": "and now?"})
    follow(session, Condense(keep=7, share=1))
    assert any(each.startswith(words[:10]) for each in shown(session)) is spared


def test_the_words_of_a_decision_are_a_setting():
    """Whoever speaks otherwise says how."""
    session = heavy_end()
    session.add({"role": "assistant", "content": "Abgemacht " * 100})
    session.add({"role": "user", "content": "und jetzt?"})
    follow(session, Condense(keep=7, share=1, decisions=("abgemacht",)))
    assert "Abgemacht Ab" in shown(session)


def test_what_a_composer_may_do_instead_of_a_marker():
    """`instead` is the truncation by itself: for whoever knows that the summary failed."""
    session = opened()
    chat(session, 12)
    talk(session, 3)
    chat(session, 12, start=12)
    (proposal,) = Condense().instead(session.view, BUDGET).proposals
    assert proposal.kind == "truncate"
    follow(session, Condense(keep=100))
    assert sum(bool(item.calls) for item in session.view.items) == 3


def test_the_composer_still_fits_the_window_when_both_stages_fail():
    """S7: tool outputs are spared by the truncation, not by the emergency cut."""
    session = opened(strategy=Condense(keep=100))
    talk(session, 60)
    payload = session.compose_sync()
    assert payload.tokens <= 1_500
    assert problems(payload) == []


@pytest.mark.parametrize("keep", [1, 2, 3, 4, 5])
def test_p2_no_kept_result_loses_its_call(keep):
    """P2: units travel whole, so a kept message never begins with results whose call was condensed away."""
    session = opened(strategy=Condense(keep=keep))
    talk(session, 40)
    payload = session.compose_sync()
    kept = next(item for item in session.view.items[1:] if not item.fold)
    assert kept.calls
    assert payload.report.repairs == ()
    assert problems(payload) == []


def test_p2_a_history_cut_by_hand_is_repaired_in_the_view():
    """P2: a result that came without its call is told as words; the request is valid, and the repair is reported."""
    session = opened(strategy=Condense())
    session.add({"role": "user", "content": [result("lost", "an output whose call was cut off by hand")]})
    talk_on = [{"role": "user", "content": TASK}, {"role": "assistant", "content": "yes"}]
    for message in talk_on:
        session.add(message)
    chat(session, 30)
    session.add({"role": "user", "content": [result("gone", "another")]})
    payload = session.compose_sync()
    assert problems(payload) == []
    assert {repair.id for repair in payload.report.repairs} >= {"gone"}


@pytest.mark.parametrize(("keep", "kept"), [(0, 2), (3, 3), (10, 10)])
def test_keep_counts_messages(keep, kept):
    """The last one always stays, and so does the request it answers."""
    session = opened()
    chat(session, 25)
    follow(session, Condense(keep=keep), text="short")
    assert len(session.view.items) == 2 + kept


def test_the_wishes_of_the_user_reach_the_writer():
    """Model, prompt, directives and room."""
    session = opened()
    chat(session, 25)
    brief = brief_of(Condense(model="m", instructions="Six words.", directives="No names.", room=0.2), session)
    assert (brief.model, brief.instructions, brief.directives, brief.room) == ("m", "Six words.", ("No names.",), 300)


@pytest.mark.parametrize(("setting", "value"), [("keep", -1), ("keep", 10_001), ("share", -1), ("share", 1.5)])
def test_a_setting_out_of_range_is_refused(setting, value):
    """With its name, its value and its range."""
    with pytest.raises(SettingError, match=f"setting '{setting}' is {value}; give"):
        Condense(**{setting: value})
