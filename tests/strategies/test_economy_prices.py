"""Prices and sizes change a decision: masks, signed reasoning, the text of a model."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import result, text_block
from support.examples import examples
from support.sessions import TASK, opened
from windowsill import Budget, models, providers
from windowsill.budget import CachePrices, WriterPrices
from windowsill.compose.model_context import writer_prices
from windowsill.strategies.economy import Economy
from windowsill.strategies.masks import quoted_later, spent_outputs

pytestmark = pytest.mark.unit

ROOMY = Budget(limit=44_000, high=42_000, low=10_000, window=44_000)
WIDE = Budget(limit=90_000, high=88_000, low=10_000, window=90_000, cache=CachePrices(read=0.05))
SERIES = json.dumps({"price": 12.5, "history": [round(200 + number * 0.37, 2) for number in range(120)]})


def priced(budget=ROOMY, **prices):
    """The same budget with these prices."""
    return msgspec.structs.replace(budget, cache=CachePrices(**prices))


def call(session, number, name, text, *, thought="", **given):
    """A call, perhaps after signed reasoning, and its result."""
    blocks = [{"type": "thinking", "thinking": thought, "signature": "c2lnbmVk"}] if thought else []
    made = {"type": "tool_use", "id": f"t{number}", "name": name, "input": given}
    session.add({"role": "assistant", "content": [*blocks, made]})
    session.add({"role": "user", "content": [result(f"t{number}", text)]})


def lines(number, count=45):
    """An output that no other equals, of about 500 tokens."""
    return "\n".join(f"value_{number}_{line} = compute({line})" for line in range(count))


def reads(session, count, *, start=0, thought=""):
    """Calls that read a file each."""
    for number in range(start, start + count):
        call(session, number, "read", lines(number), thought=thought, path=f"src/app_{number}.py")


def polls(session, count, *, start=100):
    """The same call again and again: each output takes the place of the one before."""
    for number in range(start, start + count):
        call(session, number, "status", lines(number), job="build")


def mixed(reading=30, polling=30):
    """A session that read files and then asked for the state of a job, over and over."""
    session = opened(model="claude-sonnet-4-5")
    session.add({"role": "user", "content": TASK})
    reads(session, reading)
    polls(session, polling)
    return session


@pytest.mark.parametrize(
    ("prices", "action"),
    [({"read": 0.1, "write": 1.25}, "add"), ({"read": 0.1, "write": 3.0}, "mask"), ({"read": 0.001}, "wait")],
)
def test_the_prices_decide_between_hiding_masking_and_waiting(prices, action):
    """Hiding frees most, masking the late outputs has less cached again, and waiting costs only reading."""
    decision = Economy().decide(mixed().view, priced(**prices))
    gains = {
        "wait": 0.0,
        "add": decision.saves - decision.costs,
        "mask": decision.batch_saves - decision.batch_costs if decision.outputs else float("-inf"),
    }
    assert decision.action == action == max(gains, key=gains.__getitem__)


def test_a_batch_is_masked_and_told_with_its_figures():
    """Its outputs become a line each; calls, words and what stands before them stay as they are."""
    session = mixed()
    plan = Economy().plan(session.view, priced(write=3.0))
    (proposal,) = plan.proposals
    assert (proposal.kind, plan.decision["action"]) == ("mask", "mask")
    assert len(proposal.spans) == plan.decision["outputs"] > 20
    assert all(text.content[0].text.startswith("[tool output trimmed") for text in proposal.stand_ins)
    assert f"masking {plan.decision['batch']:,} tokens of outputs gains" in proposal.reason
    first = min(span.message for span in proposal.spans)
    assert first > next(item.seq for item in session.view.items if "t29" in item.results)


def test_an_output_that_a_later_call_quotes_stays():
    """It was of use once and may be again, which makes the others more likely to be asked for too."""
    session = mixed()
    before = Economy().decide(session.view, priced(write=3.0))
    call(session, 200, "grep", "nothing", pattern="value_103_7 = compute(7)")
    reads(session, 4, start=300)
    after = Economy().decide(session.view, priced(write=3.0))
    assert (before.quoted, after.quoted) == (0, 1)
    quoted = next(item for item in session.view.items if "t103" in item.results)
    spans = Economy().plan(session.view, priced(write=3.0)).proposals[0].spans
    assert quoted.seq not in {span.message for span in spans}


def test_what_the_user_said_is_no_quote_of_an_output():
    """A value that the user named is known without the output."""
    session = opened()
    session.add({"role": "user", "content": "Look at #W2378156."})
    call(session, 0, "orders", "#W2378156 and #W9911", user="mia")
    items = [item for item in session.view.items if item.results]
    reads(session, 4, start=1)
    call(session, 9, "order", "found", id="#W2378156")
    assert quoted_later(session.view, items, 6) == set()
    call(session, 10, "order", "found", id="#W9911")
    assert quoted_later(session.view, items, 6) == {items[0].seq}


def test_a_series_and_what_was_asked_again_are_spent():
    """A record, a file and a list of names in sentences are not."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    record = json.dumps([{"id": f"4385{number}", "color": "white", "price": 138.07} for number in range(40)])
    for number, text in enumerate([SERIES, record, lines(0)]):
        call(session, number, "get", text, of=str(number))
    call(session, 3, "get", lines(3), of="2")
    outputs = [item for item in session.view.items if item.results]
    assert [item.results for item in spent_outputs(session.view, outputs)] == [("t0",), ("t2",)]


