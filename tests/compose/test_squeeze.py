"""The cuts that cannot fail: giants, media, bytes. Counted from the request's own bytes, and undone byte for byte."""

import itertools
import json

import pytest

import windowsill
from support.conversations import PNG, result, text_block, use
from windowsill import BudgetError, Session, providers
from windowsill.compose.squeeze import cut_block, weigh
from windowsill.history.view import sum_weights
from windowsill.messages import Text, ToolResult, text_of
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

BUDGET = 2_000
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
MODEL = "claude-sonnet-4-5"


def opened(budget=BUDGET, **facts):
    ticks = itertools.count(1)
    return Session.open(
        "s",
        model=MODEL,
        budget=budget,
        tokenizer="o200k_base",
        models={MODEL: facts} if facts else None,
        store=MemoryStore(),
        clock=lambda: float(next(ticks)),
    )


def weighed(session, payload):
    """The tokens of a request, counted from its own bytes."""
    request = providers.read_request(payload.body(cache=False), format=payload.format)
    scale = session.composer.context.scale
    parts = [scale.weigh(message) for message in (*request.messages, request.system) if message is not None]
    return scale.tokens(sum_weights([*parts, scale.weigh_tools(request.tools), scale.frame]))


def answered(call, output):
    return [
        {"role": "user", "content": "the task"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result(call["id"], output)]},
    ]


LONG = "word " * 40_000
GIANTS = {
    "a giant task": [{"role": "user", "content": LONG}],
    "a giant result": answered(use("a"), LONG),
    "a single line of three million characters": answered(use("a"), "x" * 3_000_000),
    "a result in many blocks": answered(use("a"), [text_block("word " * 400) for _ in range(60)]),
    "giant arguments": answered({**use("a"), "input": {"path": "a.py", "text": LONG}}, "ok"),
    "giant arguments of a running call": answered({**use("a"), "input": {"path": "a.py", "text": LONG}}, "ok")[:2],
    "arguments of many numbers": answered({**use("a"), "input": {"numbers": list(range(9_000))}}, "ok"),
    "giant words of the assistant": [*answered(use("a"), "ok"), {"role": "assistant", "content": LONG}],
}


@pytest.mark.parametrize("messages", GIANTS.values(), ids=GIANTS.keys())
def test_one_giant_never_kills_the_session(messages):
    """It is cut in the middle; the request fits by its own bytes, is valid, and the fold brings everything back."""
    session = opened()
    session.extend(messages)
    before = [message.raw for message in session.messages()]
    payload = session.compose_sync(system="mend it")
    assert weighed(session, payload) == payload.tokens <= BUDGET
    assert windowsill.validate({"max_tokens": 5, **payload.to()}) == []
    assert payload.report.repairs == () or len(messages) == 2
    for fold in reversed(session.folds):
        session.unfold(fold.id)
    assert [session.view.read(item).raw for item in session.view.items] == before


def test_a_cut_result_shows_the_passage_that_was_spoken_of():
    """Beside its ends, a result larger than its room shows the lines with the words of the conversation."""
    lines = [f"    step {number} {k} of handler_{number}" if k else "" for number in range(60) for k in range(14)]
    whole = ToolResult(tool_use_id="a", content=(Text(text="\n".join(lines)),))
    scale = opened().composer.context.scale
    cut = cut_block(whole, 1_500, scale, {"handler_37": 0.1})
    assert weigh(cut, scale) <= 1_500
    assert "step 37 11 of" in text_of(cut.content)
    assert "step 38 11 of" not in text_of(cut.content)


def test_most_lines_of_a_result_a_little_larger_than_the_window_stay():
    """It was just read, and the next call quotes it: ends, passages and names have most of the window."""
    output = "\n".join(f"def step_{number}(value): return value + {number}" for number in range(180))
    session = opened()
    for message in answered(use("a"), output):
        session.add(message)
    payload = session.compose_sync()
    body = payload.body(cache=False).decode()
    whole = [line for line in output.split("\n") if line in body]
    assert weighed(session, payload) <= BUDGET
    assert len(whole) > 0.6 * len(output.split("\n"))


def test_a_giant_pinned_message_is_cut_but_never_hidden():
    """Its beginning and its end stay."""
    session = opened()
    session.extend(answered(use("a"), "ok"))
    session.add({"role": "user", "content": "RULE " + LONG + " END"}, marks=["pinned"])
    for turn in range(20):
        session.add({"role": "assistant", "content": [use(f"t{turn}")]})
        session.add({"role": "user", "content": [result(f"t{turn}", "word " * 40)]})
    payload = session.compose_sync()
    assert weighed(session, payload) == payload.tokens <= BUDGET
    assert b"RULE word" in payload.body()
    assert b"word  END" in payload.body()


def test_a_cut_says_what_is_missing_and_why():
    """The request tells the model, the fold tells the user."""
    session = opened()
    session.extend(answered(use("a"), LONG))
    payload = session.compose_sync()
    assert b"omitted here" in payload.body()
    assert (session.folds[0].strategy, session.folds[0].kind) == ("outputs", "mask")
    assert session.folds[0].reason == "1 output above 2,000 bytes"


@pytest.mark.parametrize("share", [0.6, 0.95])
def test_a_system_message_of_the_conversation_is_never_cut(share):
    """B1 holds where the format keeps the system prompt among the messages, too."""
    rules = "rule " * int(BUDGET * share)
    messages = [{"role": "system", "content": rules}, {"role": "user", "content": "the task"}]
    messages += [{"role": role, "content": "word " * 80} for _ in range(20) for role in ("assistant", "user")]
    payload = windowsill.fit(messages, budget=BUDGET, tokenizer="o200k_base", format="openai")
    assert payload.messages[0] == {"role": "system", "content": rules}
    assert payload.tokens <= BUDGET


