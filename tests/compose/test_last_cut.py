"""There is always a request that fits: old messages go first, then what must stay is cut, at the end to nothing."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windowsill
from support.conversations import result, text_block, use
from support.examples import examples
from windowsill import BudgetError, Session
from windowsill.store.memory import MemoryStore
from windowsill.strategies.registry import BUILT_IN

pytestmark = pytest.mark.unit


def opened(**settings):
    return Session.open(
        "s", store=MemoryStore(), **{"model": "claude-sonnet-4-5", "tokenizer": "o200k_base"} | settings
    )


def sound(payload):
    return windowsill.validate({"max_tokens": 5, **payload.to()}) == []


def tiny(count):
    return [{"role": ("user", "assistant")[number % 2], "content": "x y z"} for number in range(count)]


# A chat never ends


@pytest.mark.parametrize("name", ["sliding-window", "native", "mask", "outputs", "condense"])
def test_a_chat_of_short_messages_never_ends(name):
    """Hundreds of quotations have frames that weigh more than they do: all of it fits, turn after turn."""
    session = opened(model="gpt-5", window=1_500, strategy=name)
    for number in range(500):
        session.add("yes")
        assert session.compose_sync().tokens <= 1_500
        session.add({"role": "assistant", "content": f"{number} " + "word " * 20})


@pytest.mark.parametrize("budget", [40, 60, 100, 300, 1_000])
@pytest.mark.parametrize("count", [7, 501, 5_001])
def test_many_tiny_messages_fit_any_budget(count, budget):
    """A marker that does not fit shrinks, to nothing if need be; the newest message is there."""
    payload = windowsill.fit(tiny(count), budget=budget, model="gpt-5")
    assert payload.tokens <= budget
    assert payload.messages[-1] == {"role": "user", "content": "x y z"}


def test_one_message_fits_a_budget_of_a_few_tokens():
    """A sign stands where it was cut."""
    payload = windowsill.fit([{"role": "user", "content": "word " * 500}], budget=15, model="gpt-5")
    assert payload.tokens <= 15
    assert payload.messages == [{"role": "user", "content": "[...]"}]


MANY = {
    "blocks of a result": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use("t")]},
        {"role": "user", "content": [result("t", [text_block("x")] * 6_000)]},
    ],
    "blocks of a message": [{"role": "user", "content": [text_block("x")] * 10_000}],
    "parallel calls": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use(f"t{number}") for number in range(600)]},
        {"role": "user", "content": [result(f"t{number}", f"output {number}") for number in range(600)]},
    ],
    "calls that are still running": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use(f"t{number}") for number in range(600)]},
    ],
    "instructions": [
        {"role": "user", "content": "go"},
        *({"role": "system", "content": f"rule {number}"} for number in range(3_000)),
        {"role": "user", "content": "now"},
    ],
}


@pytest.mark.growth
@pytest.mark.parametrize("messages", MANY.values(), ids=MANY.keys())
def test_pieces_without_number_fit(messages):
    """Each has a frame that cannot be cut: together they become a text, and a later turn goes on from there."""
    session = opened(window=8_000)
    session.extend(messages)
    before = [message.raw for message in session.messages()]
    payload = session.compose_sync()
    assert payload.tokens <= payload.report.limit
    assert sound(payload)
    session.extend([{"role": "assistant", "content": "done"}, {"role": "user", "content": "and now?"}])
    assert sound(session.compose_sync())
    for fold in reversed(session.folds):
        session.unfold(fold.id)
    assert [session.view.read(item).raw for item in session.view.items][: len(before)] == before


def test_parallel_calls_that_do_not_fit_are_told_in_words():
    """The newest results are there, in short."""
    session = opened(window=4_000)
    session.extend(MANY["parallel calls"])
    payload = session.compose_sync()
    assert b"600 tool calls" in payload.body()
    assert b"output 599" in payload.body()
    assert any("do not fit the window" in note for note in payload.report.notes)


@pytest.mark.growth
def test_a_cut_takes_time_in_proportion():
    """Four times the pieces cost about four times as much, far from sixteen times."""

    def seconds(count):
        session = opened(window=8_000)
        session.extend(MANY["blocks of a result"][:2])
        session.add({"role": "user", "content": [result("t", [text_block("x")] * count)]})
        began = time.process_time()
        session.compose_sync()
        return time.process_time() - began

    assert min(seconds(40_000) for _ in range(2)) < 10 * min(seconds(10_000) for _ in range(3))


@pytest.mark.parametrize("name", sorted(BUILT_IN))
@settings(max_examples=examples(0.1))
@given(
    window=st.integers(300, 2_000),
    steps=st.lists(st.tuples(st.sampled_from("utsp"), st.integers(0, 600)), min_size=1, max_size=25),
)
def test_windows_of_300_tokens_fit_in_every_strategy(name, window, steps):
    """Words, calls with parallel results, instructions: no `BudgetError`, as nothing is pinned or fixed."""
    session = opened(window=window, strategy=name)
    session.add({"role": "user", "content": "the task"})
    for number, (kind, words) in enumerate(steps):
        text = f"{number} " + "word " * words
        if kind == "u":
            session.extend(
                [{"role": "assistant", "content": text}, {"role": "user", "content": f"next {number} {text}"}]
            )
        elif kind == "s":
            session.extend([{"role": "system", "content": text}, {"role": "user", "content": "yes"}])
        else:
            ids = [f"t{number}_{each}" for each in range(1 if kind == "t" else 8)]
            session.add({"role": "assistant", "content": [use(id) for id in ids]})
            session.add({"role": "user", "content": [result(id, text) for id in ids]})
        payload = session.compose_sync()
        assert payload.tokens <= payload.report.limit
        assert sound(payload)


def test_only_what_the_caller_fixed_is_an_error_and_it_is_named():
    """Pins that fill the window: their size, the newest message's, and a remedy that speaks of pins."""
    session = opened(budget=300)
    for number in range(30):
        session.add({"role": "user", "content": f"rule {number}: " + "always " * 30}, marks=["pinned"])
    session.add({"role": "user", "content": "go"})
    with pytest.raises(BudgetError, match="pinned messages") as caught:
        session.compose_sync()
    assert "take pins off" in caught.value.remedy


