"""What a session tells of itself: the audit, folds, calls, and why a message is or is not in the window."""

import pytest

from support.conversations import result, use
from support.sessions import opened, shown, talk
from windowsill import NotFoundError
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


def folded(**settings):
    """A session whose first messages were hidden by its strategy, and the fold that did it."""
    session = opened(**settings)
    talk(session, 30)
    session.compose_sync()
    return session, session.folds[-1]


# Audit


def test_every_change_of_what_the_model_sees_leaves_a_record():
    """H6: what, when, by which strategy, why."""
    session = opened(budget=100_000)
    talk(session, 5)
    fold = session.fold("m2", "m5", text="short", reason="old news")
    session.pin("m7")
    session.unfold(fold, reason="needed after all")
    session.rewind("m7", reason="another way")
    assert [event.kind for event in session.audit] == ["fold", "mark", "unfold", "rewind"]
    told = [event.what for event in session.audit]
    assert told[0].startswith("condense by by hand: old news (")
    assert told[1:3] == ["marked m7: +pinned", f"unfolded {fold}: needed after all"]
    assert told[3] == "went from entry 14 to entry 7: another way"


def test_the_audit_says_when():
    """By the session's own clock, in order."""
    session, _ = folded()
    session.pin("m1")
    times = [event.at for event in session.audit]
    assert times == sorted(times)
    assert times[0] > 1_000


def test_what_a_strategy_did_is_in_the_audit():
    """With its name, its reason and what it cost."""
    session, fold = folded()
    event = session.audit[-1]
    assert event.id == fold.id
    assert event.what == f"condense by economy: {fold.reason} ({fold.before:,} to {fold.after:,} tokens)"


def test_the_audit_keeps_what_happened_on_a_branch_that_was_left():
    """A rewind hides nothing of what was done."""
    session, fold = folded()
    session.rewind("m3")
    assert next((event.kind, event.id) for event in session.audit) == ("fold", fold.id)
    assert session.folds == []
    assert session.audit[-1].kind == "rewind"


def test_adding_and_composing_within_the_room_leave_no_record():
    """They change nothing that was visible."""
    session = opened(budget=100_000)
    talk(session, 5)
    session.compose_sync()
    assert session.audit == []


def test_the_audit_is_the_same_after_opening_again():
    """It is kept in the store, not in memory."""
    store = MemoryStore()
    with opened(store) as session:
        talk(session, 30)
        session.compose_sync()
        session.pin("m1")
        before = session.audit
    assert opened(store).audit == before != []


# Folds


def test_a_fold_says_what_it_hid_and_what_stands_there():
    """The first and last message, how many, what it saved, the words shown."""
    session, fold = folded()
    span = fold.spans[0]
    visible = [item.id for item in session.view.items if not item.fold]
    assert (span.first, span.active, fold.active) == ("m2", True, True)
    assert visible[1] == f"m{int(span.last[1:]) + 1}"
    assert span.messages == int(span.last[1:]) - 1
    assert span.shown.startswith("[Memory Summary]")
    assert fold.saved == fold.before - fold.after


def test_before_and_after_are_what_the_view_weighed():
    """Measured on both sides of each fold, also where a block is cut again that was cut before."""
    session = opened(budget=100_000)
    talk(session, 5, words=200)
    for act in (
        lambda: session.mask("m3", text="word " * 50),
        lambda: session.mask("m3", text="word " * 20),
        lambda: session.fold("m4", "m5", text="short"),
    ):
        before = session.view.tokens()
        act()
        last = session.folds[-1]
        assert (last.before, last.after) == (before, session.view.tokens())


def test_the_folds_of_a_request_are_in_its_report_and_its_call():
    """One after the other, each beginning where the one before ended."""
    session = opened()
    talk(session, 30)
    session.add({"role": "assistant", "content": [use("big")]})
    session.add({"role": "user", "content": [result("big", "line of words\n" * 5_000)]})
    report = session.compose_sync().report
    assert len(report.folds) >= 2
    assert [fold.id for fold in report.folds] == [fold.id for fold in session.folds] == list(session.calls[-1].folds)
    assert [fold.before for fold in report.folds[1:]] == [fold.after for fold in report.folds[:-1]]
    assert report.folds[-1].after == session.view.tokens()


