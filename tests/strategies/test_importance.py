"""Importance: the score of source 002, what it keeps, what it tells of the rest, and how far it goes."""

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import result, text_block, use
from support.examples import examples
from support.sessions import TASK, opened, plain_view, problems, talk, turn
from windowsill import Session, SettingError
from windowsill.budget import Budget
from windowsill.history.folds import MessageSpan
from windowsill.history.proposals import check_fold
from windowsill.history.view import Item, units
from windowsill.strategies import get
from windowsill.strategies.importance import Importance
from windowsill.strategies.scores import ScoreMemory
from windowsill.tokens import Weight

pytestmark = pytest.mark.unit

PATH = "windowsill.strategies.importance:Importance"
LONG = "a sentence that is long enough for everything"


def said(*messages):
    """A session of plain messages, `(role, text)` each."""
    session = opened(budget=100_000)
    for role, text in messages:
        session.add({"role": role, "content": text})
    return session


def values(session, strategy=None):
    return [round(score.value, 4) for score in (strategy or Importance()).score(session.view)]


def tight(view, share=0.5, **marks):
    """A budget that the view just passes, with its low mark at a share of it."""
    total = view.tokens()
    return Budget(**{"limit": total, "high": total - 1, "low": int(total * share), "window": total, **marks})


def hidden(view, plan):
    """The numbers of the messages that a plan hides."""
    runs = [span for proposal in plan.proposals for span in proposal.spans]
    return {item.seq for item in view.items for run in runs if run.first <= item.seq <= run.last}


def test_the_score_is_the_weighted_sum_of_recency_role_and_content():
    """S4: 0.3 recency, 0.3 role, 0.4 content; the oldest has no recency, the newest all of it."""
    session = said(("user", LONG), ("assistant", LONG), ("user", LONG), ("assistant", LONG), ("user", LONG))
    assert values(session) == [0.3, 0.225, 0.45, 0.375, 0.6]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (LONG, 0.0),
        ("the build failed in a strange way", 0.3),
        ("ビルドが失敗しましたので原因を調べています", 0.3),
        ("[Tool: grep] found it in three places", 0.25),
        ("[SYSTEM: a file has changed on disk]", 0.2),
        ("[User turned the page and came back]", 0.2),
        ("she gave her approval to all of this", 0.6),
        ("agent_call to the reviewer, then wait", 0.3),
        ("agent_call after the error of yesterday", 0.6),
        ("承認をお願いしますので、確認してください。ありがとう", 0.6),
        ("[Tool: x] [SYSTEM: y] approval of the error", 1.0),
        ("it failed", 0.21),
        ("ok", 0.0),
    ],
)
def test_the_content_counts_as_the_formula_says(text, content):
    """S4: keywords 0.3, tool result 0.25, mark 0.2, approval 0.3, at most 1, times 0.7 below 20 characters."""
    session = said(("assistant", text), ("user", LONG))
    assert values(session)[0] == round(0.15 + 0.4 * content, 4)


def test_the_parts_of_a_score_are_told_and_add_up():
    """S4: which part gave how much, and which word."""
    session = said(("user", LONG), ("assistant", "there was an Error in the second file"))
    score = Importance().score(session.view)[1]
    assert [str(reason) for reason in score.reasons] == [
        "recency (+0.3)",
        "role: assistant (+0.15)",
        "content: keyword 'error' (+0.12)",
    ]
    assert score.value == pytest.approx(sum(reason.points for reason in score.reasons))


def test_tools_and_programs_are_not_the_user():
    """S4: who speaks under the user's role without being the user counts as other, 0.5."""
    session = opened(budget=100_000)
    for message in (*turn(0, words=30), {"role": "user", "content": "<system-reminder>look at it</system-reminder>"}):
        session.add(message)
    roles = [score.reasons[1].what for score in Importance().score(session.view)]
    assert roles == ["role: assistant", "role: other", "role: other"]
    assert values(session)[1] == round(0.15 + 0.15 + 0.4 * 0.25, 4)


def test_a_mark_makes_a_message_as_important_as_can_be():
    """What the user marks as important has the highest score."""
    session = said(("assistant", "well"), ("user", LONG))
    session.mark(session.view.items[0].id, add=["important"])
    assert values(session)[0] == 1.0
    assert values(session, Importance(marked=0.5))[0] == 0.5


