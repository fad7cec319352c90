"""Repair: a broken conversation becomes one that a provider accepts, and the history stays as it came."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations import (
    broken_anthropic,
    broken_openai,
    call,
    result,
    sound_anthropic,
    sound_openai,
    text_block,
    thinking,
    tool,
    use,
)
from windowsill import providers
from windowsill.history.repair import repair, without_open_calls
from windowsill.history.repair_rules import Repaired
from windowsill.messages import Message, Text, ToolResult, ToolUse

pytestmark = pytest.mark.unit

RULES = {name: providers.get(name).rules for name in providers.names()}


def read(messages, format="anthropic"):
    return providers.read_request(messages, format=format).messages


def mend(messages, format="anthropic", **options):
    """The mended messages as native dictionaries, and the kinds of repairs."""
    mended = repair(read(messages, format), RULES[format], **options)
    rendered = [each for message in mended.messages for each in providers.get(format).render_message(message)]
    return [msgspec.json.decode(each) for each in rendered], [each.kind for each in mended.repairs]


def user(*content):
    return {"role": "user", "content": list(content)}


def assistant(*content):
    return {"role": "assistant", "content": list(content)}


HELLO = {"role": "user", "content": "hello"}
MISSING = {
    "type": "tool_result",
    "tool_use_id": "c0",
    "content": "no result was recorded for this call",
    "is_error": True,
}


def test_sound_conversation_comes_out_as_the_same_objects():
    """A message that needs nothing is the identical object."""
    messages = read([HELLO, assistant(thinking(), use("c0")), user(result("c0")), assistant(text_block("done"))])
    mended = repair(messages, RULES["anthropic"])
    assert all(one is other for one, other in zip(mended.messages, messages, strict=True))
    assert mended.repairs == ()
    assert mended.sources == ((0,), (1,), (2,), (3,))


def test_orphan_result_is_told_as_words():
    """A result whose call is nowhere keeps what it says, under the id of its call."""
    messages = [HELLO, {"role": "assistant", "content": "hi"}, tool("gone", "42"), {"role": "user", "content": "go on"}]
    words = {"role": "user", "content": "(result of tool call gone)\n42"}
    assert mend(messages, "openai") == ([*messages[:2], words, messages[3]], ["orphan_told"])


def test_orphan_between_two_assistant_messages_keeps_the_roles_apart():
    """The words of the orphan stand where the user's message was."""
    first, second = assistant(text_block("a")), assistant(text_block("b"))
    native, kinds = mend([HELLO, first, user(result("gone", "42")), second])
    assert native == [HELLO, first, user(text_block("(result of tool call gone)\n42")), second]
    assert kinds == ["orphan_told"]


@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_a_result_of_another_id_right_behind_the_only_open_call_answers_it(format):
    """A tool or a client changed the id: the model reads the result, not that there was none."""
    if format == "anthropic":
        asked, given, mended = assistant(use("c0")), user(result("zzz", "42")), user(result("c0", "42"))
    else:
        asked = {"role": "assistant", "content": None, "tool_calls": [call("c0")]}
        given, mended = tool("zzz", "42"), tool("c0", "42")
    assert mend([HELLO, asked, given], format) == ([HELLO, asked, mended], ["result_assigned"])


def test_of_parallel_calls_the_one_that_waits_is_answered_by_the_unknown_result():
    """All others have theirs, wherever the unknown one stands among them."""
    asked = {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]}
    native, kinds = mend([HELLO, asked, tool("zzz", "1"), tool("b", "2")], "openai")
    assert native == [HELLO, asked, tool("a", "1"), tool("b", "2")]
    assert kinds == ["result_assigned"]


def test_an_unknown_result_is_not_given_to_one_of_two_calls():
    """Which of them it answers cannot be known: it stays words."""
    asked = {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]}
    native, kinds = mend([HELLO, asked, tool("zzz", "1")], "openai")
    assert native[-1] == {"role": "user", "content": "(result of tool call zzz)\n1"}
    assert kinds == ["orphan_told", "missing_supplied", "missing_supplied"]


