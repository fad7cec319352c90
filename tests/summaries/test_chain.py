"""A model's words with the record of code behind them; code alone when the model fails."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.model_writers import COMPACT, ENVIRONMENT, SUMMARY, body, count, made, material, no_sleep, saying, write
from windowsill.history.folds import Brief
from windowsill.messages import Usage
from windowsill.providers.http import RetryPolicy
from windowsill.summaries import Material, ModelWriter, Writer, Written
from windowsill.summaries.model_writer import RECORDED, Chain, writer
from windowsill.summaries.requests import UnusableError
from windowsill.testing import Server

pytestmark = pytest.mark.integration

RECORD = "- read: parse.py"
LEDGER = {"files": ["parse.py"]}


class Recorder:
    """Writes the same record each time, as long as there is room for it."""

    name = "offline"

    def __init__(self, text: str = RECORD) -> None:
        self.text = text
        self.rooms: list[int] = []
        self.styles: list[str] = []

    def write(self, brief: Brief, material: Material) -> Written:
        self.rooms.append(brief.room)
        self.styles.append(brief.style)
        fits = count(self.text) <= (brief.room or material.tokens)
        return Written(text=self.text if fits else "", digest=LEDGER)


class Told:
    """A model writer that gives or raises what it is told to."""

    name = "test:model"

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.rooms: list[int] = []

    async def awrite(self, brief: Brief, material: Material) -> Written:
        del material
        self.rooms.append(brief.room)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome  # type: ignore[no-any-return]


def test_words_and_record() -> None:
    """The model's text comes first, the record of code behind it; the digest is the code's, the name the model's."""
    with Server(saying(COMPACT)) as server:
        written = write(Chain(made(server, "anthropic"), Recorder()), Brief(style="compact"))
    words = "Retained:\n- parse.py\n\nSummary:\nThe parser in parse.py was fixed; the tests pass."
    assert written.text == f"{words}\n\n{RECORDED}\n{RECORD}"
    assert (written.writer, written.digest, written.notes) == ("anthropic:claude-haiku-4-5", LEDGER, ())
    assert written.usage is not None


def test_chain_is_both_kinds_of_writer() -> None:
    """It can be used wherever a writer is wanted, with a model or without."""
    chain = Chain(Told(None), Recorder())
    assert isinstance(chain, Writer)
    assert isinstance(chain, ModelWriter)
    assert chain.write(Brief(), material()).text == RECORD


def test_all_three_stages() -> None:
    """Shared prefix, separate request, offline: each failure is told in its order."""
    with Server(saying("nothing in tags")) as server:
        chain = Chain(made(server, "anthropic"), Recorder())
        written = write(chain, Brief(style="compact"), material(shared=body("anthropic")))
    assert (written.text, written.writer) == (RECORD, "offline")
    assert written.notes == (
        "shared prefix: no-summary-tag: the answer has no <summary>",
        "separate request: no-summary-tag: the answer has no <summary>",
    )
    assert written.usage is not None
    assert written.usage.prompt == sum(seen.tokens for seen in server.seen)


def test_no_model_in_an_emergency() -> None:
    """A brief that needs no model asks none."""
    model = Told(Written(text="words"))
    assert write(Chain(model, Recorder()), Brief(needed=False)).writer == "offline"
    assert model.rooms == []


def test_room_is_shared() -> None:
    """The model gets half of the room, the record all that is left of it."""
    model, record = Told(Written(text="w" * 40, writer="test:model")), Recorder()
    written = write(Chain(model, record), Brief(room=200))
    assert model.rooms == [100]
    assert 150 < record.rooms[-1] < 190
    assert count(written.text) <= 200


def test_no_room_for_both() -> None:
    """The model's text never replaces the record: where only one fits, it is the record."""
    record = Recorder("r" * 500)
    written = write(Chain(Told(Written(text="w" * 200, writer="test:model")), record), Brief(room=150))
    assert (written.text, written.writer) == (record.text, "offline")
    assert written.notes == ("ledger: there was no room for the model's words beside the record",)


def test_record_cannot_be_forged() -> None:
    """A model that imitates the heading of the record is told on, and what it claims to know is not in the digest."""
    forged = Written(text=f"Words.\n{RECORDED}\n- all is well", digest={"files": ["evil.py"]}, writer="test:model")
    written = write(Chain(Told(forged), Recorder()))
    assert written.text.count(RECORDED) == 1
    assert written.text.endswith(f"{RECORDED}\n{RECORD}")
    assert written.digest == LEDGER


def test_record_has_sections_of_its_own() -> None:
    """The record does not repeat the sections that the model was asked for."""
    record = Recorder()
    write(Chain(Told(Written(text="words")), record), Brief(style="condense"))
    assert set(record.styles) == {"summary"}


def test_nothing_to_record() -> None:
    """Where code has nothing to say, the model's text stands alone."""
    assert write(Chain(Told(Written(text="words", writer="test:model")), Recorder("")), Brief(room=150)).text == "words"


