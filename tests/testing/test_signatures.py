"""Reasoning comes back as it was signed, or the request is refused."""

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations import result, text_block
from windowsill.history.entries import START
from windowsill.messages import Reasoning, Text
from windowsill.testing import Answer, Call, Server
from windowsill.testing.provider_rules import Past, Signer

pytestmark = pytest.mark.integration

THINKING = Answer(reasoning="let me see", text="I look.", calls=(Call("read"),))
TASK = {"role": "user", "content": "Read it."}
ON = {"type": "enabled", "budget_tokens": 1024}
PASTS = st.binary(max_size=20)


@given(st.text(), PASTS, st.text(), PASTS)
def test_a_signature_belongs_to_its_words_and_its_past(text, past, other, changed):
    """Whatever they are; without the wish to bind, the past does not count."""
    bound, free = Signer(b"key", binds=True), Signer(b"key")
    signature = bound.sign("anthropic", text, past)
    assert bound.check("anthropic", signature, text, past) == "good"
    assert bound.check("anthropic", signature, None, past) == "good"
    assert bound.check("anthropic", signature, other, past) == ("good" if other == text else "forged")
    assert bound.check("anthropic", signature, text, changed) == ("good" if changed == past else "moved")
    assert free.check("anthropic", free.sign("anthropic", text, past), text, changed) == "good"


@given(st.text())
def test_a_signature_is_the_makers_alone(made_up):
    """Another key, another provider and made-up text are told apart."""
    signer = Signer(b"key")
    signature = signer.sign("anthropic", "hm", START)
    assert signer.check("gemini", signature, "hm", START) == "forged"
    assert Signer(b"other").check("anthropic", signature, "hm", START) == "forged"
    assert signer.check("anthropic", made_up, "hm", START) == ("good" if made_up == signature else "forged")
    assert not signer.wrapped("responses", made_up)
    assert signer.wrapped("responses", signer.wrap("responses", made_up))


def test_leaving_reasoning_out_does_not_change_the_past():
    """Nor do instructions in between."""
    with_reasoning, without = Past(), Past()
    for block in (Reasoning(text="hm"), Text(text="a"), Text(text="b")):
        with_reasoning.take("assistant", block)
    for block in (Text(text="a"), Text(text="b")):
        without.take("assistant", block)
    without.take("system", Text(text="be brief"))
    for past in (with_reasoning, without):
        past.take("user", Text(text="and?"))
    assert with_reasoning.coming == without.coming != START


@pytest.fixture
def claude():
    """Asks Claude on a server of its own."""
    opened = []

    def start(**options):
        server = Server(lambda _: THINKING, **options).__enter__()
        client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
        opened.append((server, client))
        return lambda messages, **more: client.messages.create(
            model="claude-sonnet-5", max_tokens=2048, messages=messages, **more
        )

    yield start
    for server, client in opened:
        client.close()
        server.__exit__(None, None, None)


def turn(reply):
    """An answer of Claude and the results of its calls, as they are sent back."""
    content = [block.to_dict() for block in reply.content]
    calls = [block["id"] for block in content if block["type"] == "tool_use"]
    return [{"role": "assistant", "content": content}, {"role": "user", "content": [result(id) for id in calls]}]


def test_thinking_that_was_changed_is_refused_in_anthropics_words(claude):
    """Sent back as it came, or left out, it is fine."""
    ask = claude()
    messages = [TASK, *turn(ask([TASK]))]
    assert ask(messages).stop_reason == "tool_use"
    thinking, *rest = messages[1]["content"]
    assert ask([TASK, {**messages[1], "content": rest}, messages[2]]).stop_reason == "tool_use"
    for changed in ({"thinking": "let me not see"}, {"signature": "c2lnbmVk"}):
        edited = {**messages[1], "content": [{**thinking, **changed}, *rest]}
        with pytest.raises(
            anthropic.BadRequestError, match=r"messages\.1\.content\.0: Invalid `signature` in `thinking`"
        ):
            ask([TASK, edited, messages[2]])


