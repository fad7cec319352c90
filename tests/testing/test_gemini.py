"""The local server speaks Google Gemini, judged by Google's own client."""

import asyncio

import pytest
from google import genai
from google.genai import errors, types

from windowsill.providers.gemini import PLACEHOLDER
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

CALLING = Answer(
    reasoning="hm, files " * 3, text="I look. " * 5, calls=(Call("count", {"path": '日本 "x"'}), Call("stat"))
)
SAYING = Answer(reasoning="hm, files " * 3, text="There are three of them.")
MODEL = "gemini-3-pro"


def connected(server):
    return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=server.url))


@pytest.fixture
def serve():
    """Starts a server and a client of it; both are closed in the end."""
    opened = []

    def start(model=None, **options):
        server = Server(model, **options).__enter__()
        client = connected(server)
        opened.append((server, client))
        return server, client

    yield start
    for server, client in opened:
        client.close()
        server.__exit__(None, None, None)


def words(chunks):
    return "".join(part.text for part in parts(chunks) if part.text and not part.thought)


def parts(chunks):
    return [part for chunk in chunks for part in chunk.candidates[0].content.parts]


def test_the_client_reads_the_answer(serve):
    """Thoughts, words, parallel calls with ids, the signature on the first of them, usage."""
    server, client = serve(lambda _: CALLING)
    reply = client.models.generate_content(model=MODEL, contents="How many?")
    thought, said, *calls = reply.candidates[0].content.parts
    assert (thought.thought, thought.text, said.text) == (True, CALLING.reasoning, CALLING.text)
    assert [call.function_call.args for call in calls] == [{"path": '日本 "x"'}, {}]
    assert [call.function_call.id for call in calls] == ["call_1_0", "call_1_1"]
    assert calls[0].thought_signature
    assert calls[1].thought_signature is None
    assert (server.seen[0].model, reply.model_version) == (MODEL, MODEL)
    used = reply.usage_metadata
    assert used.prompt_token_count == server.seen[0].tokens
    assert used.thoughts_token_count > 0
    assert used.total_token_count == used.prompt_token_count + used.candidates_token_count + used.thoughts_token_count


