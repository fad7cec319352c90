"""Where other context managers break and what their users complain about: each one a test that passes here."""

import json
import random

import pytest

from support.conversations import PNG, call, result, text_block, thinking, tool, use
from support.peer_traces import trace
from support.sessions import TASK, kept, opened, problems, talk, tokens_of, turn
from windowsill import UnknownModelError, fit
from windowsill.strategies.economy import HALF

pytestmark = pytest.mark.unit

RULE = "Never touch the billing table."


def as_openai(messages):
    """The same conversation in the other format."""
    return fit(messages, budget=10_000_000, tokenizer="bytes/4", format="anthropic").to("openai")["messages"]


def pairs(request):
    """The ids of all calls and of all results in an Anthropic request."""
    blocks = [block for message in request["messages"] for block in message["content"] if isinstance(block, dict)]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    return calls, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


# Tool pairs


@pytest.mark.parametrize("budget", [600, 2_000])
@pytest.mark.parametrize("seed", range(10))
def test_trimming_never_breaks_a_tool_pair(seed, budget):
    """Peers break the pairs of 27 to 60 traces out of 60, and every request after that is refused."""
    payload = fit(trace(seed), budget=budget, tokenizer="o200k_base", format="anthropic")
    calls, results = pairs(payload.to())
    assert sorted(calls) == sorted(results)
    other = fit(as_openai(trace(seed)), budget=budget, tokenizer="o200k_base")
    assert (problems(payload), problems(other, "openai")) == ([], [])
    # Nothing had to be mended afterwards: the cut itself was sound.
    assert (payload.report.repairs, other.report.repairs) == ((), ())


@pytest.mark.parametrize("keep", range(8))
def test_no_pair_is_split_wherever_the_window_begins(keep):
    """A window of messages breaks one provider's rules on 20 to 39% of prefixes and the other's on 87 to 99%."""
    messages = trace(1)
    for length in range(41, 61):
        payload = fit(messages[:length], budget=900, tokenizer="o200k_base", strategy=f"sliding-window:keep={keep}")
        assert problems(payload) == []


def test_many_parallel_calls_are_one_unit():
    """A peer looks for a call's result only five messages around."""
    messages = [{"role": "user", "content": TASK}]
    for number in range(12):
        ids = [f"t{number}_{place}" for place in range(15)]
        messages.append({"role": "assistant", "content": None, "tool_calls": [call(id) for id in ids]})
        messages += [tool(id, "word " * 10) for id in ids]
    payload = fit(messages, budget=1_500, tokenizer="o200k_base", format="openai")
    assert payload.report.folds
    assert payload.report.repairs == ()
    assert problems(payload, "openai") == []
    assert sum(message["role"] == "tool" for message in payload.messages) % 15 == 0


def test_one_orphan_does_not_disable_compaction():
    """A peer refuses to compact for good once a single result has lost its call."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    session.add({"role": "user", "content": [result("ghost", "word " * 50)]})
    talk(session, 60)
    payload = session.compose_sync()
    assert payload.report.folds
    assert payload.tokens <= 1_500
    assert problems(payload) == []


def test_a_repair_is_the_same_every_time():
    """Ids and texts that are made up anew for each request destroy the cache of everything after them."""
    messages = [*trace(2, turns=3)[:-1], {"role": "user", "content": "go on"}, *turn(9)]
    bodies = {fit(messages, budget=50_000, tokenizer="o200k_base").body() for _ in range(3)}
    assert len(bodies) == 1
    assert fit(messages, budget=50_000, tokenizer="o200k_base").report.repairs


def test_a_running_call_is_not_compacted_away():
    """Peers compact in the middle of a tool call or with an approval pending, and its result arrives as an orphan."""
    session = opened()
    talk(session, 30)
    session.add({"role": "assistant", "content": [text_block("May I?"), use("pending", "deploy")]})
    for number in range(6):
        session.add({"role": "user", "content": f"note {number} " + "word " * 180})
    assert session.compose_sync().report.folds
    assert [item.calls for item in session.view.items if not item.fold and item.calls] == [("pending",)]
    session.add({"role": "user", "content": [result("pending", "approved")]})
    payload = session.compose_sync()
    assert "approved" in json.dumps(payload.messages[-1])
    assert problems(payload) == []


# What must stay


def test_a_one_task_loop_keeps_its_latest_steps():
    """A peer that starts the window on a user's message trims a one-task loop to the system prompt alone."""
    payload = fit(trace(3), budget=2_000, tokenizer="o200k_base", system="You mend.", format="anthropic")
    assert payload.messages[-4:] == trace(3)[-4:]