def test_redacted_thinking_that_nobody_wrote_is_refused(claude):
    """It proves itself or not."""
    made_up = {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "Zm9v"}, text_block("so")]}
    with pytest.raises(anthropic.BadRequestError, match="Invalid `data` in `redacted_thinking` block"):
        claude()([TASK, made_up, TASK])


@pytest.mark.parametrize("binds", [False, True])
def test_reasoning_behind_a_changed_past_is_refused_where_it_is_bound(claude, binds):
    """Other instructions are another past as well. Without its reasoning the turn goes through."""
    ask = claude(binds_reasoning=binds)
    messages = [TASK, *turn(ask([TASK]))]
    messages += turn(ask(messages))
    folded = [{"role": "user", "content": "Summary."}, *messages[3:]]
    bare = [folded[0], {**folded[1], "content": folded[1]["content"][1:]}, folded[2]]
    assert ask(messages).stop_reason == ask(bare).stop_reason == "tool_use"
    if not binds:
        assert ask(folded).stop_reason == "tool_use"
        return
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.1\.content\.0.*bound to a different conversation"):
        ask(folded)
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        ask(messages, system="You write.")


def test_a_model_that_is_to_think_must_find_the_thinking_of_its_tool_loop(claude):
    """At its beginning; later calls of the loop, earlier turns, and turns without calls may lack it."""
    ask = claude()
    messages = [TASK, *turn(ask([TASK]))]
    messages += turn(ask(messages))
    bare = [{**each, "content": each["content"][1:]} if each["role"] == "assistant" else each for each in messages]
    assert ask([*messages[:3], *bare[3:]], thinking=ON).stop_reason == "tool_use"
    assert ask([*bare, TASK, *turn(ask([*bare, TASK]))], thinking=ON).stop_reason == "tool_use"
    assert ask(bare).stop_reason == "tool_use"
    said = {"role": "assistant", "content": "There."}
    assert ask([*bare, said, TASK], thinking=ON).stop_reason == "tool_use"
    for lacking in (bare, [*bare[:3], *messages[3:]]):
        with pytest.raises(
            anthropic.BadRequestError, match=r"messages\.1\.content\.0\.type: Expected `thinking`.*`text`"
        ):
            ask(lacking, thinking=ON)


def test_messages_of_the_assistant_in_a_row_are_one_turn(claude):
    """Its thinking may stand in the first, and behind a compaction."""
    ask = claude()
    task, spoken, results = [TASK, *turn(ask([TASK]))]
    thinking, said, call = spoken["content"]
    parted = [{"role": "assistant", "content": [thinking, said]}, {"role": "assistant", "content": [call]}]
    assert ask([task, *parted, results], thinking=ON).stop_reason == "tool_use"
    compacted = {"role": "assistant", "content": [{"type": "compaction", "content": "short"}, thinking, call]}
    beta = {"anthropic-beta": "compact-2026-01-12"}
    assert ask([task, compacted, results], thinking=ON, extra_headers=beta).stop_reason == "tool_use"


@pytest.mark.parametrize("binds", [False, True])
def test_encrypted_reasoning_is_held_to_the_same(binds):
    """In OpenAI's words; its summary may be left out."""
    results = [{"type": "function_call_output", "call_id": "call_1_0", "output": "3"}]
    with (
        Server(lambda _: THINKING, binds_reasoning=binds) as server,
        openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client,
    ):

        def ask(first, reasoning):
            return client.responses.create(model="gpt-5", input=[first, reasoning, *rest, *results]).status

        reply = client.responses.create(model="gpt-5", input=[TASK])
        reasoning, *rest = [item.to_dict() for item in reply.output]
        assert ask(TASK, reasoning) == ask(TASK, {**reasoning, "summary": []}) == "completed"
        with pytest.raises(openai.BadRequestError, match="rs_1 could not be verified") as caught:
            ask(TASK, {**reasoning, "summary": [{"type": "summary_text", "text": "other"}]})
        assert caught.value.code == "invalid_encrypted_content"
        moved = {"role": "user", "content": "Write it."}
        if binds:
            with pytest.raises(openai.BadRequestError, match="follows another conversation"):
                ask(moved, reasoning)
        else:
            assert ask(moved, reasoning) == "completed"
