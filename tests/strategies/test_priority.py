"""Priority: the additive score of source 004, its reasons and classes, and what stays whatever the target says."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import result, use
from support.examples import examples
from support.sessions import opened, problems, talk, turn
from windowsill import SettingError
from windowsill.budget import Budget
from windowsill.history.proposals import check_fold
from windowsill.history.view import units
from windowsill.strategies.priority import Priority

pytestmark = pytest.mark.unit

TASK = "Repair the login handler of the web shop"


def said(*messages):
    """A session: the task, then these messages (text of the assistant, or a native message), then 20 more."""
    session = opened(budget=1_000_000)
    session.add({"role": "user", "content": TASK})
    for message in messages:
        session.add(message if isinstance(message, dict) else {"role": "assistant", "content": message})
    for number in range(20):
        session.add({"role": "assistant", "content": f"filler {number}"})
    return session


def score(session, place=1, **settings):
    return Priority(**settings).score(session.view)[place]


def hidden(view, plan):
    runs = [span for proposal in plan.proposals for span in proposal.spans]
    return {item.seq for item in view.items for run in runs if run.first <= item.seq <= run.last}


def tight(view, share, **marks):
    total = view.tokens()
    return Budget(**{"limit": total, "high": total - 1, "low": int(total * share), "window": total, **marks})


@pytest.mark.parametrize(
    ("message", "points"),
    [
        ("some words", 5),
        ({"role": "user", "content": "some words"}, 10),
        ({"role": "assistant", "content": [use("t")]}, 5 + 15),
        ("the login handler of the shop is fine", 5 + 25),
        ("we will do it tomorrow", 5 + 20),
        ("Let’s do it tomorrow", 5 + 20),  # noqa: RUF001 - the apostrophe that models write
        ("明日やりましょう。そうすることに決めました", 5 + 20),
        ({"role": "user", "content": "we should mend the login handler of the shop"}, 10 + 25 + 20),
    ],
)
def test_the_score_is_the_sum_of_its_points(message, points):
    """S5: role 10 or 5, tools 15, words of the task 25, decisions 20; 20 messages later nothing for its age."""
    more = [{"role": "user", "content": [result("t")]}] if isinstance(message, dict) and "use" in str(message) else []
    session = said(message, *more)
    assert score(session).value == points


def test_recency_is_twenty_less_the_age():
    """S5: the newest has 20 more, each one before it one less, down to none."""
    found = [score(said("words"), place).value for place in (-1, -2, -20, -21)]
    assert found == [5 + 20, 5 + 19, 5 + 1, 5]


def test_a_mark_counts_thirty_and_what_was_condensed_ten_less():
    """S5: and the reasons say so."""
    session = said("some words", *turn(0, words=60))
    items = list(session.view.items)
    session.mark(items[1].id, add=["important"])
    assert score(session).value == 5 + 30
    assert [str(reason) for reason in score(session).reasons] == [
        "assistant message (+5)",
        "recency (+0)",
        "marked as important (+30)",
    ]
    session.fold(items[2].id, items[3].id)
    assert score(session, 2).value == 10 - 10


@pytest.mark.parametrize(
    ("points", "category"),
    [(70, "critical"), (69, "important"), (50, "important"), (49, "normal"), (30, "normal"), (29, "low"), (-10, "low")],
)
def test_the_classes_begin_at_70_50_and_30(points, category):
    """S5: critical, important, normal, low."""
    assert Priority().category(points) == category


def test_a_score_carries_its_class():
    """S5: a user's decision on the task, marked as important, is critical."""
    session = said({"role": "user", "content": "we should mend the login handler of the shop"})
    session.mark(session.view.items[1].id, add=["important"])
    assert (score(session).value, score(session).category) == (85, "critical")


@pytest.mark.parametrize(
    ("setting", "value", "points"),
    [
        ("assistant", 7, 7 + 20),
        ("decision", 1, 5 + 1),
        ("decisions", ("Never Said",), 5),
        ("keywords", ("Tomorrow",), 5 + 20 + 25),
        ("keywords", ("zebra",), 5 + 20),
        ("recency", 22, 5 + 20 + 2),
    ],
)
def test_points_and_words_are_settings(setting, value, points):
    """Each moves the score of the same message."""
    assert score(said("we will do it tomorrow"), **{setting: value}).value == points


def test_the_words_of_the_task_count_when_enough_of_them_are_there():
    """004: more than three in ten of them, unless words are stated."""
    session = said("the login is fine", "the login handler is fine")
    assert [score(session, place).value for place in (1, 2)] == [5, 5 + 25]
    assert score(session, 1, overlap=0.1).value == 5 + 25


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("user", -1),
        ("condensed", 1),
        ("overlap", 2),
        ("keep", -1),
        ("critical", 40),
        ("decisions", (" ",)),
        ("target", 0),
    ],
)
def test_a_setting_out_of_range_is_refused(setting, value):
    """With its name."""
    with pytest.raises(SettingError, match=setting):
        Priority(**{setting: value})