def test_an_unknown_result_is_not_given_to_a_call_that_has_its_own():
    """The call is answered further down in the same turn."""
    asked = {"role": "assistant", "content": None, "tool_calls": [call("a")]}
    native, kinds = mend([HELLO, asked, tool("zzz", "1"), tool("a", "2")], "openai")
    assert native == [HELLO, asked, tool("a", "2"), {"role": "user", "content": "(result of tool call zzz)\n1"}]
    assert kinds == ["orphan_told"]


def test_an_unknown_result_behind_other_words_is_not_given_to_the_call():
    """It does not stand right behind its call."""
    native, kinds = mend([HELLO, assistant(use("c0")), HELLO, user(result("zzz", "42"))])
    assert native[2] == user(MISSING, text_block("hello"), text_block("(result of tool call zzz)\n42"))
    assert kinds[:2] == ["orphan_told", "missing_supplied"]


def test_missing_result_in_the_middle_is_supplied():
    """A call that was never answered gets a stand-in that depends on the call alone."""
    native, kinds = mend([HELLO, assistant(use("c0")), HELLO, assistant(text_block("ok"))])
    assert native[2]["content"] == [MISSING, text_block("hello")]
    assert kinds == ["missing_supplied"]


def test_trailing_open_call_is_supplied():
    """A conversation that ends with a call can still be sent."""
    native, kinds = mend([HELLO, assistant(use("c0"))])
    assert native[2:] == [user(MISSING)]
    assert kinds == ["missing_supplied"]


def test_partial_batch_is_completed_in_call_order():
    """Of three parallel calls, the unanswered one gets its stand-in between the others."""
    native, _ = mend([HELLO, assistant(use("a"), use("c0"), use("b")), user(result("a"), result("b"))])
    assert native[2] == user(result("a"), MISSING, result("b"))


def test_partial_batch_is_completed_between_tool_messages():
    """The same in OpenAI's form, where each result is a message of its own."""
    messages = [HELLO, {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]}, tool("b")]
    native, kinds = mend(messages, "openai")
    missing = {"role": "tool", "tool_call_id": "a", "content": "[error] no result was recorded for this call"}
    assert native == [*messages[:2], missing, tool("b")]
    assert kinds == ["missing_supplied"]


def test_result_after_a_later_message_moves_to_its_call():
    """As long as nothing was sent in between, a late result goes to its place."""
    asked = {"role": "assistant", "content": None, "tool_calls": [call("c0")]}
    assert mend([HELLO, asked, HELLO, tool("c0")], "openai") == ([HELLO, asked, tool("c0"), HELLO], ["late_moved"])


@pytest.mark.parametrize("format", ["openai", "anthropic", "gemini", "responses"])
def test_results_behind_parallel_calls_in_items_are_in_place(format):
    """Items of a Responses answer are a message each: nothing is mended."""
    calls = [{"type": "function_call", "call_id": f"c{n}", "name": "read", "arguments": "{}"} for n in range(2)]
    outputs = [{"type": "function_call_output", "call_id": f"c{n}", "output": f"{n}"} for n in range(2)]
    mended = repair(read([HELLO, *calls, *outputs], "responses"), RULES[format])
    assert mended.repairs == ()
    assert [result.content[0].text for message in mended.messages for result in message.results] == ["0", "1"]


def test_result_after_the_next_reply_is_told_as_words():
    """What was sent stays as it was sent: the stand-in keeps its place and the result is told where it came."""
    messages = [HELLO, assistant(use("c0")), HELLO, assistant(text_block("ok")), user(result("c0", "42"))]
    native, kinds = mend(messages)
    assert native[2]["content"][0] == MISSING
    assert native[4] == user(text_block("(result of tool call c0)\n42"))
    assert kinds == ["missing_supplied", "late_moved"]


def test_result_after_a_request_that_the_messages_do_not_show():
    """The caller's word that a request was sent counts like a reply."""
    native, _ = mend([HELLO, assistant(use("c0")), user(result("c0", "42"))], sent=[2])
    assert native[2:] == [user(MISSING), user(text_block("(result of tool call c0)\n42"))]


