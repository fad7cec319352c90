from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowsill
from support.transcript_lines import PIXEL, SESSION, claude, jsonl, messages, read_transcript, result, texts, use
from windowsill.messages import Usage

pytestmark = pytest.mark.unit


def test_session_has_id_model_times_and_usage():
    """A recorded session says what the file says of it."""
    used = {"input_tokens": 3, "output_tokens": 9, "cache_read_input_tokens": 100}
    found = read_transcript(
        jsonl(
            {"type": "summary", "summary": "Fix it", "leafUuid": "z"},
            claude("a", None, "user", "Fix the bug."),
            claude("b", "a", "assistant", [{"type": "text", "text": "Done."}], message={"id": "m1", "usage": used}),
        )
    )
    (session,) = found.sessions
    assert (found.agent, session.id, session.format) == ("claude-code", SESSION, "anthropic")
    assert session.model == "claude-opus-4-6"
    assert session.times == (1770369879.155, 1770369879.155)
    assert [(each.message, each.usage) for each in session.charges] == [(1, Usage(input=3, output=9, cache_read=100))]
    assert messages(session)[0] == {"role": "user", "content": "Fix the bug."}
    assert found.skipped == {"summary": 1}


def test_lines_of_one_answer_are_one_message():
    """Blocks that share a message id are joined in order, and the last usage counts."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s1g=="}
    lines = [claude("a", None, "user", "Look."), claude("b", "a", "assistant", [thought], message=_part(1))]
    lines.append(claude("c", "b", "assistant", [use("t1", path="x")], message=_part(8)))
    lines.append(claude("d", "c", "user", [result("t1")]))
    (session,) = read_transcript(jsonl(*lines)).sessions
    assert messages(session)[1] == {"role": "assistant", "content": [thought, use("t1", path="x")]}
    assert [each.usage.output for each in session.charges] == [8]


def _part(output):
    return {"id": "m1", "usage": {"output_tokens": output}}


PARALLEL = {
    "each result on its call": [("r1", "b", "t1"), ("r2", "c", "t2")],
    "one after the other": [("r1", "c", "t1"), ("r2", "r1", "t2")],
}


@pytest.mark.parametrize("shape", PARALLEL.values(), ids=PARALLEL)
def test_results_of_parallel_calls_are_one_message(shape):
    """No result is lost, however the lines hang together, and the request is sound."""
    lines = [claude("a", None, "user", "Look.")]
    lines += [claude("b", "a", "assistant", [use("t1")], message={"id": "m1"})]
    lines += [claude("c", "b", "assistant", [use("t2")], message={"id": "m1"})]
    lines += [claude(uuid, parent, "user", [result(call)]) for uuid, parent, call in shape]
    lines += [claude("z", "r2", "assistant", [{"type": "text", "text": "Both."}], message={"id": "m2"})]
    (session,) = read_transcript(jsonl(*lines)).sessions
    assert messages(session)[2] == {"role": "user", "content": [result("t1"), result("t2")]}
    assert windowsill.validate(messages(session), format="anthropic") == []


def test_call_that_ran_before_the_answer_was_complete():
    """A result between two lines of one answer comes after the answer."""
    lines = [claude("a", None, "user", "Look.")]
    lines += [
        claude("b", "a", "assistant", [use("t1")], message={"id": "m1"}),
        claude("r1", "b", "user", [result("t1")]),
    ]
    lines += [
        claude("c", "r1", "assistant", [use("t2")], message={"id": "m1"}),
        claude("r2", "c", "user", [result("t2")]),
    ]
    (session,) = read_transcript(jsonl(*lines)).sessions
    assert texts(session) == ["Look.", "tool_use tool_use", "tool_result tool_result"]


def test_newest_branch_wins_and_the_other_is_a_session_of_its_own():
    """After going back, the conversation is what came last; the answer that was left keeps its way to it."""
    lines = [claude("a", None, "user", "one"), _says("b", "a", "two"), claude("c", "b", "user", "three")]
    lines += [_says("d", "c", "old end"), claude("e", "b", "user", "three again"), _says("f", "e", "new end")]
    main, other = read_transcript(jsonl(*lines)).sessions
    assert (main.id, texts(main)) == (SESSION, ["one", "two", "three again", "new end"])
    assert (other.id, texts(other)) == (f"{SESSION}-branch-1", ["one", "two", "three", "old end"])


def _says(uuid, parent, text, **fields):
    return claude(uuid, parent, "assistant", [{"type": "text", "text": text}], message={"id": f"m-{uuid}"}, **fields)


def test_edited_prompt_without_an_answer_is_no_session():
    """What no model ever answered is counted and left out."""
    lines = [claude("a", None, "user", "typo"), claude("b", None, "user", "right"), _says("c", "b", "yes")]
    found = read_transcript(jsonl(*lines))
    assert [texts(each) for each in found.sessions] == [["right", "yes"]]
    assert found.skipped == {"abandoned": 1}


def test_sidechains_are_sessions_of_their_own():
    """The work of a sub-agent stands apart, under its name or its number."""
    lines = [claude("a", None, "user", "go"), _says("b", "a", "sent them")]
    lines += [claude("s", None, "user", "search", isSidechain=True), _says("t", "s", "found", isSidechain=True)]
    lines += [claude("p", None, "user", "plan", isSidechain=True, agentId="77aa")]
    lines += [_says("q", "p", "planned", isSidechain=True, agentId="77aa"), claude("c", "b", "user", "thanks")]
    found = {each.id.removeprefix(SESSION): texts(each) for each in read_transcript(jsonl(*lines)).sessions}
    assert found == {
        "": ["go", "sent them", "thanks"],
        "-side-1": ["search", "found"],
        "-agent-77aa": ["plan", "planned"],
    }


@pytest.mark.parametrize("linked", [True, False])
def test_compaction_starts_a_new_part(linked):
    """What came before the summary is one session, what came after another."""
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "x", "parentUuid": None, "sessionId": SESSION}
    boundary |= {"logicalParentUuid": "b"} if linked else {}
    lines = [claude("a", None, "user", "one"), _says("b", "a", "two"), boundary]
    lines += [claude("s", "x", "user", "This session continues ...", isCompactSummary=True), _says("c", "s", "three")]
    first, second = read_transcript(jsonl(*lines)).sessions
    assert (first.id, texts(first)) == (SESSION, ["one", "two"])
    assert (second.id, texts(second)) == (f"{SESSION}-part-2", ["This session continues ...", "three"])


@pytest.mark.parametrize("parent", ["b", None])
def test_summary_without_a_boundary_starts_a_new_part_too(parent):
    """Earlier versions wrote only the summary, at the end of the conversation or apart from it."""
    lines = [claude("a", None, "user", "one"), _says("b", "a", "two")]
    lines += [claude("s", parent, "user", "Summary", isCompactSummary=True), _says("c", "s", "three")]
    first, second = read_transcript(jsonl(*lines)).sessions
    assert (first.id, texts(first)) == (SESSION, ["one", "two"])
    assert (second.id, texts(second)) == (f"{SESSION}-part-2", ["Summary", "three"])


def test_sidechain_that_hangs_on_the_conversation_begins_by_itself():
    """A sub-agent never saw what came before its prompt."""
    lines = [claude("a", None, "user", "go"), _says("b", "a", "sent")]
    lines += [claude("s", "b", "user", "search", isSidechain=True), _says("t", "s", "found", isSidechain=True)]
    assert [texts(each) for each in read_transcript(jsonl(*lines)).sessions] == [["go", "sent"], ["search", "found"]]


def test_broken_and_torn_lines_do_not_hide_the_others():
    """Each broken line is told with its number; what followed it is joined to what came before."""
    torn = jsonl(claude("e", "d", "user", "more"))[:-30]
    lines = [claude("a", None, "user", "one"), b"{oops", _says("c", "b", "two"), b"[1]", claude("d", "c", "user", "ok")]
    lines.append(claude("x", "d", "user", 7))
    found = read_transcript(jsonl(*lines) + torn)
    assert [texts(each) for each in found.sessions] == [["one", "two", "ok"]]
    assert [each.line for each in found.troubles] == [2, 4, 6, 7]
    assert "ends too early" in found.troubles[-1].why


def test_errors_that_the_agent_wrote_itself_are_no_answers():
    """Synthetic answers and progress are counted, and what follows them stays in its place."""
    wrong = claude("b", "a", "assistant", [{"type": "text", "text": "API Error"}], message={"model": "<synthetic>"})
    progress = {"type": "progress", "uuid": "p", "parentUuid": "b", "sessionId": SESSION}
    found = read_transcript(jsonl(claude("a", None, "user", "one"), wrong, progress, _says("c", "p", "two")))
    assert [texts(each) for each in found.sessions] == [["one", "two"]]
    assert found.skipped == {"progress": 1, "synthetic": 1}


def test_pictures_and_orphan_results_stay_as_they_are():
    """Nothing is mended here: that is done, and told, when a request is made."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    lines = [claude("a", None, "user", [image, {"type": "text", "text": "See?"}]), _says("b", "a", "Yes.")]
    lines.append(claude("c", "b", "user", [result("gone")]))
    (session,) = read_transcript(jsonl(*lines)).sessions
    assert messages(session)[0]["content"][0] == image
    assert messages(session)[2]["content"] == [result("gone")]