def test_a_system_message_larger_than_the_budget_is_an_error_that_says_so():
    """B1: named with its size, as a system prompt given apart is."""
    messages = [{"role": "system", "content": "rule " * 3_000}, {"role": "user", "content": "the task"}]
    with pytest.raises(BudgetError, match=r"system.* 3,0"):
        windowsill.fit(messages, budget=BUDGET, tokenizer="o200k_base", format="openai")


def test_too_many_pictures_give_way_oldest_first():
    """T7: a note stands where each was; the newest stay."""
    session = opened(100_000, media_count=3)
    for number in range(8):
        session.add({"role": "user", "content": [IMAGE, text_block(f"picture {number}")]})
        session.add({"role": "assistant", "content": "seen"})
    body = session.compose_sync().to()
    kept = [
        len([block for block in message["content"] if block["type"] == "image"]) for message in body["messages"][::2]
    ]
    assert kept == [0, 0, 0, 0, 0, 1, 1, 1]
    assert body["messages"][0]["content"][0]["text"].startswith("[image omitted: image/png")


def test_a_picture_in_a_result_counts_too():
    """And its result stays in place with a note."""
    session = opened(100_000, media_count=1)
    session.extend(answered(use("a"), [IMAGE, text_block("shot")]))
    session.extend(answered(use("b"), [IMAGE])[1:])
    payload = session.compose_sync()
    assert payload.body().count(PNG.encode()) == 1
    assert windowsill.validate({"max_tokens": 5, **payload.to()}) == []


def test_a_picture_larger_than_the_provider_takes_goes_alone():
    """Small ones beside it stay."""
    session = opened(100_000, media_bytes=500)
    large = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4_000}}
    session.add({"role": "user", "content": [IMAGE, large]})
    body = session.compose_sync().to()
    assert [block["type"] for block in body["messages"][0]["content"]] == ["image", "text"]


def test_many_small_pictures_are_no_reason_to_cut_a_long_message_that_fits():
    """Each is below the limit for one, only together they are above it: nothing has to change."""
    session = opened(20_000, media_bytes=12)
    session.add({"role": "user", "content": [IMAGE, IMAGE, text_block("word " * 10_500)]})
    payload = session.compose_sync()
    assert payload.report.folds == ()
    assert payload.messages[0]["content"][2]["text"] == "word " * 10_500


def test_a_picture_in_the_way_does_not_cost_the_words_beside_it():
    """What can only go whole goes; the text takes the room that is left, and is not cut to nothing."""
    session = opened(4_000)
    session.add({"role": "user", "content": [IMAGE, IMAGE, text_block("word " * 9_000)]})
    payload = session.compose_sync()
    assert 2_500 < payload.tokens < 4_000
    assert [fold.messages for fold in payload.report.folds] == [1]


@pytest.mark.parametrize("system", [None, "あ" * 1_700], ids=["no system", "a system prompt of 5,100 bytes"])
def test_the_body_stays_within_the_bytes_of_the_provider(system):
    """T7: the whole request counts, system prompt and tools included."""
    session = opened(budget=100_000, request_bytes=8_000)
    for number in range(30):
        session.add({"role": "user", "content": f"{number} " + "日本語" * 60})
        session.add({"role": "assistant", "content": "はい"})
    payload = session.compose_sync(system=system, tools=[{"name": "run", "input_schema": {"type": "object"}}])
    assert len(payload.body()) <= 8_000
    assert any("8,000 bytes" in note for note in payload.report.notes)


def test_one_message_of_too_many_bytes_is_cut():
    """T7: few tokens, many bytes, and nothing else that could go."""
    session = opened(budget=100_000, request_bytes=8_000)
    session.add({"role": "user", "content": "=" * 60_000})
    payload = session.compose_sync()
    assert len(payload.body()) <= 8_000


def test_a_cut_message_is_sent_cut():
    """The body holds what the count says: the beginning, the end, and nothing of the middle."""
    session = opened()
    output = "\n".join(f"line {number}" for number in range(20_000))
    session.extend(answered(use("a"), output))
    sent = json.dumps(session.compose_sync().to())
    assert "line 0" in sent
    assert "line 19999" in sent
    assert "line 10000" not in sent


@pytest.mark.parametrize("limit", [{"media_count": 20}, {"request_bytes": 30_000}], ids=["number", "bytes"])
def test_pictures_go_in_batches(limit):
    """An agent that takes a screenshot at every turn folds once in several turns, not at each."""
    session = opened(100_000, **limit)
    shot = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG + "A" * 1_000}}
    folding = 0
    for number in range(60):
        session.add({"role": "user", "content": [shot, text_block(f"picture {number}")]})
        folding += bool(session.compose_sync().folds)
        session.add({"role": "assistant", "content": "seen"})
    assert 2 <= folding <= 10


def test_a_list_of_pictures_sent_again_begins_alike():
    """A caller who keeps no session has the same ones left out for many calls."""
    messages, starts = [], []
    facts = {MODEL: {"media_count": 20}}
    for number in range(40):
        messages.append({"role": "user", "content": [IMAGE, text_block(f"picture {number}")]})
        fitted = windowsill.fit(messages, model=MODEL, models=facts, format="anthropic")
        starts.append(json.dumps(fitted.messages).count("image omitted"))
        messages.append({"role": "assistant", "content": "seen"})
    assert sorted(set(starts)) == [0, 6, 12, 18, 24]
