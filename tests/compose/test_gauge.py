"""The gauge follows the totals that a provider reports, whatever it counts that we do not see."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import examples
from windowsill import Session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

WORDS = ["the", "plan", "of", "this", "city", "was", "drawn", "long", "ago", "and", "people", "still", "walk", "there"]


class Provider:
    """A provider that counts `ratio` tokens for each of ours, and `constant` tokens that the client never sees."""

    def __init__(self, ratio=1.0, constant=0, *, store=None, model="claude-sonnet-4-5", **settings):
        ticks = itertools.count(1)
        self.ratio, self.constant, self.random = ratio, constant, random.Random(1)
        self.store = store or MemoryStore()
        self.open = lambda: Session.open(
            "s", model=model, store=self.store, clock=lambda: float(next(ticks)), **settings
        )
        self.session = self.open()

    def say(self, words):
        """Return so many words of prose."""
        return " ".join(self.random.choice(WORDS) for _ in range(words))

    def ask(self, words):
        """Add a question of so many words; return the payload and what the provider counts for it."""
        self.session.add({"role": "user", "content": self.say(words)})
        payload = self.session.compose_sync(system="be brief")
        sent = self.session.composer.last.weight
        text = sent.prose + sent.code + sent.json + sent.cjk
        return payload, round(self.constant + self.ratio * text + sent.overhead)

    def answer(self, reported, words=50):
        """Add an answer with its usage."""
        reply = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": self.say(words)}]}
        self.session.add(reply | {"usage": {"input_tokens": reported, "output_tokens": words}})

    def turns(self, sizes):
        """Have a conversation; return payload and reported total of each request."""
        found = []
        for size in sizes:
            found.append(self.ask(size))
            self.answer(found[-1][1], size // 3)
        return found


def off(payload, reported):
    return abs(payload.tokens - reported) / reported


@settings(max_examples=examples(0.4))
@given(
    ratio=st.floats(0.5, 2.5),
    constant=st.integers(0, 150_000),
    sizes=st.lists(st.integers(150, 800), min_size=5, max_size=8),
)
def test_after_three_calls_the_gauge_is_within_three_percent(ratio, constant, sizes):
    """T2: whatever the ratio and the constant of a provider are, both are learned from three reported totals."""
    later = Provider(ratio, constant).turns(sizes)[3:]
    assert max(off(*each) for each in later) < 0.03


@settings(max_examples=examples(0.15))
@given(ratio=st.floats(0.5, 2.5), constant=st.integers(0, 8_000))
def test_a_fold_does_not_confuse_the_gauge(ratio, constant):
    """The constant stays when messages are hidden, and a total that fell is understood."""
    provider = Provider(ratio, constant, budget=16_000)
    turns = provider.turns([600] * 40)
    folded = [index for index, (payload, _) in enumerate(turns) if payload.folds]
    assert folded
    assert max(off(*each) for each in turns[3:]) < 0.03
    assert provider.session.composer.context.describe()["unseen"] == pytest.approx(constant, abs=600)


def test_a_reported_total_above_the_mark_triggers_a_reduction():
    """S6: the count alone is far below the high mark; the provider says that the window is nearly full."""
    provider = Provider(constant=0)
    provider.turns([2_000] * 23)
    provider.constant = 100_000
    payload, reported = provider.ask(100)
    assert payload.tokens < 80_000
    assert reported > 0.8 * 200_000
    provider.answer(reported)
    payload, reported = provider.ask(100)
    assert payload.folds
    assert off(payload, reported) < 0.03


def test_the_report_names_what_only_the_provider_sees():
    """The parts add up to the total, which is the provider's, and the session shows the same."""
    provider = Provider(1.2, 40_000)
    provider.turns([300] * 4)
    payload, reported = provider.ask(300)
    report = payload.report
    assert sum(report.parts.values()) == report.tokens == payload.tokens
    assert report.parts["unseen"] == pytest.approx(40_000, rel=0.02)
    assert provider.session.composer.fill[0] == pytest.approx(reported, rel=0.03)


def test_the_error_shown_is_that_of_the_totals():
    """A constant that was not known yet is an error, however well the growth was predicted."""
    provider = Provider(constant=50_000)
    first, reported = provider.ask(300)
    provider.answer(reported)
    counting = provider.session.composer.context.describe()
    assert counting["error_percent"] == pytest.approx(100 * off(first, reported), abs=0.5)


def test_a_short_report_counts_as_an_observation():
    """Even the smallest request is compared with what the provider says."""
    provider = Provider()
    provider.answer(provider.ask(3)[1])
    assert provider.session.composer.context.describe()["observations"] == 1


def test_a_reopened_session_still_knows_what_only_the_provider_sees():
    """Whoever stops and goes on does not have to be told again."""
    provider = Provider(constant=60_000)
    provider.turns([200] * 4)
    provider.session.close()
    provider.session = provider.open()
    assert off(*provider.ask(200)) < 0.03


@pytest.mark.parametrize("nonsense", [1, 10, 10**7])
def test_a_report_that_cannot_be_true_changes_nothing(nonsense):
    """A server that leaves out cached tokens, or counts in other units, neither empties nor overfills the window."""
    provider = Provider()
    provider.turns([500] * 4)
    provider.ask(500)
    provider.answer(nonsense)
    assert off(*provider.ask(500)) < 0.03


def test_what_the_provider_adds_never_ends_a_session():
    """A stated budget that the hidden part alone passes still lets the newest message through."""
    provider = Provider(constant=30_000, budget=8_000)
    for _ in range(5):
        payload, reported = provider.ask(200)
        provider.answer(reported)
    assert payload.tokens <= 8_000
    assert payload.report.parts["messages"] > 200


def test_the_same_conversation_gives_the_same_bytes():
    """What is learned depends on the history alone."""
    first, second = (Provider(1.7, 9_000, budget=20_000).turns([300] * 25) for _ in range(2))
    assert [payload.body() for payload, _ in first] == [payload.body() for payload, _ in second]