def test_split_reply_is_one_turn():
    """Assistant messages in a row are one reply cut in pieces: their calls are answered together."""
    native, kinds = mend([HELLO, assistant(use("a")), assistant(use("b")), user(result("a"), result("b"))])
    assert native == [HELLO, assistant(use("a")), assistant(use("b")), user(result("a"), result("b"))]
    assert kinds == []


def test_results_are_put_before_text():
    """Anthropic wants results first in a message."""
    native, kinds = mend([HELLO, assistant(use("c0")), user(text_block("here"), result("c0"))])
    assert native[2] == user(result("c0"), text_block("here"))
    assert kinds == ["late_moved"]


def test_same_result_twice_is_sent_once():
    """An identical second result is dropped."""
    native, kinds = mend([HELLO, assistant(use("c0")), user(result("c0"), result("c0"))])
    assert native[2] == user(result("c0"))
    assert kinds == ["duplicate_merged"]


def test_different_results_for_one_call_are_merged():
    """A second, different result is added to the first."""
    native, kinds = mend([HELLO, assistant(use("c0")), user(result("c0", "one"), result("c0", "two"))])
    assert native[2]["content"][0]["content"] == [text_block("one"), text_block("two")]
    assert kinds == ["duplicate_merged"]


def test_reused_ids_are_told_apart():
    """Servers that number calls anew each turn: the later call and its result get a new id together."""
    turn = [assistant(use("c0")), user(result("c0"))]
    native, kinds = mend([HELLO, *turn, *turn, *turn])
    assert [each["content"][0].get("id") for each in native[1::2]] == ["c0", "c0_2", "c0_3"]
    assert [each["content"][0].get("tool_use_id") for each in native[2::2]] == ["c0", "c0_2", "c0_3"]
    assert kinds == ["id_renamed", "id_renamed"]


def test_reused_ids_stay_where_they_are_allowed():
    """OpenAI pairs within a turn: nothing is renamed there."""
    turn = [{"role": "assistant", "content": None, "tool_calls": [call("c0")]}, tool("c0")]
    assert mend([HELLO, *turn, *turn], "openai") == ([HELLO, *turn, *turn], [])


def test_id_with_refused_characters_is_spelled_anew():
    """An id outside Anthropic's pattern is replaced in the call and the result alike."""
    native, kinds = mend([HELLO, assistant(use("a.b")), user(result("a.b"))])
    assert native[1]["content"][0]["id"] == native[2]["content"][0]["tool_use_id"] == "a_b_2e7336dc"
    assert kinds == ["id_renamed"]


@pytest.mark.parametrize("content", ["", " \n", [], [text_block("")]])
def test_empty_message_is_filled(content):
    """A message without content gets a short text."""
    native, kinds = mend([{"role": "user", "content": content}, assistant(text_block("ok"))])
    assert native[0]["content"] == [text_block("(empty message)")]
    assert kinds == ["empty_filled"]


@pytest.mark.parametrize("id", ["", "c" * 80])
def test_ids_that_openai_refuses_are_renamed_with_their_results(id):
    """An empty id, and one that is too long: call and result stay together."""
    native, kinds = mend([HELLO, {"role": "assistant", "content": None, "tool_calls": [call(id)]}, tool(id)], "openai")
    new = native[1]["tool_calls"][0]["id"]
    assert 0 < len(new) <= 64
    assert native[2] == tool(new)
    assert kinds == ["id_renamed"]


