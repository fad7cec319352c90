"""Folds by hand: what they hide, what stands in, and what is refused."""

import pytest

from support.conversations import result, text_block, use
from support.sessions import TASK, kept, opened, problems, shown, talk, turn
from windowsill import FoldError, NotFoundError

pytestmark = pytest.mark.unit


def roomy(turns=5, words=30):
    """A session with room for everything: m1 is the task, then call, result, call, result."""
    session = opened(budget=100_000)
    talk(session, turns, words=words)
    return session


def refused(session, act, match):
    """The act is refused with this, and nothing changed."""
    before, entries = shown(session), session.journal.version
    with pytest.raises(FoldError, match=match):
        act()
    assert shown(session) == before
    assert session.journal.version == entries


# Folding


def test_a_text_stands_in_for_what_is_hidden():
    """Where it was, with the given words, and the request stays valid."""
    session = roomy()
    fold = session.fold("m2", "m5", text="Looked at two files.")
    assert [item.id for item in session.view.items][:3] == ["m1", f"{fold}:0", "m6"]
    assert session.view.read(session.view.items[1]).text == "Looked at two files."
    assert problems(session.compose_sync()) == []


def test_without_a_text_a_marker_says_what_was_there():
    """How many messages, and which tools."""
    session = roomy()
    session.fold("m2", "m9")
    text = session.view.read(session.view.items[1]).text
    assert "8 earlier messages" in text
    assert "read x4" in text


def test_the_users_words_are_quoted_by_a_marker():
    """A wish of the user survives the hiding of its message."""
    session = roomy(2)
    session.add({"role": "assistant", "content": "And now?"})
    session.add({"role": "user", "content": "Never touch the billing table."})
    talk(session, 4, start=10, words=100)
    session.fold("m2", "m15")
    assert "Never touch the billing table." in session.view.read(session.view.items[1]).text


def test_one_message_may_be_folded():
    """Where it is a unit of its own."""
    session = roomy(1)
    session.add({"role": "assistant", "content": "a long story " * 50})
    session.fold("m4", text="A story.")
    assert [item.hides for item in session.view.items] == [0, 0, 0, 1]


def test_a_fold_may_hide_an_inner_one():
    """Named by the first and last visible item."""
    session = roomy()
    inner = session.fold("m2", "m5", text="inner")
    session.fold(f"{inner}:0", "m7", text="outer")
    assert [item.hides for item in session.view.items] == [0, 6, 0, 0, 0, 0]
    assert len(kept(session)) == 11


def test_what_was_decided_is_kept_with_the_fold():
    """Its kind, its reason, and that it was made by hand."""
    session = roomy()
    session.fold("m2", "m5", text="short", kind="prune", reason="old news")
    fold = session.folds[0]
    assert (fold.kind, fold.reason, fold.strategy) == ("prune", "old news", "by hand")
    assert fold.before - fold.after == fold.saved == fold.spans[0].saved > 0
    assert session.view.tokens() == fold.after


@pytest.mark.parametrize(("first", "last"), [("m3", "m5"), ("m2", "m4"), ("m2", "m2"), ("m3", "m3")])
def test_a_fold_that_would_split_a_unit_is_refused(first, last):
    """A call and its result go together."""
    session = roomy()
    refused(session, lambda: session.fold(first, last, text="x"), "split a tool call from its result")


def test_the_task_is_not_hidden():
    """Whatever stands around it."""
    session = roomy()
    refused(session, lambda: session.fold("m1", "m5", text="x"), "may not hide the task")


def test_a_pin_is_not_hidden_until_it_is_taken_off():
    """The user said so."""
    session = roomy()
    session.pin("m3")
    refused(session, lambda: session.fold("m2", "m5", text="x"), "may not hide what is pinned")
    session.pin("m3", off=True)
    session.fold("m2", "m5", text="x")


def test_a_fold_that_saves_nothing_is_refused():
    """It would only cost the cached prefix."""
    session = roomy()
    refused(session, lambda: session.fold("m2", "m3", text="word " * 500), "does not make the view smaller")


def test_the_older_message_is_named_first():
    """The other way round is a mistake, not nothing."""
    session = roomy()
    refused(session, lambda: session.fold("m5", "m2", text="x"), "comes after")


def test_what_is_hidden_already_cannot_be_folded_again():
    """Only what the view shows."""
    session = roomy()
    session.fold("m2", "m5", text="x")
    refused(session, lambda: session.fold("m3", "m7", text="y"), "'m3' is not visible")


@pytest.mark.parametrize(("first", "last"), [("m99", "m3"), ("m2", "m99"), ("", "m3"), ("nothing", None)])
def test_a_message_that_is_not_there_is_named(first, last):
    """Another error than for one that is hidden."""
    session = roomy()
    with pytest.raises(NotFoundError, match="has no message"):
        session.fold(first, last, text="x")


