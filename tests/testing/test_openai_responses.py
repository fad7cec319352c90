"""The local server speaks OpenAI Responses, judged by OpenAI's own client."""

import asyncio

import openai
import pytest

from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

CALLING = Answer(
    reasoning="hm, files " * 3, text="I look. " * 5, calls=(Call("count", {"path": '日本 "x"'}), Call("stat"))
)
ASKED = [{"role": "user", "content": "How many files are there?"}]
LONG = [{"role": "user", "content": "word " * 500}]


@pytest.fixture
def serve():
    """Starts a server and a client of it; both are closed in the end."""
    opened = []

    def start(model=None, **options):
        server = Server(model, **options).__enter__()
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
        opened.append((server, client))
        return server, client.responses

    yield start
    for server, client in opened:
        client.close()
        server.__exit__(None, None, None)


def outputs(reply):
    """Its items as they are sent back."""
    return [item.to_dict(warnings=False) for item in reply.output]


def test_the_client_reads_the_answer(serve):
    """Reasoning with a summary and what is encrypted, words, parallel calls, usage."""
    server, client = serve(lambda _: CALLING)
    reply = client.create(model="gpt-5", input="How many?")
    assert [item.type for item in reply.output] == ["reasoning", "message", "function_call", "function_call"]
    assert reply.output[0].summary[0].text == CALLING.reasoning
    assert reply.output[0].encrypted_content
    assert reply.output_text == CALLING.text
    assert reply.output[2].arguments == '{"path":"日本 \\"x\\""}'
    assert reply.usage.input_tokens == server.seen[0].tokens
    assert 0 < reply.usage.output_tokens_details.reasoning_tokens < reply.usage.output_tokens


def test_the_events_come_in_their_order(serve):
    """Each item begins, is filled and ends; the numbers go through."""
    _, client = serve(lambda _: CALLING)
    events = list(client.create(model="gpt-5", input=ASKED, stream=True))
    kinds = [event.type.removeprefix("response.") for event in events]
    assert list(dict.fromkeys(kinds)) == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    begun, *_, ended = [
        event.item for event in events if getattr(event, "output_index", None) == 0 and hasattr(event, "item")
    ]
    assert (begun.summary, ended.summary[0].text) == ([], CALLING.reasoning)


def test_a_streamed_answer_is_the_same_answer(serve):
    """The client puts it together to what the whole one says."""
    _, client = serve(lambda _: CALLING)
    with client.stream(model="gpt-5", input=ASKED) as stream:
        final = stream.get_final_response()
    whole = client.create(model="gpt-5", input=ASKED)
    assert final.output_text == whole.output_text
    assert [item.arguments for item in final.output[2:]] == [item.arguments for item in whole.output[2:]]
    assert final.output[0].to_dict() | {"id": ""} == whole.output[0].to_dict() | {"id": ""}


def test_the_asynchronous_client_reads_it_too(serve):
    """Whole, as events, and through the helper."""
    server, _ = serve(lambda _: CALLING)

    async def ask():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
            whole = await client.responses.create(model="gpt-5", input=ASKED)
            stream = await client.responses.create(model="gpt-5", input=ASKED, stream=True)
            kinds = [event.type async for event in stream]
            async with client.responses.stream(model="gpt-5", input=ASKED) as helper:
                final = await helper.get_final_response()
        return whole.output_text, kinds[-1], final.output_text

    assert asyncio.run(ask()) == (CALLING.text, "response.completed", CALLING.text)


def test_what_was_answered_stands_before_what_names_it(serve):
    """It counts, and an output may answer a call of it."""
    server, client = serve(lambda body: Answer(text="done") if "previous_response_id" in body else CALLING)
    first = client.create(model="gpt-5", input=ASKED)
    results = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "3"}
        for item in first.output
        if item.type == "function_call"
    ]
    second = client.create(model="gpt-5", input=results, previous_response_id=first.id)
    explicit = client.create(model="gpt-5", input=[*ASKED, *outputs(first), *results])
    assert (second.output_text, second.previous_response_id) == ("done", first.id)
    assert server.seen[1].tokens == server.seen[2].tokens > server.seen[0].tokens
    assert explicit.status == "completed"
    with pytest.raises(openai.BadRequestError, match="has no output"):
        client.create(model="gpt-5", input="go on", previous_response_id=first.id)