@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [
        ("recency", 0.0, 0.15 + 0.12),
        ("role", 0.0, 0.3 + 0.12),
        ("content", 0.0, 0.3 + 0.15),
        ("assistant", 1.0, 0.3 + 0.3 + 0.12),
        ("keyword", 0.5, 0.3 + 0.15 + 0.2),
        ("keywords", ("zebra",), 0.3 + 0.15),
        ("short", 100, 0.3 + 0.15 + 0.084),
        ("tool_marks", ("there was",), 0.3 + 0.15 + 0.4 * 0.55),
        ("frame_marks", ("there was",), 0.3 + 0.15 + 0.4 * 0.5),
        ("approvals", ("There Was",), 0.3 + 0.15 + 0.4 * 0.6),
        ("look", 8, 0.3 + 0.15),
    ],
)
def test_every_weight_and_word_list_is_a_setting(setting, value, wanted):
    """Each moves the score of the same message."""
    session = said(("user", LONG), ("assistant", "there was an Error in the second file"))
    assert values(session, Importance(**{setting: value}))[1] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("recency", -0.1), ("low", 1.1), ("keep", -1), ("gap", 0), ("short", -1), ("keywords", ("",)), ("target", "no")],
)
def test_a_setting_out_of_range_is_refused(setting, value):
    """With its name."""
    with pytest.raises(SettingError, match=setting):
        Importance(**{setting: value})


def test_settings_may_follow_the_name():
    """As text, as the command line gives them."""
    assert get(f"{PATH}:target=70%,gap=3,summaries=false,low=0.2") == Importance(
        target="70%", gap=3, summaries=False, low=0.2
    )


@pytest.mark.parametrize(
    ("total", "level"),
    [(801, "gentle"), (899, "gentle"), (900, "aggressive"), (1_000, "aggressive"), (1_001, "emergency")],
)
def test_the_level_follows_the_share_of_the_window(total, level):
    """B2: low importance from 80%, aggressive from 90%, emergency beyond the whole."""
    assert Importance().level(total, Budget(limit=1_000, high=800, low=500, window=1_000)) == level


def test_the_level_is_graded_where_the_answer_takes_the_room_above_the_high_mark():
    """B2: half of the way between the high mark and the limit, when 90% lies below the high mark."""
    budget = Budget(limit=860, high=800, low=500, window=1_000)
    assert [Importance().level(total, budget) for total in (810, 831)] == ["gentle", "aggressive"]
    assert Importance(aggressive=0).level(810, budget) == "aggressive"