def marked(count, words=60):
    """A session in which the second to `count`-th messages are critical, and many are not."""
    session = opened(budget=1_000_000)
    session.add({"role": "user", "content": TASK})
    for number in range(count):
        session.add({"role": "user", "content": f"we should mend the login handler {number} " + "word " * words})
        session.mark(session.view.items[-1].id, add=["important"])
    for number in range(30):
        session.add({"role": "assistant", "content": f"musing {number} " + "word " * words})
    return session


def test_the_best_stay_within_the_target():
    """S5: greedy, highest first; of those alike the newer."""
    view = marked(2).view
    plan = Priority().plan(view, tight(view, 0.85))
    gone = hidden(view, plan)
    assert view.tokens_of(view.after(plan.proposals[0].spans)) <= view.tokens() * 0.85
    assert gone == set(range(min(gone), max(gone) + 1))
    assert view.items[3].seq in gone
    assert not {view.items[1].seq, view.items[2].seq} & gone
    assert plan.notes == ()


def test_critical_messages_stay_above_the_target_and_it_is_reported():
    """S5: when there are more of them than the target takes; the latest of them is the request, which may not go."""
    view = marked(15).view
    plan = Priority().plan(view, tight(view, 0.2))
    gone = hidden(view, plan)
    after = view.tokens_of(view.after(plan.proposals[0].spans))
    assert not gone & {item.seq for item in view.items[1:16]}
    assert after > int(view.tokens() * 0.2)
    assert len(plan.notes) == 1
    assert plan.notes[0].startswith("priority: 14 critical units (")
    assert plan.notes[0].endswith(f"above the target of {int(view.tokens() * 0.2):,}")


def test_critical_messages_never_pass_the_window():
    """S5: the lowest of them go, and that is reported too."""
    view = marked(15).view
    total = view.tokens()
    plan = Priority().plan(view, tight(view, 0.1, limit=total // 3, high=total // 4))
    after = view.tokens_of(view.after(plan.proposals[0].spans))
    gone = hidden(view, plan)
    kept = [item for item in view.items[1:16] if item.seq not in gone]
    assert after <= total // 3
    assert 0 < len(kept) < 15
    assert any("go: they alone would pass the limit" in note for note in plan.notes)


def test_every_request_of_a_session_fits_and_is_valid():
    """S11: turn by turn, with nothing that needed a fallback."""
    session = opened(strategy=Priority(), budget=1_500)
    for number in range(60):
        talk(session, 1, start=number, words=10 + number % 40)
        payload = session.compose_sync()
        assert payload.tokens <= 1_500
        assert problems(payload) == []
    assert {fold.strategy for fold in session.folds} == {"priority"}


message = st.one_of(
    st.tuples(st.just("talk"), st.sampled_from(["user", "assistant"]), st.integers(1, 60)),
    st.tuples(st.just("turn"), st.integers(1, 3), st.integers(1, 60)),
    st.tuples(st.sampled_from(["pinned", "important"]), st.just("user"), st.integers(1, 20)),
)


@settings(max_examples=examples(0.6))
@given(st.lists(message, min_size=3, max_size=40), st.floats(0.05, 0.9), st.floats(0.3, 1.0), st.integers(0, 6))
def test_a_plan_keeps_every_promise(messages, share, window, keep):
    """Units whole; task, pins and latest stay; critical ones unless the window is passed; pure; the same again."""
    session = opened(budget=1_000_000)
    session.add({"role": "user", "content": TASK})
    for number, (kind, what, words) in enumerate(messages):
        for each in (
            turn(number, words, what) if kind == "turn" else [{"role": what, "content": "login handler " * words}]
        ):
            session.add(each)
        if kind in {"pinned", "important"}:
            session.mark(session.view.items[-1].id, add=[kind])
    view = session.view
    limit = max(2, int(view.tokens() * window))
    budget = tight(view, share, limit=limit, high=limit - 1, low=min(limit - 1, int(view.tokens() * share)))
    before = msgspec.msgpack.encode(view.items)
    strategy = Priority(keep=keep, critical=60, worth=0.0)
    plan = strategy.plan(view, budget)
    assert msgspec.msgpack.encode(view.items) == before
    assert plan == Priority(keep=keep, critical=60, worth=0.0).plan(view, budget)
    gone = hidden(view, plan)
    assert not gone & {item.seq for item in (view.items[0], *view.items[len(view.items) - max(1, keep) :])}
    assert not gone & {item.seq for item in view.items if item.pinned}
    for unit in units(view.items):
        assert len({item.seq in gone for item in view.items[unit.start : unit.stop]}) == 1
    spans = [span for proposal in plan.proposals for span in check_fold(view, proposal).spans]
    after = view.tokens_of(view.after(spans))
    classes = {each.seq: each.category for each in strategy.score(view)}
    left = [item for item in plan.middle if item.seq not in gone and view.tokens(item) > 30]
    if after > limit:
        assert not left
    elif after > budget.low:
        shown = {item.seq for item in left}
        for unit in units(view.items):
            inside = {item.seq for item in view.items[unit.start : unit.stop]}
            assert not inside & shown or any(classes[seq] == "critical" for seq in inside)