def test_a_batch_that_leaves_no_room_is_condensed():
    """A request that must become smaller is not masked where the next one would have to be folded again."""
    session = mixed(reading=60, polling=10)
    tight = priced(msgspec.structs.replace(ROOMY, limit=35_000, high=34_000), write=3.0)
    assert session.view.tokens() > tight.high
    assert Economy().decide(session.view, tight).action == "add"


# Signed reasoning


def thinking(words):
    """A session whose later calls have signed reasoning of so many words."""
    session = opened(model="claude-sonnet-4-5")
    session.add({"role": "user", "content": TASK})
    reads(session, 120)
    reads(session, 4, start=120, thought="maybe " * words)
    return session.view


@pytest.mark.parametrize(("words", "bound", "action"), [(0, 0, "add"), (5_000, None, "add"), (5_000, 0, "wait")])
def test_signed_reasoning_that_an_edit_voids_is_thought_again(words, bound, action):
    """Losing it costs what writing it did, for a model that takes it only behind an unchanged past."""
    view = thinking(words)
    decision = Economy().decide(view, msgspec.structs.replace(WIDE, bound_after=bound))
    assert decision.action == action
    voided = words > 0 and bound is not None
    assert (decision.voided > words) is voided
    assert decision.costs == pytest.approx(1.25 * (decision.rest + decision.written) + 5 * decision.voided)
    assert ("tokens of signed reasoning are void then" in decision.why) is voided


def test_reasoning_that_is_void_already_costs_nothing():
    """It cannot be lost again after an earlier edit, or a refusal of the provider."""
    view = thinking(5_000)
    refused = msgspec.structs.replace(WIDE, bound_after=view.items[-1].seq)
    assert Economy().decide(view, refused).voided == 0
    assert Economy().decide(view, refused).action == "add"


def test_reasoning_among_the_outputs_speaks_against_a_mask():
    """A mask voids what stands behind it, which hiding takes away as a whole."""
    session = opened(model="claude-sonnet-4-5")
    session.add({"role": "user", "content": TASK})
    polls(session, 60)
    reads(session, 6, start=300, thought="maybe " * 400)
    free = Economy().decide(session.view, priced(write=3.0))
    bound = Economy().decide(session.view, msgspec.structs.replace(priced(write=3.0), bound_after=0))
    assert (free.action, free.voided) == ("mask", 0)
    assert bound.batch_costs > free.batch_costs + 5 * 400


def test_a_cold_cache_is_no_reason_to_void_much_reasoning():
    """The request is written again anyway, but what was thought would have to be thought again."""
    session = opened(model="claude-sonnet-4-5")
    session.add({"role": "user", "content": TASK}, at=0.0)
    reads(session, 60)
    reads(session, 1, start=60, thought="maybe " * 20_000)
    session.add({"role": "user", "content": "go on"}, at=session.view.read(session.view.items[-1]).at + 400)
    assert Economy().decide(session.view, WIDE).action == "join"
    assert Economy().decide(session.view, msgspec.structs.replace(WIDE, bound_after=0)).action == "wait"


@pytest.mark.parametrize(("model", "bound"), [("claude-sonnet-4-5", None), ("claude-sonnet-5", 0)])
def test_the_model_says_whether_an_edit_voids_its_reasoning(model, bound):
    """The budget has it where a strategy decides by prices."""
    with opened(model=model, budget=20_000, strategy="economy") as session:
        session.add({"role": "user", "content": TASK})
        reads(session, 30)
        assert session.composer.budget(0).bound_after == bound


