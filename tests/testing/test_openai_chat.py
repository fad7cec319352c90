"""The local server tells reasoning and usage in Chat Completions as those do who speak it."""

import openai
import pytest

from windowsill import providers
from windowsill.testing import Answer, Server

pytestmark = pytest.mark.integration

THINKING = Answer(reasoning="hm, files " * 3, text="There are three of them.")
ASKED = [{"role": "user", "content": "How many files are there?"}]


@pytest.fixture
def serve():
    """Starts a server and a client of it; both are closed in the end."""
    opened = []

    def start(answer):
        server = Server(lambda _: answer).__enter__()
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
        opened.append((server, client))
        return server, client.chat.completions

    yield start
    for server, client in opened:
        client.close()
        server.__exit__(None, None, None)


@pytest.mark.parametrize("model", ["deepseek-reasoner", "kimi-k2-thinking"])
def test_models_that_show_their_reasoning_tell_it_beside_the_content(serve, model):
    """Whole and in pieces; their requests are read in the format that has a place for it."""
    server, client = serve(THINKING)
    whole = client.create(model=model, messages=ASKED).choices[0].message
    deltas = [chunk.choices[0].delta for chunk in client.create(model=model, messages=ASKED, stream=True)]
    pieces = [delta.reasoning_content for delta in deltas if hasattr(delta, "reasoning_content")]
    assert whole.reasoning_content == "".join(pieces) == THINKING.reasoning
    assert len(pieces) > 1
    assert "".join(delta.content or "" for delta in deltas) == whole.content == THINKING.text
    assert server.seen[0].format == ("deepseek" if "deepseek" in providers.names() else "openai")


def test_other_models_keep_their_reasoning_to_themselves(serve):
    """Only its tokens are told."""
    server, client = serve(THINKING)
    reply = client.create(model="gpt-5", messages=ASKED)
    assert not hasattr(reply.choices[0].message, "reasoning_content")
    assert 0 < reply.usage.completion_tokens_details.reasoning_tokens < reply.usage.completion_tokens
    assert server.seen[0].format == "openai"


@pytest.mark.parametrize(
    ("told", "asked", "comes"), [(True, True, True), (True, False, False), (False, True, False), (False, False, False)]
)
def test_a_stream_tells_its_usage_when_it_is_asked_to(serve, told, asked, comes):
    """In one chunk at the end, unless the answer is to say nothing of it."""
    server, client = serve(Answer(text="three", usage=told))
    options = {"stream_options": {"include_usage": True}} if asked else {}
    chunks = list(client.create(model="gpt-5", messages=ASKED, stream=True, **options))
    used = [chunk.usage.prompt_tokens for chunk in chunks if chunk.usage]
    assert used == ([server.seen[0].tokens] if comes else [])
    assert (chunks[-1].choices == []) is comes
