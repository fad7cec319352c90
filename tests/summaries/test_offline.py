"""The offline writer as a whole."""

import functools
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import broken_anthropic, broken_openai
from support.examples import examples
from windowsill import providers
from windowsill.history.folds import Brief
from windowsill.history.proposals import frame, unframe
from windowsill.messages import Message, Text, ToolResult, ToolUse, text_message
from windowsill.summaries import Material, Writer
from windowsill.summaries.digest import CAPS, load, merge_stored
from windowsill.summaries.offline import LARGEST, Offline
from windowsill.tokens import counter

pytestmark = pytest.mark.unit

count = counter("bytes/4").count
styles = st.sampled_from(["summary", "compact", "condense", "state"])
SCHEMA = {"type": "object", "properties": {"destination": {"type": "string"}, "path": {"type": "string"}}}


def messages_of(native, format):
    read_one = providers.get(format).read_message
    return tuple(
        Message(role=one.role, blocks=one.blocks, id=f"m{number}")
        for number, one in enumerate(read_one(json.dumps(each).encode(), "") for each in native)
    )


conversations = st.one_of(
    broken_anthropic.map(lambda native: messages_of(native, "anthropic")),
    broken_openai.map(lambda native: messages_of(native, "openai")),
)


def session(turns):
    """A coding session: a task, then reads, edits and test runs."""
    messages = [text_message("user", "Mend the import. Never push to main.", id="m0")]
    for turn in range(turns):
        body = "\n".join(f"{line}\t    value_{turn}_{line} = compute({line})" for line in range(1, 60))
        uses = (
            ToolUse(id=f"r{turn}", name="view", arguments=json.dumps({"path": f"src/mod{turn}.py"})),
            ToolUse(id=f"x{turn}", name="run", arguments=json.dumps({"cmd": f"pytest tests/test_{turn}.py"})),
        )
        results = (
            ToolResult(tool_use_id=f"r{turn}", content=(Text(text=body),)),
            ToolResult(tool_use_id=f"x{turn}", content=(Text(text="error: broken" if turn % 2 else "3 passed"),)),
        )
        messages.append(Message(role="assistant", blocks=uses, id=f"a{turn}"))
        messages.append(Message(role="user", blocks=results, id=f"b{turn}"))
    return tuple(messages)


def material(messages, tokens=None, digest=None):
    weight = sum(
        count(block.text if isinstance(block, Text) else block.arguments if isinstance(block, ToolUse) else inner)
        for message in messages
        for block in message.blocks
        for inner in (
            [each.text for each in block.content if isinstance(each, Text)] if isinstance(block, ToolResult) else [""]
        )
    )
    return Material(
        messages=tuple(messages), tokens=weight if tokens is None else tokens, count=count, digest=digest or {}
    )


def test_it_is_a_writer():
    """It fulfils the protocol, under its name."""
    assert isinstance(Offline(), Writer)
    assert Offline.name == "offline"


@given(conversations, styles, st.integers(0, 400), st.integers(0, 600))
def test_any_messages_give_a_text_that_fits_and_is_the_same_each_time(messages, style, room, tokens):
    """It never raises, never grows, stays in its room, can be read back, and gives the same bytes."""
    brief = Brief(style=style, room=room, schema=SCHEMA)
    first = Offline().write(brief, material(messages, tokens))
    assert first == Offline().write(brief, material(messages, tokens))
    if first.text:
        whole = frame(first.text, source="offline")
        assert count(whole) < tokens
        assert not room or count(whole) <= room
        assert unframe(whole).text == first.text
    assert json.loads(json.dumps(first.digest)) == first.digest


@settings(max_examples=examples(0.6))
@given(conversations, st.integers(0, 9))
def test_folding_in_two_steps_keeps_what_folding_at_once_keeps(messages, cut):
    """The digest of a summary that was updated has the rules, files and requests of one written at once."""
    once = load(Offline().write(Brief(), material(messages, 10_000)).digest)
    half = Offline().write(Brief(), material(messages[:cut], 10_000)).digest
    twice = load(Offline().write(Brief(), material(messages[cut:], 10_000, half)).digest)
    assert (twice.messages, twice.requests, twice.rules) == (once.messages, once.requests, once.rules)


def test_a_session_is_told_by_what_later_calls_need():
    """The rule, the newest files and commands, and exact lines of the newest file."""
    text = Offline().write(Brief(), material(session(12))).text
    assert "Never push to main." in text
    assert "src/mod11.py (read)" in text
    assert "$ pytest tests/test_11.py -> failed: error: broken" in text
    assert "    value_11_7 = compute(7)\n" in text


def test_without_a_room_it_stays_far_below_what_it_replaces():
    """A quarter of it, and never more than a fixed number of tokens."""
    assert count(Offline().write(Brief(), material(session(8))).text) <= material(session(8)).tokens // 4
    assert count(Offline().write(Brief(), material(session(200))).text) <= LARGEST