def test_a_fold_that_was_removed_is_told_as_such():
    """It stays in the list."""
    session, fold = folded()
    session.unfold(fold.id)
    assert [(each.id, each.active) for each in session.folds] == [(fold.id, False)]


# Calls


def test_a_call_says_what_was_sent():
    """Tokens, what a cache could serve, the folds that were made for it."""
    session = opened()
    talk(session, 3)
    payloads = [session.compose_sync(system="mend it")]
    talk(session, 30, start=3)
    payloads.append(session.compose_sync(system="mend it"))
    assert [call.tokens for call in session.calls] == [payload.tokens for payload in payloads]
    assert [call.cached for call in session.calls] == [payload.report.stable for payload in payloads]
    assert [bool(call.folds) for call in session.calls] == [False, True]
    assert {call.model for call in session.calls} == {"claude-sonnet-4-5"}


# Explain


def test_a_hidden_message_is_explained_by_its_fold():
    """V4: by which fold, of which strategy, by which rule."""
    session, fold = folded()
    told = session.explain("m2")
    assert (told.visible, told.message, told.call) == (False, "m2", None)
    assert told.why == f"hidden by condense {fold.id} of economy: {fold.reason}"
    assert told.folds == (fold,)
    assert "passed 1,455" in told.why


def test_a_visible_message_is_explained():
    """V4: because it is the task, because it is pinned, because nothing hides it."""
    session, _ = folded()
    last = session.view.items[-1].id
    session.pin(last)
    assert [session.explain(id).why for id in ("m1", last)] == ["it is the task", "it is pinned"]
    assert session.explain(session.view.items[-2].id).why.startswith("no fold hides it: economy waits, as ")
    assert session.explain("m1").visible


def test_a_message_that_is_cut_is_explained():
    """V4: it is there, and this fold cut it."""
    session = opened(budget=100_000)
    talk(session, 3)
    mask = session.mask("m3", reason="long")
    told = session.explain("m3")
    assert (told.visible, told.why) == (True, "it is shown, with a part of it cut")
    assert [fold.id for fold in told.folds] == [mask]


def test_nested_folds_are_told_from_the_outside():
    """V4: the one that hides it now comes first."""
    session = opened(budget=100_000)
    talk(session, 6)
    inner = session.fold("m2", "m5", text="inner")
    outer = session.fold(f"{inner}:0", "m7", text="outer")
    told = session.explain("m3")
    assert [fold.id for fold in told.folds] == [outer, inner]
    assert told.why.endswith("; inside it is 1 earlier fold")
    session.unfold(outer)
    assert [fold.id for fold in session.explain("m3").folds] == [inner]


def test_a_past_call_is_explained_as_it_was():
    """V4: folded later, unfolded later, added later."""
    session = opened(budget=100_000)
    talk(session, 6)
    session.compose_sync()
    fold = session.fold("m2", "m5", text="short")
    session.compose_sync()
    session.unfold(fold)
    late = session.add("one more")
    first, second = (call.id for call in session.calls)
    assert [session.explain("m3", call=call).visible for call in (first, second)] == [True, False]
    assert session.explain("m3").visible
    assert session.explain("m3", call=second).call == second
    assert [each.id for each in session.explain("m3", call=second).folds] == [fold]
    assert session.explain(late, call=second).why == "it was added later"
    assert not session.explain(late, call=second).visible


def test_a_message_of_a_branch_that_was_left_is_explained():
    """V4: it is not gone, it is elsewhere."""
    session = opened()
    talk(session, 3)
    session.rewind("m3")
    told = session.explain("m5")
    assert (told.visible, told.why) == (False, "it is on a branch that was left by a rewind")


def test_what_is_explained_is_what_is_shown():
    """V4: for every message of a session with folds, masks, pins and a rewind."""
    session = opened()
    talk(session, 20)
    session.pin("m5")
    session.compose_sync()
    session.rewind("m31")
    talk(session, 20, start=40)
    session.compose_sync()
    visible = {id for id, _ in shown(session)}
    for message in session.messages():
        assert session.explain(message.id).visible is (message.id in visible)


@pytest.mark.parametrize(("message", "call"), [("m99", None), ("f1", None), ("m1", "c99"), ("m1", "m1")])
def test_what_is_not_there_cannot_be_explained(message, call):
    """Neither a message nor a call."""
    session, _ = folded()
    with pytest.raises(NotFoundError, match=f"'{call or message}'"):
        session.explain(message, call=call)