@pytest.mark.parametrize("keep", [0, 1, 4])
def test_results_are_not_hidden_before_they_were_seen(keep):
    """Where one step alone is too large a peer is left with the task, and the agent makes the same calls for ever."""
    ids = [f"c{number}" for number in range(20)]
    messages = [
        {"role": "user", "content": TASK},
        {"role": "assistant", "content": None, "tool_calls": [call(id) for id in ids]},
        *(tool(id, f"answer of {id}: " + "word " * 100) for id in ids),
    ]
    payload = fit(
        messages, budget=1_500, tokenizer="o200k_base", format="openai", strategy=f"sliding-window:keep={keep}"
    )
    assert payload.tokens <= 1_500
    assert [message["tool_call_id"] for message in payload.messages if message["role"] == "tool"] == ids


def test_the_task_is_in_every_request():
    """Seven of the peers measured lose the message that says what to do."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    for number in range(80):
        talk(session, 1, start=number)
        assert TASK.encode() in session.compose_sync().body()
    assert session.folds


def test_a_window_never_starts_with_the_assistant():
    """A peer's window of 40 messages begins with an answer to nothing."""
    for seed in range(5):
        payload = fit(trace(seed), budget=1_200, tokenizer="o200k_base")
        assert payload.messages[0]["role"] == "user"


def test_the_users_rules_survive():
    """Peers summarise away what the user forbade."""
    session = opened(budget=3_000)
    talk(session, 3)
    session.add({"role": "assistant", "content": "Anything else?"})
    session.add({"role": "user", "content": RULE})
    for number in range(10, 150):
        talk(session, 1, start=number)
        body = session.compose_sync(system="You mend.").body()
        assert RULE.encode() in body
    assert len(session.folds) >= 3


def test_the_system_prompt_is_sent_byte_for_byte_every_time():
    """Peers lose the system prompt or write it anew."""
    session = opened()
    sent = set()
    for number in range(60):
        talk(session, 1, start=number)
        sent.add(json.dumps(session.compose_sync(system="You mend. é").to(cache=False)["system"]))
    assert sent == {json.dumps("You mend. é")}


def test_signed_reasoning_is_sent_as_it_was_or_not_at_all():
    """An edit inside a signed thought makes the provider refuse the request."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    thoughts = [thinking(f"thought {number} " + "hm " * number, signature=f"sig{number}") for number in range(40)]
    for number, thought in enumerate(thoughts):
        session.add({"role": "assistant", "content": [thought, text_block("word " * 20), use(f"t{number}")]})
        session.add({"role": "user", "content": [result(f"t{number}", "word " * (2_000 if number == 30 else 20))]})
        payload = session.compose_sync()
        sent = [block for message in payload.to(cache=False)["messages"] for block in message["content"]]
        assert all(block in thoughts for block in sent if isinstance(block, dict) and block["type"] == "thinking")
    assert session.folds


# Room


@pytest.mark.parametrize("seed", range(5))
def test_no_request_is_over_its_budget(seed):
    """Peers returned 121 k tokens for a limit of 40 k, 139,996 for 8,000, and too much 40 times out of 40."""
    session = opened(budget=2_500)
    for message in trace(seed):
        session.add(message)
        payload = session.compose_sync(system="You mend.")
        assert tokens_of(session, payload.body(cache=False)) == payload.tokens <= 2_500


def test_the_budget_is_checked_inside_a_tool_loop():
    """A peer looks at its threshold only between the turns of the user, and overflows within one."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    for number in range(60):
        for message in turn(number, words=100):
            session.add(message)
        assert session.compose_sync().tokens <= 1_500
    assert len(session.folds) > 3