def test_a_long_id_that_is_used_twice_stays_within_the_limit():
    """The number of the second use is part of the 64 characters."""
    step = [
        {"type": "function_call", "call_id": "x" * 80, "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "x" * 80, "output": "done"},
    ]
    native, _ = mend([HELLO, *step, HELLO, *step], "responses")
    ids = [item["call_id"] for item in native if "call_id" in item]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert all(len(id) <= 64 for id in ids)


def test_an_empty_id_of_a_response_item_is_paired():
    """Call and output that name nothing belong together."""
    made = {"type": "function_call", "call_id": "", "name": "read", "arguments": "{}"}
    native, kinds = mend([HELLO, made, {"type": "function_call_output", "call_id": "", "output": "42"}], "responses")
    assert native[1]["call_id"] == native[2]["call_id"] != ""
    assert native[2]["output"] == "42"
    assert kinds == ["id_renamed"]


@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_a_tool_name_that_the_provider_refuses_is_spelled_anew(format):
    """Models make up names such as functions.read: sent back as they are, every later request would be refused."""
    if format == "anthropic":
        native, kinds = mend([HELLO, assistant(use("c0", "functions.read")), user(result("c0"))], format)
        name = native[1]["content"][0]["name"]
    else:
        asked = {"role": "assistant", "content": None, "tool_calls": [call("c0", "functions.read")]}
        native, kinds = mend([HELLO, asked, tool("c0")], format)
        name = native[1]["tool_calls"][0]["function"]["name"]
    assert (name, kinds) == ("functions_read", ["name_respelled"])


@pytest.mark.parametrize(("name", "spelled"), [("x y", "x_y"), ("-dash", "_-dash"), ("mcp.read", "mcp.read")])
@pytest.mark.parametrize("format", ["gemini", "anthropic"])
def test_the_result_that_is_supplied_for_gemini_has_the_name_of_its_call(format, name, spelled):
    """Whatever format the call came in."""
    if format == "gemini":
        made = {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]}
        messages = read([{"role": "user", "parts": [{"text": "hi"}]}, made], format)
    else:
        messages = read([HELLO, assistant(use("c0", name))], format)
    mended = repair(messages, RULES["gemini"])
    rendered = [each for message in mended.messages for each in providers.get("gemini").render_message(message)]
    parts = [msgspec.json.decode(each)["parts"][0] for each in rendered]
    assert parts[1]["functionCall"]["name"] == parts[2]["functionResponse"]["name"] == spelled


def test_thinking_with_an_empty_signature_is_left_out():
    """A stream broke off before its signature, or a proxy sent none: the provider refuses it."""
    thought = {**thinking(), "signature": ""}
    native, kinds = mend([HELLO, assistant(thought, text_block("hello")), HELLO])
    assert native[1] == assistant(text_block("hello"))
    assert kinds == ["empty_filled"]


def test_empty_text_is_left_out():
    """Empty text beside something else is removed, and nothing is put in its place."""
    native, kinds = mend([user(text_block(""), text_block("hello"))])
    assert native == [user(text_block("hello"))]
    assert kinds == ["empty_filled"]


def test_empty_reply_at_the_end_is_left_out():
    """An empty assistant message is nothing a model could go on from."""
    assert mend([HELLO, assistant()]) == ([HELLO], ["empty_filled"])


def test_first_message_from_the_assistant_gets_one_before_it():
    """Anthropic wants the user to begin."""
    native, kinds = mend([assistant(text_block("hi"))])
    assert native[0] == user(text_block("(the conversation begins here)"))
    assert kinds == ["role_order_mended"]


def test_two_messages_of_one_role_stay_two_where_the_provider_takes_them():
    """What came so and is taken so goes out as it came."""
    messages = [HELLO, user({"type": "text", "text": "again", "cache_control": {"type": "ephemeral"}})]
    assert mend(messages) == (messages, [])


def test_two_messages_of_one_role_become_one_where_one_is_of_another_format():
    """Their blocks follow each other as they came."""
    messages = (*read([HELLO], "openai"), *read([user(text_block("again"))]))
    mended = repair(messages, RULES["anthropic"])
    assert [message.text for message in mended.messages] == ["hello\nagain"]
    assert [each.kind for each in mended.repairs] == ["role_order_mended"]


def test_message_of_reasoning_alone_gets_a_text_after_it():
    """Reasoning stays first, and a text follows it."""
    native, kinds = mend([HELLO, assistant(thinking()), HELLO])
    assert native[1] == assistant(thinking(), text_block("(no reply)"))
    assert kinds == ["empty_filled"]


