"""The local server clears and compacts conversations where Anthropic would."""

import anthropic
import pytest

from support.conversations import result, text_block, use
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

CLEARING, COMPACTING = "context-management-2025-06-27", "compact-2026-01-12"
TASK = {"role": "user", "content": "Read everything."}
WORKING = Answer(reasoning="let me see", text="I look.", calls=(Call("read"),))


def clear(tokens=300, **more):
    trigger = {"type": "input_tokens", "value": tokens}
    return {"edits": [{"type": "clear_tool_uses_20250919", "trigger": trigger, **more}]}


def compact(tokens=300, **more):
    return {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": tokens}, **more}]}


def loop(*names):
    """A conversation with one call and a long result for each name."""
    messages = [TASK]
    for number, name in enumerate(names):
        messages.append({"role": "assistant", "content": [use(f"t{number}", name)]})
        messages.append({"role": "user", "content": [result(f"t{number}", "word " * 100)]})
    return messages


@pytest.fixture
def serve():
    """Starts a server and a client of its beta interface; both are closed in the end."""
    opened = []

    def start(model=None, **options):
        server = Server(model, **options).__enter__()
        client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
        opened.append((server, client))
        return server, client.beta.messages

    yield start
    for server, client in opened:
        client.close()
        server.__exit__(None, None, None)


def ask(client, messages, wish=None, *, betas=(CLEARING, COMPACTING), streamed=False):
    options = {} if wish is None else {"context_management": wish}
    given = {"model": "claude-sonnet-5", "max_tokens": 64, "messages": messages, "betas": list(betas), **options}
    if not streamed:
        return client.create(**given)
    with client.stream(**given) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("streamed", [False, True])
def test_old_results_are_cleared_and_the_answer_says_so(serve, streamed):
    """All but the last few, once the request is above the trigger."""
    server, client = serve()
    messages = loop("read", "read", "read", "read")
    plain = ask(client, messages, streamed=streamed)
    reply = ask(client, messages, clear(keep={"type": "tool_uses", "value": 1}), streamed=streamed)
    (edit,) = reply.context_management.applied_edits
    assert (edit.type, edit.cleared_tool_uses) == ("clear_tool_uses_20250919", 3)
    assert plain.context_management is None
    assert edit.cleared_input_tokens == server.seen[0].tokens - server.seen[1].tokens > 250
    assert server.seen[1].cleared == 3


def test_results_are_cleared_before_the_request_is_held_against_the_window(serve):
    """So a conversation that does not fit may go through; below its trigger nothing is done."""
    _, client = serve(window=500)
    messages = loop("read", "read", "read", "read")
    assert ask(client, messages, clear()).context_management.applied_edits[0].cleared_tool_uses == 1
    assert ask(client, messages[:3], clear()).context_management.applied_edits == []
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        ask(client, messages, clear(tokens=900))


def test_what_is_to_stay_stays(serve):
    """Results of excluded tools, and everything when too little could be cleared."""
    server, client = serve()
    messages = loop("read", "search", "read")
    none = {"type": "tool_uses", "value": 0}
    assert ask(client, messages, clear(keep=none, exclude_tools=["search"])).stop_reason == "end_turn"
    wish = clear(keep=none, clear_at_least={"type": "input_tokens", "value": 5_000})
    assert ask(client, messages, wish).context_management.applied_edits == []
    assert [each.cleared for each in server.seen] == [2, 0]


def test_the_number_of_calls_may_be_the_trigger_and_arguments_may_go_too(serve):
    """Of all tools or of those that are named."""
    server, client = serve()
    messages = loop("read", "search")
    for message in messages:
        if message["role"] == "assistant":
            message["content"][0]["input"] = {"query": "word " * 50}
    given = {"trigger": {"type": "tool_uses", "value": 1}, "keep": {"type": "tool_uses", "value": 0}}
    for inputs in (False, ["read"], True):
        ask(client, messages, clear(**given, clear_tool_inputs=inputs))
    kept, one, none = [each.tokens for each in server.seen]
    assert kept - one == one - none > 45


@pytest.mark.parametrize(("wish", "beta"), [(clear(), COMPACTING), (compact(), CLEARING)], ids=["clear", "compact"])
def test_an_edit_without_its_beta_header_is_refused(serve, wish, beta):
    """The other one's header does not help; nor is a compaction taken back without its own."""
    server, client = serve()
    with pytest.raises(anthropic.BadRequestError, match="context_management: Extra inputs are not permitted"):
        ask(client, [TASK], wish, betas=[beta])
    compacted = {"role": "assistant", "content": [{"type": "compaction", "content": "short"}]}
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.1\.content\.0: Input tag 'compaction'"):
        ask(client, [TASK, compacted, TASK], betas=[CLEARING])
    assert server.seen[0].headers["anthropic-beta"] == beta


@pytest.mark.parametrize("streamed", [False, True])
def test_a_request_above_its_trigger_is_compacted_on_the_way(serve, streamed):
    """The summary comes first, the model answers what is left, and each has its own usage."""
    server, client = serve(lambda _: WORKING, summarise=lambda body: f"{len(body['messages'])} messages")
    reply = ask(client, loop("read", "read", "read"), compact(), streamed=streamed)
    assert [block.type for block in reply.content] == ["compaction", "thinking", "text", "tool_use"]
    assert reply.content[0].content == "7 messages"
    first, second = reply.usage.iterations
    assert (first.type, second.type) == ("compaction", "message")
    assert first.cache_creation_input_tokens == server.seen[0].tokens > 300
    assert second.cache_creation_input_tokens == reply.usage.cache_creation_input_tokens < 50
    assert server.seen[0].compacted


def test_below_its_trigger_nothing_is_compacted(serve):
    """And the answer is as ever."""
    server, client = serve()
    assert [block.type for block in ask(client, [TASK], compact()).content] == ["text"]
    assert not server.seen[0].compacted


def test_what_stands_before_a_compaction_counts_no_more(serve):
    """Nor is its reasoning looked at; what follows it is bound to the compaction alone."""
    server, client = serve(lambda _: WORKING, binds_reasoning=True)
    messages = loop("read", "read", "read")
    reply = ask(client, messages, compact())
    content = [block.to_dict() for block in reply.content]
    after = [{"role": "assistant", "content": content}, {"role": "user", "content": [result(content[-1]["id"])]}]
    changed = [{"role": "user", "content": "Something else."}]
    whole, other = ask(client, [*messages, *after]), ask(client, [*changed, *after])
    assert whole.stop_reason == other.stop_reason == "tool_use"
    assert server.seen[1].tokens == server.seen[2].tokens < 150


def test_words_before_a_compaction_in_its_own_message_count_no_more(serve):
    """It closes what stands before it, wherever it stands."""
    server, client = serve()
    compaction = {"type": "compaction", "content": "short"}
    ask(client, [TASK, {"role": "assistant", "content": [compaction]}, TASK])
    ask(client, [TASK, {"role": "assistant", "content": [text_block("word " * 200), compaction]}, TASK])
    assert server.seen[0].tokens == server.seen[1].tokens


def test_a_compaction_that_failed_closes_nothing(serve):
    """Without content it stands for no summary."""
    server, client = serve()
    messages = loop("read", "read")
    empty = {"role": "assistant", "content": [{"type": "compaction", "content": None}]}
    ask(client, [*messages, empty, TASK])
    assert server.seen[0].tokens > 200


def test_the_server_pauses_after_a_compaction_when_it_is_asked_to(serve):
    """The model is not asked; the conversation goes on from the summary."""
    asked = []

    def model(body):
        asked.append(body)
        return Answer(text="done")

    _, client = serve(model)
    messages = loop("read", "read", "read")
    paused = ask(client, messages, compact(pause_after_compaction=True))
    assert (paused.stop_reason, [block.type for block in paused.content], asked) == ("compaction", ["compaction"], [])
    assert [each.type for each in paused.usage.iterations] == ["compaction"]
    summary = {"role": "assistant", "content": [paused.content[0].to_dict()]}
    assert ask(client, [*messages, summary, TASK], compact()).content[0].text == "done"


def test_a_conversation_may_begin_with_its_compaction(serve):
    """Everything before it may be left out."""
    server, client = serve()
    summary = {"role": "assistant", "content": [{"type": "compaction", "content": "short"}]}
    assert ask(client, [summary, TASK]).content[0].text == "ok"
    assert server.refused == []


def test_clearing_comes_before_compacting_where_it_is_listed_first(serve):
    """What it leaves may be below the trigger."""
    server, client = serve()
    edits = [*clear(keep={"type": "tool_uses", "value": 0})["edits"], *compact()["edits"]]
    reply = ask(client, loop("read", "read", "read", "read"), {"edits": edits})
    assert reply.content[0].type == "text"
    assert (server.seen[0].cleared, server.seen[0].compacted) == (4, False)


def test_counting_tells_the_tokens_before_and_after(serve):
    """Without a limit for the answer, and above the window too."""
    server, client = serve(window=10)
    messages = loop("read", "read", "read", "read")
    plain = client.count_tokens(model="claude-sonnet-5", messages=messages)
    counted = client.count_tokens(
        model="claude-sonnet-5", messages=messages, context_management=clear(), betas=[CLEARING]
    )
    assert counted.context_management.original_input_tokens == plain.input_tokens == server.seen[0].tokens
    assert counted.input_tokens == server.seen[1].tokens < plain.input_tokens