def test_an_error_without_pins_does_not_speak_of_them():
    """A system message of the conversation is never cut."""
    messages = [{"role": "system", "content": "rule " * 300}, {"role": "user", "content": "go"}]
    with pytest.raises(BudgetError, match="system messages 30") as caught:
        windowsill.fit(messages, budget=200, model="gpt-5", format="openai")
    assert "pin" not in str(caught.value)


# Nothing that fits is cut, and the oldest goes first


def talk(turns=30):
    return [
        {"role": role, "content": f"{role} {number} " + "w " * 30}
        for number in range(turns)
        for role in ("user", "assistant")
    ]


def test_old_talk_goes_before_the_newest_message_is_cut():
    """A contract of half the budget is sent whole; the talk before it is folded."""
    session = opened(budget=8_000)
    session.extend(talk())
    contract = "Review this contract: " + "clause " * 4_100
    session.add(contract)
    payload = session.compose_sync()
    assert contract.encode() in payload.body()
    assert payload.tokens <= 8_000


def test_a_message_that_fits_goes_whole_above_the_high_mark():
    """Nothing else can be folded, and the limit is not passed."""
    session = opened(budget=8_000)
    words = "clause " * 7_600
    session.add(words)
    payload = session.compose_sync()
    assert words.encode() in payload.body()
    assert payload.folds == ()


def test_a_giant_fills_the_budget_of_a_caller_who_keeps_no_session():
    """What has to be cut is cut to what fits, not to half."""
    payload = windowsill.fit([{"role": "user", "content": "word " * 15_000}], budget=10_000, model="gpt-5")
    assert 9_000 < payload.tokens <= 10_000
    assert any("shown in part: user message" in note for note in payload.report.notes)


def test_a_protected_result_stays_whole_while_older_talk_can_go():
    """The result of the last call has 70% of the budget, beside old talk."""
    session = opened(budget=20_000)
    session.extend(talk(60))
    document = "line " * 14_000
    session.extend([{"role": "assistant", "content": [use("t")]}, {"role": "user", "content": [result("t", document)]}])
    payload = session.compose_sync()
    assert document.encode() in payload.body()


def test_a_cut_in_a_session_leaves_room_for_the_next_turns():
    """A task larger than the window is cut once; then the steps of its loop fold around it."""
    session = opened(budget=10_000)
    session.add("word " * 30_000)
    session.compose_sync()
    bodies = []
    for number in range(40):
        session.add({"role": "assistant", "content": [use(f"t{number}")]})
        session.add({"role": "user", "content": [result(f"t{number}", "line " * 60)]})
        payload = session.compose_sync()
        assert payload.tokens <= 10_000
        bodies.append(payload.to(cache=False)["messages"][0]["content"][0])
    assert all(body == bodies[0] for body in bodies)
    assert len(session.folds) < 12


@pytest.mark.growth
def test_a_giant_list_sent_again_and_again_is_cut_alike():
    """A caller who keeps no session gets the same beginning for many calls."""
    messages = [{"role": "user", "content": "word " * 30_000}]
    starts = []
    for number in range(20):
        messages += [{"role": "assistant", "content": f"step {number}"}, {"role": "user", "content": "go on"}]
        starts.append(str(windowsill.fit(messages, budget=10_000, model="gpt-5").messages[0]))
    assert len(set(starts)) == 1