@pytest.mark.parametrize("window", [8_000, 32_000, 200_000])
def test_a_threshold_is_a_share_of_what_fits(window):
    """A peer's fixed number of tokens is far too late for one model and far too early for another.

    A fold that saves money may come before the mark, but not while half of the window is free.
    """
    session = opened(model="some-model", window=window, budget=None)
    session.add({"role": "user", "content": TASK})
    number, tokens = 0, 0
    while not session.folds:
        before = tokens
        session.extend(turn(number, words=window // 80))
        number += 1
        report = session.compose_sync().report
        tokens = report.tokens
    assert 0.95 * HALF < before / report.limit < 0.97


def test_an_unknown_window_is_not_guessed():
    """Peers assume one, and the request fails or half the window stays empty."""
    with pytest.raises(UnknownModelError, match="window=200_000"):
        opened(model="some-model", budget=None)
    assert opened(model="some-model", budget=None, window=50_000).model.window == 50_000


def test_system_prompt_and_tools_are_counted():
    """A peer counts the messages alone and overflows by its own overhead."""
    session = opened(budget=3_000)
    talk(session, 80)
    tools = [{"name": "read", "description": "word " * 900, "input_schema": {"type": "object"}}]
    payload = session.compose_sync(system="rule " * 900, tools=tools)
    assert payload.tokens <= 3_000
    assert payload.report.parts["system"] > 880
    assert payload.report.parts["tools"] > 880


def test_one_giant_result_does_not_kill_the_session():
    """A single line of millions of tokens ends the sessions of several peers."""
    session = opened(budget=20_000)
    giant = random.Random(5).randbytes(2_000_000).hex()
    session.add({"role": "user", "content": TASK})
    session.add({"role": "assistant", "content": [use("a")]})
    session.add({"role": "user", "content": [result("a", giant)]})
    talk(session, 3)
    payload = session.compose_sync()
    assert payload.tokens <= 20_000
    assert problems(payload) == []
    shown_text = payload.messages[2]["content"][0]["content"]
    assert giant[:1_000] in str(shown_text)
    assert giant[-1_000:] in str(shown_text)
    assert giant.encode() in kept(session)[2]


def picture(size, seed=0):
    data = PNG[:-1] + "A" * size + f"{seed:04}"
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def test_pictures_are_limited_by_bytes_too():
    """They weigh few tokens and many bytes: a peer's request is refused as too large at a tenth of its tokens."""
    session = opened(budget=100_000, models={"claude-sonnet-4-5": {"request_bytes": 200_000}})
    session.add({"role": "user", "content": TASK})
    for number in range(30):
        session.add({"role": "assistant", "content": [use(f"t{number}")]})
        session.add({"role": "user", "content": [result(f"t{number}", [picture(20_000, number)])]})
        payload = session.compose_sync()
        assert len(payload.body()) <= 200_000
        assert problems(payload) == []
    assert b"[image omitted: image/png, " in payload.body()


def test_a_picture_is_never_lost():
    """Peers drop pictures from the history when they make room."""
    session = opened(budget=100_000, models={"claude-sonnet-4-5": {"media_count": 3}})
    talk(session, 1)
    for number in range(10):
        session.add({"role": "user", "content": [picture(100, number), text_block("see")]})
        session.add({"role": "assistant", "content": "seen"})
    assert session.compose_sync().body().count(b'"image"') == 3
    assert sum(b'"image"' in raw for raw in kept(session)) == 10
    for fold in reversed(session.folds):
        session.unfold(fold.id)
    assert session.view.weight.media == 10
