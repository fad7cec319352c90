"""Where other context managers waste money and time: caches, counting, bookkeeping. Counted, never timed."""

import base64
import itertools
import json
import random

import pytest

from support.sessions import TASK, opened, talk, tokens_of, turn
from windowsill import fit
from windowsill.store.memory import MemoryStore
from windowsill.tokens import counter

pytestmark = pytest.mark.unit


def common(before, now):
    """Return how many bytes at the start of a request equal the one before."""
    least = min(len(before), len(now))
    return next((place for place in range(least) if before[place] != now[place]), least)


def prompt(payload):
    """The part of a request that a cache sees, without the signs that close it."""
    body = payload.to(cache=False)
    return json.dumps([body.get("system"), *body["messages"]])[:-1]


def reuse(payloads):
    """For each request after the first: the share of it that a cache has, and whether that is all of the one before."""
    texts = [prompt(payload) for payload in payloads]
    found = []
    for before, now in itertools.pairwise(texts):
        shared = common(before, now)
        found.append((shared / len(now), shared == len(before)))
    return found


@pytest.mark.parametrize("budget", [4_000, 12_000])
def test_the_cached_prefix_is_kept_over_many_turns(budget):
    """Peers reuse 10 to 60% of a request and one pays 51% more than without it; nothing trimmed would be 0.985."""
    session = opened(budget=budget)
    payloads = []
    for number in range(200):
        talk(session, 1, start=number, words=100)
        payloads.append(session.compose_sync(system="You mend."))
    found = reuse(payloads)
    assert len(session.folds) >= 2
    assert sum(share for share, _ in found) / len(found) >= {4_000: 0.83, 12_000: 0.93}[budget]
    assert sum(whole for _, whole in found) / len(found) >= 0.9


def test_the_report_says_how_much_of_a_request_is_cached():
    """A peer destroyed a cache of 219 k tokens and nobody saw it before the bill."""
    session = opened(budget=4_000)
    before = ""
    for number in range(60):
        talk(session, 1, start=number, words=60)
        payload = session.compose_sync(system="You mend.")
        if number:
            measured = common(before, prompt(payload)) / len(prompt(payload))
            assert payload.report.stable / payload.tokens == pytest.approx(measured, abs=0.12)
        before = prompt(payload)


def test_a_caller_without_a_session_keeps_the_prefix_too():
    """A peer that trims a list to its limit on every call moves the start of the window on every call."""
    messages, payloads = [{"role": "user", "content": TASK}], []
    for number in range(120):
        messages += turn(number, words=60)
        payloads.append(fit(messages, budget=5_000, tokenizer="o200k_base", format="anthropic"))
    found = reuse(payloads)
    assert sum(share for share, _ in found) / len(found) >= 0.88
    assert sum(whole for _, whole in found) / len(found) >= 0.9


# Counting


class Tally:
    """A counter that says how many characters it was asked to count."""

    def __init__(self, inner):
        self.inner = inner
        self.name = inner.name
        self.characters = 0

    def count(self, text):
        self.characters += len(text)
        return self.inner.count(text)


def test_a_message_is_counted_once():
    """Peers count everything again on each call: 62.8 s for 2,000 turns, 348 s for one reduction."""
    session = opened(budget=1_000_000)
    tally = session.composer.context.scale.counter = Tally(session.composer.context.scale.counter)
    counted = []
    for number in range(300):
        before = tally.characters
        talk(session, 1, start=number)
        session.compose_sync(system="You mend.")
        counted.append(tally.characters - before)
    assert counted[-1] <= counted[5] + 50


CHANCE = random.Random(3)
SAMPLES = {
    "minified JSON": (
        -0.2,
        json.dumps([{"id": n, "x": n * 37 % 101, "ok": True} for n in range(300)]).replace(" ", ""),
    ),
    "logs": (
        -0.2,
        "\n".join(f"2026-11-0{n % 9 + 1}T10:{n % 60:02}:07.{n:03}Z [w-{n}] 0x{n * 7919:08x}" for n in range(300)),
    ),
    "base64": (-0.3, base64.b64encode(CHANCE.randbytes(6_000)).decode()),
    "Chinese": (-0.5, "请修复登录页面并且不要改动账单表格。" * 400),
}