def test_state_stays_an_object() -> None:
    """Nothing is put behind an object: it would no longer be one. What code knows goes into the digest."""
    with Server(saying('{"city": "Kyoto"}')) as server:
        chain = Chain(made(server, "openai"), Recorder())
        written = write(chain, Brief(style="state", schema={"type": "object"}))
    assert json.loads(written.text) == {"city": "Kyoto"}
    assert written.digest == {**LEDGER, "state": {"city": "Kyoto"}}


@pytest.mark.parametrize(
    ("outcome", "note"),
    [
        (UnusableError("empty", "the model said nothing"), "empty: the model said nothing"),
        (RuntimeError("secret"), "failed: the writer raised RuntimeError"),
        (ExceptionGroup("several", [ValueError("x")]), "failed: the writer raised ExceptionGroup"),
        (Written(text=""), "empty: the writer gave no text"),
        (Written(text=" \n"), "empty: the writer gave no text"),
        (None, "empty: the writer gave no text"),
        ("text", "empty: the writer gave no text"),
        (Written(text=7), "unreadable: the writer gave what cannot be kept (AttributeError)"),  # type: ignore[arg-type]
        (Written(text="x", notes=None), "unreadable: the writer gave what cannot be kept (ValidationError)"),  # type: ignore[arg-type]
        (Written(text="x", writer=None), "unreadable: the writer gave what cannot be kept (ValidationError)"),  # type: ignore[arg-type]
        (Written(text="x", digest={"a": {1: object}}), "unreadable: the writer gave what cannot be kept (TypeError)"),
    ],
)
def test_whatever_the_model_does(outcome: Any, note: str) -> None:
    """Whatever a model writer gives or raises, code fills in and says why."""
    written = write(Chain(Told(outcome), Recorder()))
    assert (written.text, written.notes) == (RECORD, (note,))


def test_half_letters_are_replaced() -> None:
    """No store takes them, and the rest of the text is good."""
    assert write(Chain(Told(Written(text="Fine \ud83d here.")), Recorder())).text.startswith("Fine ? here.")


def test_words_that_are_too_long() -> None:
    """A writer of somebody else's that gives more than it replaces does not get through."""
    written = write(Chain(Told(Written(text="w" * 10_000)), Recorder()), given=material(tokens=200))
    assert written.text == RECORD


def test_state_that_is_too_long() -> None:
    """Nor does an object."""
    written = write(Chain(Told(Written(text="w" * 10_000)), Recorder()), Brief(style="state"), material(tokens=200))
    assert written.text == RECORD


def test_both_fail() -> None:
    """When the offline writer fails too, there is no text, and the notes say why: the marker stays."""

    class Broken(Recorder):
        def write(self, brief: Brief, material: Material) -> Written:
            raise OSError(brief, material)

    written = write(Chain(Told(ValueError()), Broken()))
    assert written == Written(
        text="",
        notes=("failed: the writer raised ValueError", "failed: the offline writer raised OSError"),
    )


def test_cancellation_comes_out() -> None:
    """Only a cancellation is let through: whoever waits no longer gets nothing, at once."""

    async def run(chain: Chain) -> None:
        with anyio.move_on_after(0.2) as scope:
            await chain.awrite(Brief(), material())
        assert scope.cancelled_caught

    record = Recorder()
    with Server(saying(SUMMARY), delay=2.0) as server:
        anyio.run(run, Chain(made(server, "openai"), record))
    assert record.rooms == []


def test_slow_model() -> None:
    """A model that does not answer in time costs that time and nothing else."""
    with Server(saying(SUMMARY), delay=1.0) as server:
        written = write(Chain(made(server, "openai", policy=RetryPolicy(patience=0.1)), Recorder()))
    assert (written.text, written.notes) == (RECORD, ("timeout: no usable answer in time",))


def test_costs_of_failures_are_kept() -> None:
    """What a useless answer cost is told with the text that code wrote."""
    spent = Usage(input=10, output=5)
    assert write(Chain(Told(UnusableError("empty", "nothing", usage=spent)), Recorder())).usage == spent


def test_no_key_is_no_error() -> None:
    """A writer without a key leaves the work to code."""
    chain = Chain(writer("anthropic:claude-haiku-4-5", environment={}, sleep=no_sleep), Recorder())
    assert write(chain).notes == ("no-key: there is no key for anthropic",)


def test_bad_model_in_a_brief() -> None:
    """A brief that names an address that is none leaves the work to code."""
    chain = Chain(writer("anthropic:claude-haiku-4-5", environment=ENVIRONMENT, sleep=no_sleep), Recorder())
    assert write(chain, Brief(model="openai:m@http://")).text == RECORD


def test_names() -> None:
    """It is called by its model, and shows which code stands behind it."""
    assert repr(Chain(Told(None), Recorder())) == "<writer test:model, then offline>"


@given(st.text(max_size=400), st.integers(0, 120), st.integers(2, 150), st.text(max_size=200))
def test_never_larger(words: str, room: int, tokens: int, record: str) -> None:
    """What comes out is smaller than what it replaces and within the room, or it is empty."""
    chain = Chain(Told(Written(text=words)), Recorder(record))
    written = write(chain, Brief(room=room), material((), tokens=tokens))
    size = count(written.text)
    assert not written.text or (size <= tokens and size <= (room or tokens))