def chatter(count=60):
    """A long talk: tasks, tool results, and words that mean nothing."""
    session = opened(budget=1_000_000)
    talk(session, count // 2)
    for number in range(count):
        session.add({"role": "assistant", "content": f"Thinking about number {number} " + "and so on " * 12})
    talk(session, 4, start=1_000)
    return session


def test_between_the_marks_only_messages_of_low_importance_go():
    """B2: those below the threshold, though the target is not reached."""
    session = chatter()
    view = session.view
    total = view.tokens()
    budget = Budget(limit=int(total / 0.85), high=int(total * 0.94), low=int(total * 0.9), window=total)
    strategy = Importance(low=0.4)
    scores = strategy.score(view)
    gone = hidden(view, strategy.plan(view, budget))
    assert gone
    for unit in units(view.items):
        best = max(score.value for score in scores[unit.start : unit.stop])
        assert view.items[unit.start].seq not in gone or best < 0.4


def test_a_reduction_that_frees_next_to_nothing_waits_while_the_request_fits():
    """B9: each reduction breaks the cached prefix; one that frees less than its worth waits."""
    session = chatter()
    total = session.view.tokens()
    budget = Budget(limit=int(total / 0.85), high=int(total * 0.94), low=100, window=total)
    plan = Importance(low=0.0, worth=1.0).plan(session.view, budget)
    assert plan.proposals == ()
    assert plan.notes[-1].endswith("tokens are not worth a reduction yet")


def test_the_target_is_the_low_mark_or_what_is_stated():
    """B2: 70% of what a request may have, for instance."""
    session = chatter()
    view = session.view
    budget = tight(view, 0.4)
    for strategy, most in ((Importance(), budget.low), (Importance(target="70%"), int(budget.limit * 0.7))):
        spans = [span for proposal in strategy.plan(view, budget).proposals for span in proposal.spans]
        after = view.tokens_of(view.after(spans))
        assert most * 0.7 < after <= most


def test_a_unit_is_worth_as_much_as_the_best_of_its_messages():
    """P1: a call stays with a result that matters."""
    session = opened(budget=100_000)
    session.add({"role": "user", "content": TASK})
    for number in range(12):
        word = "the test failed with an error, approval denied " if number == 2 else "nothing at all to be seen here "
        session.add({"role": "assistant", "content": [text_block("looking"), use(f"t{number}")]})
        session.add({"role": "user", "content": [result(f"t{number}", word * 6)]})
    view = session.view
    gone = hidden(view, Importance().plan(view, tight(view, 0.6)))
    kept = [item.calls for item in view.items if item.calls and item.seq not in gone]
    assert ("t2",) in kept
    assert ("t1",) not in kept


def plan_of_runs(**settings):
    """Two stretches that go: one of 8 messages and one of 3, with a message between them that stays."""
    session = opened(budget=100_000)
    session.add({"role": "user", "content": TASK})
    for number in range(11):
        session.add({"role": "assistant", "content": f"musing {number} " * 30})
        if number == 7:
            session.add({"role": "user", "content": "approval of the plan: an error, a warning. " * 6})
    talk(session, 4)
    view = session.view
    return view, Importance(keep=8, **settings).plan(view, tight(view, 0.1))


def test_five_or_more_in_a_row_get_a_summary_and_fewer_a_notice_with_their_number():
    """S4: a brief for the long run, none for the short one."""
    _, plan = plan_of_runs(target=600)
    spans, briefs, shown = plan.proposals[0].spans, plan.proposals[0].briefs, plan.proposals[0].stand_ins
    assert [span.hides for span in spans] == [8, 3]
    assert [brief.style if brief else None for brief in briefs] == ["summary", None]
    assert shown[1].text == ("[Memory Summary] 3 earlier messages are left out here; history_search finds them.")
    assert "8 earlier messages" in shown[0].text


def test_summaries_can_be_switched_off_and_the_run_length_set():
    """S4: no brief at all, or one for shorter runs."""
    _, plan = plan_of_runs(target=600, summaries=False)
    assert plan.proposals[0].briefs == ()
    _, plan = plan_of_runs(target=600, gap=3, summary_least=60, summary=0.1)
    assert [bool(brief) for brief in plan.proposals[0].briefs] == [True, True]


def test_a_summary_has_room_for_a_share_of_what_it_tells_of():
    """And for 150 tokens at least."""
    view, plan = plan_of_runs(target=600, summary=0.3)
    run, brief = plan.proposals[0].spans[0], plan.proposals[0].briefs[0]
    assert brief.room == int(view.tokens_of(run.saves + run.weight) * 0.3)
    assert plan_of_runs(target=600, summary=0.0)[1].proposals[0].briefs[0].room == 150


def test_a_marker_that_finds_no_room_gives_way_to_a_notice():
    """The stand-in never takes more than its share."""
    _, plan = plan_of_runs(target=600, summary_least=30, summary=0.0)
    assert plan.proposals[0].stand_ins[0].text.endswith("left out here; history_search finds them.")


def test_a_summary_is_not_given_up_for_a_notice():
    """However short the run that it goes with."""
    session = opened(budget=100_000)
    session.add({"role": "user", "content": TASK})
    for number in range(3):
        session.add({"role": "assistant", "content": f"musing {number} " * 20})
    talk(session, 4)
    items = list(session.view.items)
    session.fold(items[1].id, items[2].id, text="Nothing came of it.")
    view = session.view
    (proposal,) = Importance(keep=8, worth=0.0).plan(view, tight(view, 0.1)).proposals
    assert [(span.hides, bool(brief)) for span, brief in zip(proposal.spans, proposal.briefs, strict=True)] == [
        (3, True)
    ]


def test_in_an_emergency_no_model_is_asked():
    """S4: code alone tells of what goes."""
    session = chatter()
    view = session.view
    plan = Importance().plan(view, tight(view, 0.4, limit=view.tokens() - 1, high=view.tokens() - 2))
    assert {brief.needed for brief in plan.proposals[0].briefs if brief} == {False}
    assert plan.notes[0] == f"importance: emergency, {view.tokens():,} tokens"
    usual = Importance().plan(view, tight(view, 0.4))
    assert {brief.needed for brief in usual.proposals[0].briefs if brief} == {True}


def test_what_was_told_before_is_told_again_with_what_goes_beside_it():
    """S14: a fold beside what goes is taken into the new one, and its count goes on."""
    session = chatter()
    items = list(session.view.items)
    session.fold(items[3].id, items[10].id, text="They looked at line 1 to 4.")
    view = session.view
    plan = Importance().plan(view, tight(view, 0.1))
    folded = next(item for item in view.items if item.fold)
    run = next(span for span in plan.proposals[0].spans if span.first <= folded.first <= span.last)
    brief = plan.proposals[0].briefs[plan.proposals[0].spans.index(run)]
    assert run.hides > folded.hides
    assert brief is not None
    without = Importance(summaries=False).plan(view, tight(view, 0.1))
    assert folded.seq not in {
        item.seq
        for item in view.items
        if any(span.first <= item.first <= span.last for span in without.proposals[0].spans)
    }


# The success criteria of source 002, each by its name.


def test_criterion_the_history_never_passes_the_stated_tokens():
    """002 11.1: whatever is added, each request fits and is valid."""
    session = opened(strategy=Importance(), budget=1_500)
    for number in range(60):
        talk(session, 1, start=number, words=10 + number % 40)
        payload = session.compose_sync()
        assert payload.tokens <= 1_500
        assert problems(payload) == []
    assert {fold.strategy for fold in session.folds} == {"importance"}


def test_criterion_what_the_user_says_is_kept_first():
    """002 11.1: of words alike and side by side, the assistant's go and the user's stay."""
    session = opened(budget=100_000)
    session.add({"role": "user", "content": TASK})
    for number in range(20):
        session.add({"role": "assistant", "content": f"remark {number} " * 20})
        session.add({"role": "user", "content": f"request {number} " * 20})
    view = session.view
    gone = hidden(view, Importance().plan(view, tight(view, 0.6)))
    who = [item.role for item in view.items if item.seq in gone]
    assert who.count("assistant") > 2 * who.count("user")
    beside = [(item.seq in gone) <= (before.seq in gone) for before, item in itertools.pairwise(view.items[1:-4])]
    assert all(beside[::2])


def test_criterion_results_of_tools_are_kept_whether_they_succeeded_or_failed():
    """002 11.1: while talk of the same age goes."""
    session = opened(budget=100_000)
    session.add({"role": "user", "content": TASK})
    for number in range(10):
        session.add({"role": "assistant", "content": [use(f"t{number}")]})
        outcome = "success: all of it passed" if number % 2 else "error: the second one failed"
        session.add({"role": "user", "content": [result(f"t{number}", outcome * 5, is_error=not number % 2)]})
        session.add({"role": "assistant", "content": f"remark {number} " * 30})
        session.add({"role": "assistant", "content": f"musing {number} " * 30})
    view = session.view
    gone = hidden(view, Importance().plan(view, tight(view, 0.6)))
    assert gone
    assert not [item for item in view.items if item.seq in gone and item.results]


def test_criterion_what_went_is_summarised():
    """002 11.1: a summary of the hidden messages stands in the request."""
    session = opened(strategy=Importance(), budget=1_500)
    talk(session, 12, words=60)
    payload = session.compose_sync()
    assert session.folds
    assert b"[Memory Summary]" in payload.body() or b"summary" in payload.body().lower()
    assert payload.report.hidden >= 5


def test_criterion_it_works_in_an_emergency():
    """002 11.1: far above the window in one step."""
    session = opened(strategy=Importance(), budget=1_500)
    talk(session, 200)
    payload = session.compose_sync()
    assert payload.tokens <= 1_500
    assert any("emergency" in note for note in payload.report.notes)


def test_criterion_a_summary_that_fails_leaves_a_notice():
    """002 11.2: the fold is whole before anything is written, so a failure costs nothing."""
    view, plan = plan_of_runs(target=600)
    proposal = check_fold(view, msgspec.structs.replace(plan.proposals[0], briefs=()))
    assert all(stand_in.text for stand_in in proposal.stand_ins)
    assert view.tokens_of(view.after(proposal.spans)) <= 600


def test_criterion_a_long_session_does_not_get_slower():
    """002 11.2: what a message says is looked at once, not at every plan."""
    session = chatter()
    view, read = session.view, []
    reader = view.read
    view.read = lambda item: (read.append(item.seq), reader(item))[1]
    strategy = Importance(summaries=False, quote=0.0)
    first = strategy.plan(view, tight(view))
    looked = len(read)
    assert looked >= len(view.items)
    assert strategy.plan(view, tight(view)) == first
    assert len(read) - looked <= 2


def test_criterion_memory_stays_small():
    """002 11.2: what is known of hidden messages is forgotten in time."""
    items = [Item(number, number, number, str(number), "user", Weight()) for number in range(5_000)]
    view, memory = plain_view(items), ScoreMemory()
    assert memory.values(view, lambda item: item.seq) == list(range(5_000))
    view.items = items[-10:]
    assert memory.values(view, lambda _: -1) == list(range(4_990, 5_000))
    view.items = items[:10]
    assert memory.values(view, lambda _: -1) == [-1] * 10


message = st.one_of(
    st.tuples(st.just("talk"), st.sampled_from(["user", "assistant"]), st.integers(1, 60)),
    st.tuples(st.just("turn"), st.integers(1, 3), st.integers(1, 60)),
    st.tuples(st.just("pin"), st.just("user"), st.integers(1, 20)),
)


def built(messages):
    session = opened(budget=1_000_000)
    session.add({"role": "user", "content": TASK})
    for number, (kind, what, words) in enumerate(messages):
        if kind == "turn":
            for each in turn(number, words, what):
                session.add(each)
        else:
            session.add({"role": what, "content": f"message {number} " + "word " * words})
            if kind == "pin":
                session.pin(session.view.items[-1].id)
    return session


@settings(max_examples=examples(0.6))
@given(
    st.lists(message, min_size=3, max_size=40), st.floats(0.05, 0.9), st.integers(0, 6), st.booleans(), st.booleans()
)
def test_a_plan_keeps_every_promise(messages, share, keep, summaries, emergency):
    """Units whole; task, pins and latest stay; within the target or all that may go is gone; pure; the same again."""
    view = built(messages).view
    total = view.tokens()
    budget = tight(view, share, limit=total - 1 if emergency else total, high=total - 2)
    before = msgspec.msgpack.encode(view.items)
    make = lambda: Importance(keep=keep, summaries=summaries, worth=0.0, aggressive=0.0)  # noqa: E731 - twice the same
    plan = make().plan(view, budget)
    assert msgspec.msgpack.encode(view.items) == before
    assert plan == make().plan(view, budget)
    gone = hidden(view, plan)
    latest = view.items[len(view.items) - max(1, keep) :]
    assert not gone & {item.seq for item in (view.items[0], *latest)}
    assert not gone & {item.seq for item in view.items if item.pinned}
    for unit in units(view.items):
        assert len({item.seq in gone for item in view.items[unit.start : unit.stop]}) == 1
    spans = [span for proposal in plan.proposals for span in check_fold(view, proposal).spans]
    assert all(isinstance(span, MessageSpan) and view.tokens_of(span.saves) > 0 for span in spans)
    left = [item for item in plan.middle if item.seq not in gone]
    if view.tokens_of(view.after(spans)) > budget.low:
        # What is left is in stretches that a notice would not make shorter.
        notice = 30
        assert all(view.tokens(item) <= notice for item in left)


def test_a_reduction_reaches_its_target():
    """B2: 80% of 8,000 is passed, and 70% or less is left, whether or not messages of low importance suffice."""
    session = Session.open(
        "s", model="gpt-4o", budget=8_000, high=0.8, low=0.7, strategy="importance", store=":memory:"
    )
    after = []
    for number in range(80):
        session.add({"role": "user", "content": f"question {number}: you must fix the error. " + "some words " * 20})
        session.add({"role": "assistant", "content": "the answer, " + "at length " * 30})
        payload = session.compose_sync()
        if payload.folds:
            after.append(payload.tokens)
    assert len(after) >= 3
    assert max(after) <= 5_600


def test_without_a_stated_low_mark_the_target_is_a_tenth_below_the_high_one():
    """B2: 70% under 80%."""
    session = Session.open("s", model="gpt-4o", budget=10_000, high=0.8, strategy="importance", store=":memory:")
    assert session.composer.budget(0).low == 7_000