# The price of a model's text


@pytest.mark.parametrize(
    ("writer", "bought"),
    [
        (WriterPrices(), True),
        (WriterPrices(input=0.3, output=1.6), True),
        (WriterPrices(input=5.0, output=25.0), False),
        (WriterPrices(input=5.0, output=25.0, shared=True), True),
        (WriterPrices(input=0.3, output=400.0), False),
        (WriterPrices(input=0.3, output=1.6, seconds=400.0), False),
    ],
)
def test_a_text_is_bought_where_the_fold_saves_more(writer, bought):
    """Its price is all that its model reads and writes, and all that calls read until it is there."""
    session = opened(model="claude-sonnet-4-5")
    session.add({"role": "user", "content": TASK}, at=0.0)
    for number in range(70):
        made = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": f"src/app_{number}.py"}}
        session.add({"role": "assistant", "content": [made]}, at=10.0 * number)
        session.add({"role": "user", "content": [result(f"t{number}", lines(number))]}, at=10.0 * number)
    plan = Economy().plan(session.view, msgspec.structs.replace(ROOMY, writer=writer))
    assert plan.decision["action"] == "add"
    assert (plan.decision["words"] > 0) is bought
    assert (plan.decision["summary"] > 0) is True
    assert any(plan.proposals[0].briefs) is bought
    assert ("is bought" if bought else "is too dear") in plan.decision["why"]


def test_what_a_writer_costs_is_told_against_the_model_of_the_session():
    """A smaller model is cheaper; the session's own reads from its cache; nobody knows what a function costs."""
    model = models.find("claude-sonnet-4-5")
    small = writer_prices("anthropic:claude-haiku-4-5", model)
    assert 0 < small.input < 1 < small.output
    assert not small.shared
    assert writer_prices("anthropic:claude-sonnet-4-5", model).shared
    assert writer_prices("anthropic", model).shared
    assert writer_prices("function:ask", model) == WriterPrices()


def test_the_time_of_the_last_text_is_remembered():
    """A writer that is slow makes the next text dearer."""
    now = iter(range(0, 10_000, 7))

    async def ask(_):
        return "<summary>Looked at the files.</summary>"

    with opened(budget=20_000, strategy="economy", writer=ask) as session:
        session.composer.summaries._clock = lambda: float(next(now))
        session.add({"role": "user", "content": TASK})
        reads(session, 60)
        session.compose_sync()
        assert session.composer.budget(0).writer.seconds == session.composer.summaries.seconds > 0


# Whatever is decided

KINDS = ("poll", "series", "read", "say")


@settings(max_examples=examples(0.3))
@given(
    st.lists(
        st.tuples(st.sampled_from(["poll", "series", "read", "say"]), st.integers(1, 60)), min_size=8, max_size=25
    ),
    st.sampled_from([2_000, 4_000]),
    st.booleans(),
)
def test_requests_fit_are_valid_and_folds_give_everything_back(steps, limit, thinks):
    """With masks and stand-ins in any order; the same steps give the same bytes."""

    def run():
        model = "claude-sonnet-5" if thinks else "claude-sonnet-4-5"
        sent, kinds = [], set()
        with opened(model=model, budget=limit, strategy="economy") as session:
            session.add({"role": "user", "content": TASK})
            for number, (kind, size) in enumerate(steps):
                thought = f"thought {number} " * size if thinks else ""
                if kind == "say":
                    session.add({"role": "assistant", "content": [text_block(f"so {number}")]})
                    session.add({"role": "user", "content": f"word {number} " * size})
                elif kind == "series":
                    call(session, number, "prices", SERIES, thought=thought, of=str(number))
                elif kind == "poll":
                    call(session, number, "status", lines(number, size), thought=thought, job="build")
                else:
                    call(session, number, "read", lines(number, size), thought=thought, path=f"src/{number}.py")
                payload = session.compose_sync()
                assert payload.tokens <= limit
                body = payload.body()
                assert list(providers.get("anthropic").validate({**json.loads(body), "max_tokens": 100})) == []
                sent.append(body)
            kinds = {(fold.kind, fold.strategy) for fold in session.folds}
            whole = [[block.raw for block in message.blocks] for message in session.messages()]
            for fold in reversed(session.folds):
                session.unfold(fold.id)
            assert not any(item.fold or item.cuts for item in session.view.items)
            assert [[block.raw for block in session.view.read(item).blocks] for item in session.view.items] == whole
        return sent, kinds

    assert run() == run()