def test_half_a_character_does_not_break_a_line():
    """An output that was cut inside an emoji is read with a mark in its place; whole emoji stay."""
    line = jsonl(claude("a", None, "user", "cut X, whole \U0001f600")).replace(b"cut X", rb"cut \ud83d, \\ud83d")
    (session,) = read_transcript(line + jsonl(_says("b", "a", "fine"))).sessions
    assert texts(session)[0] == "cut \ufffd, \\ud83d, whole \U0001f600"


def test_line_that_was_written_twice_counts_once():
    """A resumed session repeats lines: the first stays."""
    line = claude("a", None, "user", "one")
    found = read_transcript(jsonl(line, line, _says("b", "a", "two")))
    assert ([texts(each) for each in found.sessions], found.skipped) == ([["one", "two"]], {"repeated": 1})


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.integers(-1, 12)), min_size=1, max_size=12))
def test_every_answer_is_in_some_session(shape):
    """Whatever the tree looks like, no answer of a model is lost."""
    lines = [
        claude(
            str(n), str(p) if 0 <= p < n else None, role, [{"type": "text", "text": f"t{n}"}], message={"id": str(n)}
        )
        for n, (role, p) in enumerate(shape)
    ]
    found = read_transcript(jsonl(*lines))
    answers = {f"t{n}" for n, (role, _) in enumerate(shape) if role == "assistant"}
    assert answers <= {text for each in found.sessions for text in texts(each)}
    assert len({each.id for each in found.sessions}) == len(found.sessions)
