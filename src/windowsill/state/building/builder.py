"""Makes of a state the text that a model reads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Literal, Protocol, TypeAlias

from windowsill.archive.embedders import Embedder
from windowsill.errors import InputError, SettingError
from windowsill.models.model import SizeClass
from windowsill.state.building.aim import Aim
from windowsill.state.building.built import WITHHELD, Built, LeftOut, Update
from windowsill.state.building.catalogue import LAYER_OF_TAG
from windowsill.state.building.fitting import fit
from windowsill.state.building.frame import Format
from windowsill.state.building.gathering import Gathered, Gathering
from windowsill.state.building.markdown import Markdown
from windowsill.state.building.pen import Pen
from windowsill.state.building.picks import Picks
from windowsill.state.building.settling import Settled, settle
from windowsill.state.building.updating import news, tell
from windowsill.state.building.xml import XML
from windowsill.state.runtime import Phase
from windowsill.state.shares import Shares, allocate
from windowsill.state.state import LAYERS, State

FormatName: TypeAlias = Literal["xml", "markdown"]

FORMATS: dict[FormatName, type[Format]] = {"xml": XML, "markdown": Markdown}

ROOT = "context"


class Allocate(Protocol):
    """Shares out a window among the layers."""

    def __call__(self, window: int, *, phase: Phase, size: SizeClass) -> Shares:
        """The tokens of each layer."""


class Builder:
    """Builds contexts and updates of them. It remembers what it found out, so the same one again is far quicker.

    `count` gives the tokens of a text. Several threads may share a builder; they take turns.
    """

    def __init__(
        self,
        count: Callable[[str], int],
        *,
        format: FormatName = "xml",
        embedder: Embedder | None = None,
        size: SizeClass = "balanced",
        picks: Picks | None = None,
        allocate: Allocate = allocate,
    ) -> None:
        if format not in FORMATS:
            raise SettingError("format", format, " or ".join(FORMATS))
        picks = picks or Picks()
        self._pen = Pen(FORMATS[format](), count)
        self._embedder = embedder
        self._size = size
        self._threshold = picks.relevance
        self._allocate = allocate
        self._gathering = Gathering(self._pen, picks)
        self._aim: Aim | None = None
        self._counted: dict[str, int] = {}
        self._lock = threading.Lock()

    def build(self, state: State, tokens: int, *, now: float, layers: Collection[str] = LAYERS) -> Built:
        """The context of a state within so many tokens; `BudgetError` when system and task alone are larger.

        A tenth of `tokens` stays free unless system and task need it. `now` decides which observations still hold.
        """
        with self._lock:
            shares = self._allocate(tokens, phase=state.runtime.phase, size=self._size)
            gathered = self._gather(state, now, layers)
            taken, room = fit(gathered.candidates, shares, self._pen.around(ROOT, 0), self._pen)
            settled = settle(self._pen, ROOT, taken, (), min(room, tokens), tokens)
            return self._built(gathered, settled, shares)

    def update(
        self, told: Mapping[str, str], state: State, tokens: int, *, now: float, layers: Collection[str] = LAYERS
    ) -> Update | None:
        """What is new, changed or gone since a model was told; `None` when there is nothing to tell.

        `told` are the digests of the context it got, with those of later updates. What only grew old, or gave way to
        something more important, is no news.
        """
        with self._lock:
            gathered = self._gather(state, now, layers)
            found = news(told, gathered, self._gathering, state, layers)
            return tell(found, tokens, self._pen) if found.changed or found.gone else None

    def _built(self, gathered: Gathered, settled: Settled, shares: Shares) -> Built:
        shown = {each.id for each in settled.shown}
        without_room = [each for each in gathered.candidates if each.id not in shown]
        lacking = Counter(each.kind.path for each in without_room)
        left_out = {
            path: LeftOut(filtered=gathered.filtered.get(path, 0), no_room=lacking[path])
            for path in {**gathered.filtered, **lacking}
            if gathered.filtered.get(path) or lacking[path]
        }
        layers = {LAYER_OF_TAG[tag]: text for tag, text in self._pen.layers(settled.parts).items()}
        # A layer that did not change is not counted again.
        known = self._counted
        self._counted = {text: known[text] if text in known else self._pen.count(text) for text in layers.values()}
        missing = gathered.weight - sum(each.drawn.weight for each in settled.shown)
        return Built(
            text=settled.text,
            tokens=settled.tokens,
            layers={layer: self._counted[text] for layer, text in layers.items()},
            ratio=settled.tokens / (settled.tokens + missing) if missing else 1.0,
            pieces=tuple(each.piece() for each in settled.shown),
            left_out=left_out,
            digests={
                each.id: each.drawn.digest if each.id in shown else f"{WITHHELD}{each.drawn.digest}"
                for each in gathered.candidates
            },
            shares=shares,
        )

    def _gather(self, state: State, now: float, layers: Collection[str]) -> Gathered:
        unknown = [layer for layer in layers if layer not in LAYERS]
        if unknown:
            raise InputError(f"there is no layer {unknown[0]!r}", remedy=f"the layers are {', '.join(LAYERS)}")
        if self._aim is None or self._aim.goal != state.task.goal:
            self._aim = Aim(state.task.goal, self._threshold, self._embedder)
        return self._gathering.gather(state, self._aim, now, layers)