def test_a_running_call_is_not_hidden():
    """Its result is still to come, and would be an orphan."""
    session = roomy(2)
    session.add({"role": "assistant", "content": [text_block("a long story " * 50), use("running")]})
    refused(session, lambda: session.fold("m6", text="x"), "running|split")


def test_the_last_result_is_not_hidden_alone():
    """Nor a unit that a late result closes in part."""
    session = roomy(1)
    session.add({"role": "assistant", "content": [use("a"), use("b")]})
    session.add({"role": "user", "content": [result("a", "word " * 50)]})
    session.add({"role": "user", "content": [result("b", "word " * 50)]})
    refused(session, lambda: session.fold("m4", "m5", text="x"), "split")
    session.fold("m4", "m6", text="x")
    assert problems(session.compose_sync()) == []


# Masking


def test_a_mask_hides_the_output_and_keeps_the_call():
    """The message stays, its result says that something was there, and the pair is whole."""
    session = roomy()
    session.mask("m3")
    shown_result = session.view.read(session.view.items[2]).results[0]
    assert shown_result.tool_use_id == "t0_0"
    assert shown_result.content[0].text == "[tool output trimmed; ref=o3; 1 line]"
    assert b"line 0 " in kept(session)[2]
    assert problems(session.compose_sync()) == []


def test_all_outputs_of_parallel_calls_are_masked():
    """Each with its own id and its error flag, with the words that were given."""
    session = roomy(1)
    session.add({"role": "assistant", "content": [use("a"), use("b")]})
    failed = result("b", "word " * 50, is_error=True)
    session.add({"role": "user", "content": [result("a", "word " * 50), failed]})
    session.mask("m5", text="(seen)")
    results = session.view.read(session.view.items[-1]).results
    assert [(each.tool_use_id, each.is_error, each.content[0].text) for each in results] == [
        ("a", False, "(seen)"),
        ("b", True, "(seen)"),
    ]


def test_several_messages_are_masked_by_one_fold():
    """One entry, a span for each output, with the reason."""
    session = roomy()
    session.mask("m3", "m5", "m7", reason="too long")
    assert len(session.folds) == 1
    assert [(span.first, span.block) for span in session.folds[0].spans] == [("m3", 0), ("m5", 0), ("m7", 0)]
    assert (session.folds[0].kind, session.folds[0].reason) == ("mask", "too long")


def test_a_message_without_output_has_nothing_to_mask():
    """Nor has none at all."""
    session = roomy()
    refused(session, lambda: session.mask("m1", "m2"), "holds no tool output")
    refused(session, session.mask, "does not make the view smaller")


def test_a_mask_never_grows_the_text():
    """O9: an output shorter than the placeholder stays as it is."""
    session = opened(budget=100_000)
    session.add({"role": "user", "content": TASK})
    session.add({"role": "assistant", "content": [use("a")]})
    session.add({"role": "user", "content": [result("a", "ok")]})
    refused(session, lambda: session.mask("m3"), "does not make the view smaller")


def test_of_several_outputs_only_those_that_shrink_are_masked():
    """O9: never grows the text, also where another one saves much."""
    session = opened(budget=100_000)
    session.add({"role": "user", "content": TASK})
    session.add({"role": "assistant", "content": [use("a"), use("b")]})
    session.add({"role": "user", "content": [result("a", "ok"), result("b", "word " * 200)]})
    session.mask("m3")
    results = session.view.read(session.view.items[-1]).results
    assert results[0].content[0].text == "ok"
    assert results[1].content[0].text.startswith("[tool output trimmed; ref=o3.2; 1 line; read a.py]")


def test_a_masked_output_is_not_masked_twice():
    """O9: it is sticky; the second time there is nothing to save."""
    session = roomy()
    session.mask("m3")
    refused(session, lambda: session.mask("m3"), "does not make the view smaller")


def test_a_hidden_output_cannot_be_masked():
    """Only what the view shows."""
    session = roomy()
    session.fold("m2", "m3", text="x")
    refused(session, lambda: session.mask("m3"), "not visible")


def test_a_pinned_output_is_not_masked():
    """Never hidden means never hidden, in part either."""
    session = roomy()
    session.pin("m3")
    refused(session, lambda: session.mask("m3"), "pinned")


def test_a_mask_inside_a_fold_comes_back_with_it():
    """And goes when it is removed itself."""
    session = roomy()
    before = shown(session)
    mask = session.mask("m3")
    between = shown(session)
    fold = session.fold("m2", "m5", text="x")
    session.unfold(fold)
    assert shown(session) == between
    session.unfold(mask)
    assert shown(session) == before


def test_folds_by_hand_are_there_after_opening_again(tmp_path):
    """What was decided is kept."""
    with opened(tmp_path, budget=100_000) as session:
        for message in [{"role": "user", "content": TASK}, *turn(0), *turn(1), *turn(2)]:
            session.add(message)
        session.fold("m2", "m3", text="short")
        session.mask("m5")
        before = shown(session)
    with opened(tmp_path, budget=100_000) as again:
        assert shown(again) == before