def test_what_was_not_stored_cannot_be_named(serve):
    """Neither an id nobody knows, nor a response that was not to be kept."""
    _, client = serve()
    kept = client.create(model="gpt-5", input=ASKED, store=False)
    for id in ("resp_ghost", kept.id):
        with pytest.raises(openai.BadRequestError, match=f"Previous response with id '{id}' not found") as caught:
            client.create(model="gpt-5", input="go on", previous_response_id=id)
        assert caught.value.code == "previous_response_not_found"


def test_what_is_stored_counts_against_the_window(serve):
    """A small question behind a long past is too long."""
    _, client = serve(window=600)
    first = client.create(model="gpt-5", input=LONG)
    with pytest.raises(openai.BadRequestError, match="exceeds the context window") as caught:
        client.create(model="gpt-5", input=LONG, previous_response_id=first.id)
    assert caught.value.code == "context_length_exceeded"


def test_a_broken_rule_is_a_bad_request_that_names_the_item(serve):
    """With OpenAI's kind of error."""
    server, client = serve()
    with pytest.raises(openai.BadRequestError, match=r"input\[0\]"):
        client.create(model="gpt-5", input=[{"type": "function_call_output", "call_id": "ghost", "output": "x"}])
    assert server.refused[0].problems[0].rule == "responses.output-follows-call"


def test_counting_says_what_a_request_weighs(serve):
    """Above the window too, and without asking the model."""
    server, client = serve(window=10)
    counted = client.input_tokens.count(model="gpt-5", input=LONG)
    with pytest.raises(openai.BadRequestError):
        client.create(model="gpt-5", input=LONG)
    assert counted.input_tokens == server.seen[1].tokens > 500


def test_compacting_gives_an_item_that_stands_for_the_conversation(serve):
    """The user's messages and one item; what stands before it no longer counts."""
    server, client = serve(summarise=lambda body: f"{len(body['input'])} items")
    said = {"role": "assistant", "content": "sure " * 300}
    compacted = client.compact(model="gpt-5", input=[*LONG, said])
    assert [item.type for item in compacted.output] == ["message", "compaction"]
    assert compacted.object == "response.compaction"
    assert compacted.usage.input_tokens == server.seen[0].tokens > 800
    after = client.create(model="gpt-5", input=[*outputs(compacted), *ASKED])
    assert after.output_text == "ok"
    assert server.seen[1].tokens < 100
    named = client.create(model="gpt-5", input=ASKED, previous_response_id=compacted.id)
    assert named.usage.input_tokens == server.seen[1].tokens


def test_a_compaction_of_somebody_else_is_refused(serve):
    """What is encrypted must be the provider's own."""
    _, client = serve()
    with pytest.raises(openai.BadRequestError, match="could not be verified") as caught:
        client.create(model="gpt-5", input=[{"type": "compaction", "id": "c", "encrypted_content": "Zm9v"}, *ASKED])
    assert caught.value.code == "invalid_encrypted_content"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_request_above_its_threshold_is_compacted_on_the_way(serve, streamed):
    """The answer begins with the compaction; below the threshold it does not."""
    server, client = serve(lambda _: CALLING)
    wish = [{"type": "compaction", "compact_threshold": 300}]

    def ask(given):
        if not streamed:
            return client.create(model="gpt-5", input=given, context_management=wish)
        with client.stream(model="gpt-5", input=given, context_management=wish) as stream:
            return stream.get_final_response()

    small, large = ask(ASKED), ask(LONG)
    assert small.output[0].type == "reasoning"
    assert [item.type for item in large.output[:2]] == ["compaction", "reasoning"]
    assert large.usage.input_tokens < 100
    assert server.seen[1].tokens > 500
    assert [each.compacted for each in server.seen] == [False, True]
