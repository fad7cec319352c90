"""What holds for every strategy and for pipelines of them, with the writer that needs no model."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import result, text_block, use
from support.examples import examples
from support.sessions import TASK, kept, opened, problems, shown, tokens_of, turn
from support.strategies import conversations, keeps_its_promises
from windowsill.store.memory import MemoryStore
from windowsill.strategies.compact import Compact
from windowsill.strategies.condense import Condense
from windowsill.strategies.extract import Extract
from windowsill.strategies.registry import BUILT_IN
from windowsill.strategies.summarize import Summarize

pytestmark = pytest.mark.contract

BUDGET = 1_500
PIPELINES = (
    "mask+condense",
    "outputs:repeats=true,budget=600+condense",
    "mask+importance+condense",
    "mask:keep=1+priority+summarize",
)
ALL = (*sorted(BUILT_IN), *PIPELINES)
SCHEMA = {"type": "object", "properties": {"destination": {"type": "string"}, "date": {"type": "string"}}}
PLANNERS = {
    "compact": ((Compact(), Compact(keep=0), Compact(keep=3, threshold=0.3)), "retained and summarised"),
    "condense": ((Condense(), Condense(keep=0), Condense(keep=8, share=1)), "six sections"),
    "extract": ((Extract(), Extract(schema=SCHEMA), Extract(least=0, schema=SCHEMA)), '{"goal": "x"}'),
    "summarize": ((Summarize(), Summarize(threshold=2, batch=1)), "s"),
}
"""Strategies that ask for a text, with settings of all kinds, and a text that they may get."""


def steps(sizes):
    """A conversation: a task, then for each size an answer with calls, or words of the user."""
    messages = [{"role": "user", "content": TASK}]
    for number, size in enumerate(sizes):
        if size % 5 == 0:
            messages.append(
                {"role": "assistant", "content": f"Step {number}: src/app_{number}.py is done. " * (size + 1)}
            )
            messages.append(
                {"role": "user", "content": f"Good. You must never touch file_{number}.lock. " * (size + 1)}
            )
        else:
            messages += turn(number, words=size * 9, calls=1 + size % 3)
    return messages


def played(name, messages, store=None):
    """The bytes of every request on the way, and the session."""
    session = opened(store, strategy=name, budget=BUDGET)
    bodies = []
    for message in messages:
        session.add(message)
        if message["role"] == "user":
            payload = session.compose_sync(system="You work on a program.")
            assert problems(payload) == []
            body = payload.body(cache=False)
            assert tokens_of(session, body) <= BUDGET
            bodies.append(body)
    return session, bodies


@pytest.mark.parametrize("planners", PLANNERS.values(), ids=PLANNERS)
@settings(max_examples=examples(0.3))
@given(session=conversations(), chosen=st.integers(0, 2), written=st.booleans())
def test_every_plan_keeps_the_promises(planners, session, chosen, written):
    """Whole units, the task, pins, running calls and the last message stay; pure, deterministic, always smaller."""
    strategies, text = planners
    keeps_its_promises(strategies[chosen % len(strategies)], session, text if written else "")


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=examples(0.08))
@given(sizes=st.lists(st.integers(0, 12), min_size=1, max_size=25))
def test_every_request_fits_is_valid_and_the_same_again(name, sizes):
    """Whatever is said; and nothing that was added is lost or altered."""
    messages = steps(sizes)
    session, bodies = played(name, messages)
    assert played(name, messages)[1] == bodies
    assert len(kept(session)) == len(messages)
    assert session.verify() == []


@pytest.mark.parametrize("name", ALL)
def test_every_fold_can_be_undone_exactly(name):
    """The last made first: in the end the model sees what was added, byte for byte."""
    store = MemoryStore()
    messages = steps([3, 7, 5, 9, 2, 11, 4, 10, 6, 8, 12, 1, 0, 7, 9, 3, 5, 11])
    session, _ = played(name, messages, store)
    assert session.folds
    for fold in reversed(session.folds):
        if fold.active:
            session.unfold(fold.id)
    assert [session.view.read(item).raw for item in session.view.items] == kept(session)
    assert session.view.tokens() == sum(session.view.tokens(item) for item in session.view.items)


@pytest.mark.parametrize("name", ALL)
def test_between_folds_a_request_only_grows_at_its_end(name):
    """So that the provider's cache stays warm."""
    session, bodies = played(name, steps([2, 3, 1, 4, 2, 6, 3, 8, 2, 7, 4, 9, 3, 6, 2, 8]))
    before, folds = None, 0
    grown = 0
    for body, call in zip(bodies, session.calls, strict=True):
        messages = [bytes(each) for each in chunks(body)]
        if before is not None and not call.folds:
            assert messages[: len(before)] == before
            grown += 1
        before, folds = messages, folds + len(call.folds)
    assert grown > 3
    assert folds


def chunks(body):
    """The messages of a request, as they stand in it."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    return msgspec.json.decode(fields["messages"], type=list[msgspec.Raw])


@pytest.mark.parametrize("name", ALL)
def test_the_task_what_is_pinned_and_running_calls_stay(name):
    """Whatever has to go."""
    session = opened(strategy=name, budget=BUDGET)
    session.add({"role": "user", "content": TASK})
    pinned = session.add({"role": "assistant", "content": "The door code is 4711."})
    session.pin(pinned)
    session.add({"role": "user", "content": "Thanks."})
    for number in range(25):
        for message in turn(number, words=40):
            session.add(message)
    session.add({"role": "assistant", "content": [text_block("next"), use("open")]})
    session.add({"role": "user", "content": [result("open", "still here")]})
    session.compose_sync()
    said = [text for _, text in shown(session)]
    assert any(TASK.encode() in text for text in said)
    assert any(b"4711" in text for text in said)
    assert any(b"still here" in text for text in said)