@pytest.mark.parametrize(("least", "text"), SAMPLES.values(), ids=SAMPLES.keys())
def test_a_real_tokenizer_sees_what_characters_hide(least, text):
    """A quarter of the characters is 46 to 78% too little for JSON, logs, base64 and Chinese: peers overflow there."""
    real = counter("o200k_base").count(text)
    assert real > 3_000
    assert counter("chars/4").count(text) / real - 1 < least
    session = opened(model="gpt-4o", tokenizer=None, budget=3_000)
    session.add({"role": "user", "content": TASK})
    session.add({"role": "assistant", "content": text})
    session.add({"role": "user", "content": "And now?"})
    payload = session.compose_sync()
    assert tokens_of(session, payload.body(), "openai") == payload.tokens <= 3_000
    assert counter("o200k_base").count("".join(str(each["content"]) for each in payload.messages)) <= 3_000


# Bookkeeping


class Weighed:
    """A store that says how much was written to it and read from it."""

    def __init__(self):
        self._store = MemoryStore()
        self.written = self.read_entries = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def append(self, session, version, entries, *, snapshots=(), blobs=(), **more):
        snapshots, blobs = list(snapshots), list(blobs)
        self.written += sum(len(entry.meta) + len(entry.body or b"") for entry in entries)
        self.written += sum(len(data) for _, data in (*snapshots, *blobs))
        self._store.append(session, version, entries, snapshots=snapshots, blobs=blobs, **more)

    def read(self, *args, **more):
        found = self._store.read(*args, **more)
        self.read_entries += len(found)
        return found


def per_stretch(turns, stretch, budget=4_000, **each):
    """Return what each stretch of a session of many turns wrote and read."""
    store = Weighed()
    session = opened(store, budget=budget)
    wrote, read = [], []
    for start in range(0, turns, stretch):
        before = store.written, store.read_entries
        for number in range(start, start + stretch):
            talk(session, 1, start=number, words=20)
            session.compose_sync(system="rule " * 50, **each)
        wrote.append(store.written - before[0])
        read.append(store.read_entries - before[1])
    return wrote, read


@pytest.mark.growth
def test_what_a_turn_writes_does_not_grow_with_the_session():
    """Checkpoints that repeat the whole history grow with its square: 135 GB and 500 GB were reported."""
    wrote, _ = per_stretch(900, 150)
    assert wrote[-1] < wrote[1] * 1.15


@pytest.mark.growth
def test_what_a_turn_reads_does_not_grow_with_the_session():
    """Reductions that walk the whole history take 38 s for one step of a peer after 1,000 turns."""
    _, read = per_stretch(900, 150)
    assert read[-1] <= read[1] * 1.3 + 20


def test_a_system_prompt_is_stored_once():
    """A request can be built again without keeping a copy of each one."""
    tools = [{"name": "read", "description": "word " * 2_000, "input_schema": {}}]
    wrote, _ = per_stretch(40, 20, budget=1_000_000, tools=tools)
    assert wrote[1] < 20_000 < wrote[0]


def test_the_marker_does_not_grow_with_what_it_stands_for():
    """Summaries of summaries without end fill the window they were to free."""
    session = opened(budget=3_000)
    sizes = []
    for number in range(400):
        session.add({"role": "assistant", "content": f"done with {number}"})
        session.add({"role": "user", "content": f"wish {number}: " + "please " * 20})
        session.compose_sync()
        sizes += [session.view.tokens(item) for item in session.view.items if item.fold][:1]
    assert len(session.folds) > 5
    assert max(sizes) < 3_000 // 2
    third = len(sizes) // 3
    assert max(sizes[-third:]) <= max(sizes[:third]) * 1.05
