"""Random histories, honest and hostile: nothing is lost, every request fits, is valid, and reads in every format."""

import json
import random

import pytest

from support import wire_checks
from support.histories import FORMATS, History
from support.soak import Tally
from windowsill import BudgetError, InputError, Session, WindowsillError, tokens
from windowsill.messages import ORIGIN

pytestmark = pytest.mark.integration

SESSIONS = 5
"""Sessions of each kind in `make test`."""
MODELS = {
    "anthropic": ["claude-sonnet-4-5", "claude-sonnet-5"],
    "openai": ["gpt-5", "gpt-4o"],
    "responses": ["gpt-5"],
    "gemini": ["gemini-2.5-flash", "gemini-3-pro"],
}
STRATEGIES = (
    *(None, None, None, "economy", "sliding-window", "mask", "outputs", "tiered", "layered", "importance", "priority"),
    *("summarize", "compact", "condense", "extract", "native", "outputs+condense:keep=4", "condense:keep=0"),
    *("mask:keep=0+summarize:threshold=3,batch=2", "tiered:immediate=1,short=1,batch=1"),
)
"""The default most often."""
WINDOWS = (400, 1_000, 2_000, 4_000, 8_000, 20_000, 200_000)
SYSTEMS = (None, "You mend software.", "", "   ", "long " * 40)
VOCABULARY = tokens.counter("o200k_base")


def as_kept(value):
    """Return what is kept of a message: halves of surrogate pairs are no text, and become the text of their escape."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [as_kept(each) for each in value]
    return {as_kept(key): as_kept(each) for key, each in value.items()} if isinstance(value, dict) else value


class Campaign:
    """One session with a random history."""

    def __init__(self, rng: random.Random, tally: Tally, *, hostile: bool) -> None:
        self.rng, self.tally, self.hostile = rng, tally, hostile
        self.format = rng.choice(FORMATS)
        self.model = rng.choice(MODELS[self.format])
        self.window = rng.choice(WINDOWS)
        self.system = rng.choice(SYSTEMS)
        self.added: list[object] = []
        settings = {"recall": rng.choice(["2%", 50])} if rng.random() < 0.2 else {}
        strategy = rng.choice(STRATEGIES)
        if strategy is not None:
            settings["strategy"] = strategy
        self.where = (self.format, self.model, self.window, strategy)
        self.session = Session.open(
            "s", model=self.model, window=self.window, format=self.format, store=":memory:", config=False, **settings
        )

    def run(self) -> list[str]:
        rng = self.rng
        history = History(rng, self.format, hostile=self.hostile, size=rng.choice([200, 2_000, 20_000]))
        length, often = rng.choice([10, 40, 120]), rng.choice([1, 0.3, 0.1])
        while len(self.added) < length:
            for message in history.step():
                self.add(message)
            if rng.random() < often:
                self.compose()
        self.compose()
        return self.lost()

    def add(self, message: object) -> None:
        try:
            self.session.add(message)
        except InputError:
            # A name that is empty, say: refused with its reason, and nothing of it is kept.
            assert self.hostile
            return
        self.added.append(message)

    def compose(self) -> None:
        try:
            payload = self.session.compose_sync(system=self.system)
        except BudgetError as error:
            # Nothing is pinned: only the system prompt and the newest message may be too much.
            too_small = self.window <= 1_000 and self.system not in (None, "", "   ")
            self.tally.count("histories: requests", [] if too_small else [f"{self.where}: {error}"])
            return
        except WindowsillError as error:
            self.tally.count("histories: requests", [] if "nothing to send" in str(error) else [error])
            return
        for format in FORMATS:
            body = json.loads(payload.body(format))
            found = wire_checks.problems(format, body) if not self.hostile else []
            self.tally.count("histories: requests", [f"{self.where} as {format}: {each}" for each in found[:1]])
            read = VOCABULARY.count(wire_checks.words(format, body))
            above = [f"{self.where} as {format}: {read} tokens"] if read > self.window else []
            self.tally.count("histories: within the window", above)

    def lost(self) -> list[str]:
        kept = [json.loads(each.raw) for each in self.session.messages() if ORIGIN not in each.metadata]
        self.tally.count("histories: messages", tried=len(self.added))
        problems = self.session.verify()
        self.session.close()
        if kept == [as_kept(each) for each in self.added] and not problems:
            return []
        return [f"{len(self.added)} messages were added, {len(kept)} are kept: {problems}"]


@pytest.mark.parametrize("hostile", [False, True], ids=["honest", "hostile"])
def test_every_request_of_a_random_history_can_be_sent(tally, hostile):
    """With the defects of real clients it is valid everywhere; with those of an adversary nothing breaks or is lost."""
    kind = "hostile" if hostile else "honest"
    tally.run(f"histories: {kind} sessions", SESSIONS, lambda rng: Campaign(rng, tally, hostile=hostile).run())
    tally.check()