def test_items_of_one_answer_are_one_message_where_there_are_no_items():
    """Reasoning, words and parallel calls of a Responses answer: no filler, and the calls stay parallel."""
    items = [
        HELLO,
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]},
        *({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"} for id in ("c1", "c2")),
        *({"type": "function_call_output", "call_id": id, "output": id} for id in ("c1", "c2")),
        {"type": "reasoning", "id": "rs_2", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ]
    mended = repair(read(items, "responses"), RULES["openai"])
    assert [(message.role, message.text) for message in mended.messages if message.text] == [
        ("user", "hello"),
        ("assistant", "I look"),
        ("assistant", "done"),
    ]
    calls = [[each.id for each in message.blocks if isinstance(each, ToolUse)] for message in mended.messages]
    assert calls == [[], ["c1", "c2"], [], [], []]
    assert mended.repairs == ()


def test_system_message_of_another_format_becomes_words_of_the_user():
    """Inside a conversation Anthropic has no place for another provider's system message."""
    messages = read([HELLO, {"role": "system", "content": "be brief"}], "openai")
    mended = repair(messages, RULES["anthropic"])
    assert mended.messages[0].text == "hello\n<system>\nbe brief\n</system>"


def test_picture_in_a_result_follows_it_where_results_hold_only_text():
    """OpenAI's results are text: the picture goes into a user message after all results of the turn."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    messages = read([HELLO, assistant(use("a"), use("b")), user(result("a", [image])), user(result("b"))])
    rendered = [
        msgspec.json.decode(each)
        for message in repair(messages, RULES["openai"]).messages
        for each in providers.get("openai").render_message(message)
    ]
    assert [each["role"] for each in rendered] == ["user", "assistant", "tool", "tool", "user"]
    assert rendered[4]["content"][1]["image_url"]["url"] == "data:image/png;base64,AA=="


def test_result_in_an_assistant_message_moves_to_a_user_message():
    """A result may stand only in a user message; nothing else of the assistant's is left."""
    native, kinds = mend([HELLO, assistant(use("c0")), assistant(result("c0")), HELLO])
    assert native == [HELLO, assistant(use("c0")), user(result("c0")), HELLO]
    assert kinds == ["empty_filled", "late_moved", "role_order_mended"]


def test_result_in_the_last_assistant_message_is_sent_by_the_user():
    """The message that the result moves to has the user's role, not the one it came with."""
    native, _ = mend([HELLO, assistant(use("c0")), assistant(result("c0"))])
    assert native == [HELLO, assistant(use("c0")), user(result("c0"))]


def test_empty_reply_before_a_last_word_is_filled():
    """Only an empty reply at the very end is left out: after this one something was said."""
    native, _ = mend([HELLO, assistant(), user(result("gone", "42"))])
    told = text_block("(result of tool call gone)\n42")
    assert native[1:] == [assistant(text_block("(empty message)")), user(told)]


def test_repair_says_where_and_which_call():
    """A repair names the index in the conversation that came, and the call."""
    mended = repair(read([HELLO, assistant(use("c0"))]), RULES["anthropic"])
    assert (mended.repairs[0].where, mended.repairs[0].id) == (1, "c0")
    assert mended.sources == ((0,), (1,), ())


def test_open_calls_are_taken_from_the_end():
    """Before a summary is written, a trailing message loses its open calls and keeps its words."""
    messages = read([HELLO, assistant(text_block("I look"), use("c0"))])
    kept = without_open_calls(messages)
    assert [message.text for message in kept] == ["hello", "I look"]
    assert kept[1].calls == ()
    assert messages[1].calls != ()


def test_message_of_open_calls_alone_is_left_out():
    """Without words nothing of it stays; answered calls are not touched."""
    answered = read([HELLO, assistant(use("c0")), user(result("c0"))])
    assert without_open_calls(answered) == list(answered)
    assert without_open_calls(read([HELLO, assistant(use("c0"))])) == list(answered[:1])


def test_of_parallel_calls_only_those_that_run_are_taken_out():
    """A call with a result stays with it."""
    messages = read([HELLO, assistant(use("a"), use("b")), user(result("a"))])
    kept = without_open_calls(messages)
    assert [call.id for call in kept[1].calls] == ["a"]
    assert kept[2] is messages[2]


either = st.one_of(
    broken_anthropic.map(lambda messages: read(messages, "anthropic")),
    broken_openai.map(lambda messages: read(messages, "openai")),
    st.tuples(broken_anthropic, broken_openai).map(lambda both: read(both[0]) + read(both[1], "openai")),
)
rules = st.sampled_from(list(RULES.values()))


def still_sent(sources, sent):
    """The places of mended messages before which those requests were sent."""
    before = -1
    for place, own in enumerate(sources):
        if any(before < index <= min(own, default=-1) for index in sent):
            yield place
        before = max(own, default=before)


@given(either, rules, st.sets(st.integers(0, 10), max_size=3))
def test_repairing_twice_changes_nothing(messages, rules, sent):
    """What repair made needs no repair."""
    once = repair(messages, rules, sent=sent)
    twice = repair(once.messages, rules, sent=list(still_sent(once.sources, sent)))
    assert twice.repairs == ()
    assert all(one is other for one, other in zip(twice.messages, once.messages, strict=True))


@given(st.one_of(sound_anthropic().map(read), sound_openai().map(lambda messages: read(messages, "openai"))))
def test_nothing_is_mended_in_a_sound_conversation(messages):
    """A conversation its provider accepts passes as it is."""
    mended = repair(messages, RULES[messages[0].format])
    assert mended.repairs == ()
    assert mended.messages == messages


def cuts(messages, sent):
    """The places where a request was sent."""
    shown = {
        index
        for index in range(1, len(messages))
        if messages[index].role == "assistant" and messages[index - 1].role != "assistant"
    }
    return sorted(shown | {index for index in sent if 0 < index <= len(messages)})


def plain(message):
    return message.role, [msgspec.structs.replace(block, raw=None) for block in message.blocks]


@given(either, rules, st.sets(st.integers(0, 10), max_size=3))
def test_longer_conversation_begins_with_the_shorter_one(messages, rules, sent):
    """Every request that was sent is the beginning of each one after it; its last message may have grown."""
    whole = [plain(message) for message in repair(messages, rules, sent=sent).messages]
    for cut in cuts(messages, sent):
        shorter = [plain(message) for message in repair(messages[:cut], rules, sent=sent).messages]
        assert whole[: len(shorter) - 1] == shorter[:-1]
        role, blocks = shorter[-1]
        assert whole[len(shorter) - 1][0] == role
        assert whole[len(shorter) - 1][1][: len(blocks)] == blocks


@given(either, rules, st.sets(st.integers(0, 10), max_size=2))
def test_mending_in_parts_is_mending_the_whole(messages, rules, sent):
    """Before a reply the conversation can be cut, and both parts together are the whole."""
    whole = repair(messages, rules, sent=sent)
    for cut in cuts(messages, ()):
        one = repair(messages[:cut], rules, sent=sent)
        later = [index - cut for index in sent if index >= cut]
        two = repair(messages[cut:], rules, sent=later, used=one.ids, first=False)
        assert whole == Repaired(
            messages=one.messages + two.messages,
            repairs=one.repairs + tuple(msgspec.structs.replace(each, where=each.where + cut) for each in two.repairs),
            sources=one.sources + tuple(tuple(index + cut for index in each) for each in two.sources),
            ids=one.ids | two.ids,
        )


@given(either, rules)
def test_every_word_is_accounted_for(messages, rules):
    """A message that is in no output was reported, and what came in is unchanged."""
    before = msgspec.json.encode(messages)
    mended = repair(messages, rules)
    kept = {index for sources in mended.sources for index in sources}
    reported = {each.where for each in mended.repairs}
    assert set(range(len(messages))) - kept <= reported
    assert msgspec.json.encode(messages) == before


def test_neutral_messages_need_no_bytes():
    """Messages that were never in a provider's format are mended all the same."""
    asked = Message(role="assistant", blocks=(ToolUse(id="x", name="read"),))
    mended = repair([Message(role="user", blocks=(Text(text="hi"),)), asked], RULES["openai"])
    assert isinstance(mended.messages[2].blocks[0], ToolResult)
