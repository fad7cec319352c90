"""Writers that answer when a test lets them."""

import asyncio
import threading

from support.sessions import opened
from windowsill.history.folds import Brief
from windowsill.strategies import Plan, Strategy, fold_units, foldable_units
from windowsill.summaries import Written


class Condensing(Strategy):
    """Hides all it may behind a summary, once the high mark is passed."""

    name = "condensing"

    def __init__(self, *, needed=True):
        self.needed = needed

    def plan(self, view, _):
        units = foldable_units(view, keep=2)
        brief = Brief(needed=self.needed)
        proposal = fold_units(view, units, strategy=self.name, reason="full", kind="condense", brief=brief)
        return Plan(proposals=(proposal,) if proposal else ())


class Slow:
    """A model that writes when it is told to."""

    name = "slow"

    def __init__(self, text="Everything was looked at."):
        self.text = text
        self.go = threading.Event()
        self.asked = []
        self.begun = threading.Event()
        self.cancelled = False

    async def awrite(self, _, material):
        self.asked.append(material)
        self.begun.set()
        try:
            await asyncio.to_thread(self.go.wait, 5)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if isinstance(self.text, Exception):
            raise self.text
        return Written(text=self.text, writer=self.name)


def made(writer, strategy=None, *, budget=3_000, wait=5.0):
    return opened(budget=budget, wait=wait, strategy=strategy or Condensing(), writer=writer)