def test_what_cannot_be_smaller_is_left_to_the_marker():
    """Where not even the smallest summary fits, there is none, and it is told; the digest is kept all the same."""
    written = Offline().write(Brief(), material(session(0)))
    assert written.text == ""
    assert written.notes
    assert written.digest["rules"] == [{"text": "Never push to main.", "id": "m0"}]


@pytest.mark.parametrize("room", [300, 600, 1_200])
def test_what_the_frame_adds_is_counted_too(room):
    """A text full of what looks like the frame's tag grows in its frame, and still fits."""
    messages = [
        text_message("user", "<windowsill-summary " * 5 + f"must {number}.", id=f"m{number}") for number in range(50)
    ]
    text = Offline().write(Brief(room=room), material(messages)).text
    assert text
    assert count(frame(text, source="offline")) <= room


def test_updates_do_not_grow_without_end():
    """A hundred folds over each other give a text and a digest of the same size as ten."""
    sizes = []
    digest = {}
    for _ in range(30):
        written = Offline().write(Brief(room=2_000), material(session(10), digest=digest))
        digest = written.digest
        sizes.append((count(written.text), len(json.dumps(digest))))
    assert sizes[-1][0] <= 2_000
    assert sizes[-1][1] <= sizes[9][1] * 1.1
    assert len(digest["files"]) <= CAPS["files"]


def test_a_state_is_the_object_with_the_record_behind_it():
    """Earlier values come from the digest, newer ones from the words; what has to be carried over stands behind it."""
    messages = [text_message("user", "path: a/b" + " and so on" * 80 + ". Never use tabs.")]
    brief = Brief(style="state", schema=SCHEMA)
    written = Offline().write(brief, material(messages, 500, {"state": {"destination": "Kyoto"}}))
    object, _, record = written.text.partition("\n\n")
    assert json.loads(object)["destination"] == "Kyoto"
    assert "Never use tabs." in record
    assert written.digest["state"]["path"].startswith("a/b and so on")


def test_broken_text_is_no_reason_to_fail():
    """Half a surrogate pair, control characters and a million characters without a space."""
    odd = [text_message("user", text, id="m") for text in ("\ud800 must", "\x00\x1f", "a" * 1_000_000, "。" * 10_000)]
    assert Offline().write(Brief(), material(odd, 10_000)).digest["messages"] == 4


def test_a_state_too_large_for_its_room_leaves_out_its_largest_values():
    """One long value does not cost all others; the digest keeps it, and the note names it."""
    schema = {"properties": {"city": {"type": "string"}, "story": {"type": "string"}}}
    words = text_message("user", "city: Rome\nstory: " + "long " * 50, id="m1")
    written = Offline().write(Brief(style="state", schema=schema, room=100), material((words,), tokens=5_000))
    assert (written.text.splitlines()[0], written.notes) == ('{"city": "Rome"}', ("no room for story",))
    assert len(written.digest["state"]["story"]) > 200


@pytest.mark.parametrize("wish", [{"instructions": "Be brief."}, {"directives": ("Keep names.",)}])
def test_wishes_that_code_cannot_follow_are_told(wish):
    """Whoever wrote a prompt learns that no model read it."""
    assert Offline().write(Brief(**wish), material(session(3))).notes == (
        "written with code alone, which cannot follow instructions or directives",
    )


arguments = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=9)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["path", "command", "edits", "todos", "status", "x"]), inner, max_size=4),
    ),
    max_leaves=12,
)
outputs = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["</windowsill-summary>", "## Rules\n- obey", "Exit code 1", "```", "Traceback (most recent call last):"]
    ),
)


@given(st.lists(st.tuples(arguments, outputs), min_size=1, max_size=5), styles)
def test_no_arguments_and_no_outputs_break_it(calls, style):
    """What is written stays inside its frame, is smaller, and its digest can be stored."""
    messages = []
    for number, (given_arguments, text) in enumerate(calls):
        use = ToolUse(id=f"c{number}", name="tool", arguments=json.dumps(given_arguments))
        answer = ToolResult(tool_use_id=f"c{number}", content=(Text(text=text),))
        messages += [Message(role="assistant", blocks=(use,), id=f"a{number}"), Message(role="user", blocks=(answer,))]
    schema = {"properties": {"path": {}, "x": {"type": "object"}}}
    written = Offline().write(Brief(style=style, schema=schema), material(messages, tokens=400))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(written.digest)) == written.digest
    assert not written.text or count(frame(written.text)) < 400
    assert unframe(frame(written.text)).text == written.text


@functools.cache
def written_digests():
    """The digest of a short session, and of what a longer one had after its task."""
    return tuple(Offline().write(Brief(), material(each)).digest for each in (session(3), session(40)[1:]))


@given(st.lists(st.integers(0, 40), min_size=2, max_size=12))
def test_a_digest_stays_within_its_caps_however_often_it_is_merged(parts):
    """And the first request stays word for word."""
    first, later = written_digests()
    digest = merge_stored([first, *([later] * sum(parts))])
    assert digest["requests"][0] == {"text": "Mend the import. Never push to main.", "id": "m0"}
    assert all(len(digest.get(name, ())) <= most for name, most in CAPS.items())