@pytest.mark.parametrize("answer", [CALLING, SAYING], ids=["calls", "words"])
def test_a_streamed_answer_is_the_same_answer(serve, answer):
    """In several chunks, the usage whole in the last; plain words are signed by an empty part behind them."""
    _, client = serve(lambda _: answer)
    whole = client.models.generate_content(model=MODEL, contents="How many?")
    chunks = list(client.models.generate_content_stream(model=MODEL, contents="How many?"))
    assert words(chunks) == words([whole]) == answer.text
    assert "".join(part.text for part in parts(chunks) if part.thought) == answer.reasoning
    assert [part.function_call.args for part in parts(chunks) if part.function_call] == [
        call.input for call in answer.calls
    ]
    signatures = [part.thought_signature for part in parts(chunks) if part.thought_signature]
    assert signatures == [part.thought_signature for part in parts([whole]) if part.thought_signature]
    assert chunks[-1].usage_metadata.total_token_count == whole.usage_metadata.total_token_count
    assert [bool(chunk.candidates[0].finish_reason) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


def test_the_asynchronous_client_reads_it_too(serve):
    """Whole, in chunks, and in a chat."""
    server, _ = serve(lambda _: SAYING)

    async def ask():
        client = connected(server)
        whole = await client.aio.models.generate_content(model=MODEL, contents="How many?")
        chunks = [c async for c in await client.aio.models.generate_content_stream(model=MODEL, contents="How many?")]
        chat = client.aio.chats.create(model=MODEL)
        await chat.send_message("How many?")
        second = await chat.send_message("Sure?")
        await client.aio.aclose()
        client.close()
        return whole.text, words(chunks), second.text

    assert asyncio.run(ask()) == (SAYING.text,) * 3


@pytest.mark.parametrize("streamed", [False, True])
def test_a_chat_sends_back_what_the_server_signed(serve, streamed):
    """Thoughts and signatures as they came, bound to what stands before them."""
    server, client = serve(lambda _: SAYING, binds_reasoning=True)
    chat = client.chats.create(model=MODEL)
    for question in ("How many?", "Sure?", "Really?"):
        if streamed:
            list(chat.send_message_stream(question))
        else:
            chat.send_message(question)
    assert [each.status for each in server.seen] == [200, 200, 200]
    assert server.seen[2].tokens > server.seen[0].tokens


def test_calls_are_answered_by_name_and_id(serve):
    """A tool loop goes through; the same prefix is read from the cache."""
    server, client = serve(lambda body: CALLING if len(body["contents"]) == 1 else SAYING, cache_minimum=5)
    asked = types.Content(role="user", parts=[types.Part(text="How many?")])
    first = client.models.generate_content(model=MODEL, contents=[asked])
    results = types.Content(
        role="user",
        parts=[
            types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": "3"}))
            for call in first.function_calls
        ],
    )
    second = client.models.generate_content(model=MODEL, contents=[asked, first.candidates[0].content, results])
    assert second.text == SAYING.text
    assert second.usage_metadata.cached_content_token_count == server.seen[0].tokens


def test_a_broken_rule_is_an_invalid_argument(serve):
    """In Google's shape of an error."""
    server, client = serve()
    orphan = types.Part(function_response=types.FunctionResponse(name="ghost", response={"output": "x"}))
    with pytest.raises(errors.ClientError, match=r"contents\[0\]") as caught:
        client.models.generate_content(model=MODEL, contents=[types.Content(role="user", parts=[orphan])])
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    assert server.refused[0].problems[0].rule == "gemini.response-follows-call"


def test_a_request_above_the_window_is_refused_in_googles_words(serve):
    """Streamed or not."""
    _, client = serve(window=300)
    says = r"The input token count \(\d+\) exceeds the maximum number of tokens allowed \(300\)\."
    with pytest.raises(errors.ClientError, match=says):
        client.models.generate_content(model=MODEL, contents="word " * 500)
    with pytest.raises(errors.ClientError, match=says):
        list(client.models.generate_content_stream(model=MODEL, contents="word " * 500))


def test_counting_says_what_a_request_weighs(serve):
    """Above the window too."""
    server, client = serve(window=10)
    counted = client.models.count_tokens(model=MODEL, contents="word " * 50)
    assert counted.total_tokens == server.seen[0].tokens > 50


def test_failures_have_googles_names(serve):
    """An overloaded server is unavailable."""
    server, client = serve()
    server.fail(503, "overloaded")
    with pytest.raises(errors.ServerError) as caught:
        client.models.generate_content(model=MODEL, contents="How many?")
    assert (caught.value.status, caught.value.message) == ("UNAVAILABLE", "overloaded")


def called(signature, thought=None):
    """A conversation whose one call carries a signature."""
    call = {"functionCall": {"name": "count", "args": {}}, "thoughtSignature": signature}
    thoughts = [] if thought is None else [{"text": thought, "thought": True}]
    result = {"functionResponse": {"name": "count", "response": {"output": "3"}}}
    return [
        {"role": "user", "parts": [{"text": "How many?"}]},
        {"role": "model", "parts": [*thoughts, call]},
        {"role": "user", "parts": [result]},
    ]


def test_a_signature_needs_its_own_thoughts_or_none(serve):
    """They may be left out, not changed; a placeholder is let through, anything else is corrupted."""
    _, client = serve(lambda body: CALLING if len(body["contents"]) == 1 else SAYING)
    first = client.models.generate_content(model=MODEL, contents="How many?")
    signature = first.candidates[0].content.parts[2].thought_signature

    def ask(contents):
        return client.models.generate_content(model=MODEL, contents=contents).text

    assert ask(called(signature)) == SAYING.text
    assert ask(called(signature, CALLING.reasoning)) == SAYING.text
    for contents in (called(signature, "something else"), called(b"made up")):
        with pytest.raises(errors.ClientError, match="Corrupted thought signature"):
            ask(contents)


def test_the_documented_placeholder_is_let_through(serve):
    """For calls that another provider's model made."""
    server, client = serve()
    request = client._api_client.request("post", f"models/{MODEL}:generateContent", {"contents": called(PLACEHOLDER)})
    assert request.body
    assert server.seen[0].status == 200
