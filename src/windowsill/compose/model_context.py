"""The model that requests are composed for: its limits, how its tokens are counted, and what was learned of both."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill import models, tokens
from windowsill.config import Settings
from windowsill.errors import UnknownModelError
from windowsill.messages import Usage
from windowsill.models import Model
from windowsill.models.overflow import is_overflow, learn_count, learn_window
from windowsill.store import Store
from windowsill.tokens import Calibration, Scale, Weight

STATED_FRAMING = "generic"
"""A stated tokenizer is used as it is, with framing that undercounts no provider."""

SAVE_EVERY = 20
"""Observations between two writes of what was learned: losing a few costs nothing, a commit each turn would."""

SMALLER = 0.5
"""The share of a refused request that is sent when the provider does not say how far it was off: it is asked once."""

SAFE = 0.98
"""The share that is used of the room that follows from the provider's own count: the rest is rounding."""


class ModelContext:
    """A model with its scale. Learns from reported usage and from overflow errors, and remembers across sessions."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.store = store
        self.settings = settings
        self.model = self._find()
        self.demands = self.model.demands
        """The demands of the model on messages beyond the format."""
        stated = settings.tokenizer
        self.exact = bool(stated) or self.model.exact
        self.scale = Scale(
            tokens.counter(stated or self.model.tokenizer),
            framing=tokens.framing(STATED_FRAMING if stated else self.model.framing),
            images=tokens.image_rule(self.model.image_rule),
            calibration=Calibration.exact() if self.exact else self._recalled(),
        )
        self.ceiling: int | None = None
        """The most tokens a request may have, by our count, after the provider refused one that should have fitted."""
        self._seen: tuple[Weight, int, object] | None = None
        self._unsaved = 0

    def _find(self) -> Model:
        settings = self.settings
        window = settings.window or self._learned_window()
        stated = settings.budget if isinstance(settings.budget, int) else None
        if settings.model is None:
            return models.find("unknown", window=window or stated)
        try:
            return models.find(settings.model, window=window, overrides=settings.models)
        except UnknownModelError:
            if window is not None or stated is None:
                raise
            # A budget in tokens says how much room there is: more need not be known of a model.
            return models.find(settings.model, window=stated, overrides=settings.models)

    def _learned_window(self) -> int | None:
        learned = self.store.recall(self._window_key(self.settings.model)) if self.settings.model else None
        # What a damaged store remembers is not worth refusing to open for: the table still knows a window.
        return int(learned) if learned is not None and learned.isdigit() and int(learned) > 0 else None

    @staticmethod
    def _window_key(model: str) -> str:
        return f"window/{model}"

    @property
    def _calibration_key(self) -> str:
        return f"calibration/{self.model.name}/{self.model.tokenizer}"

    def _recalled(self) -> Calibration:
        known = self.store.recall(self._calibration_key)
        if known is not None:
            try:
                return msgspec.json.decode(known, type=Calibration)
            except (msgspec.DecodeError, msgspec.ValidationError):
                # What was learned can be learned again; a session must open all the same.
                pass
        return Calibration.starting(msgspec.structs.asdict(self.model.ratio))

    def observe(self, counted: Weight, usage: Usage, shape: object) -> None:
        """Learn from a reported usage. `shape` tells requests apart that do not just continue each other."""
        reported = usage.prompt - self.settings.overhead
        seen, self._seen = self._seen, (counted, reported, shape)
        if seen is not None and seen[2] == shape:
            counted, reported = counted - seen[0], reported - seen[1]
        learned = self.scale.calibration.observe(counted, reported)
        if learned is not self.scale.calibration:
            self.scale.calibration = learned
            self._unsaved += 1
            if self._unsaved >= SAVE_EVERY:
                self.save()

    def save(self) -> None:
        """Remember what was learned for the next session."""
        if self._unsaved:
            self.store.remember(self._calibration_key, msgspec.json.encode(self.scale.calibration))
            self._unsaved = 0

    def overflowed(self, error: str, sent: int | None = None) -> int | None:
        """Learn a lower window from a provider's overflow error; return the window from now on, if it says one.

        `sent` is what the refused request was counted as. The window alone might allow it again, where the provider
        counts more than we do or does not say what it takes: less is sent from then on, as long as the session is open.
        """
        window, learned = learn_window(error), None
        if window is not None and self.settings.model is not None and not self.settings.window:
            if window < self.model.window:
                self.store.remember(self._window_key(self.settings.model), str(window).encode())
                self.model = self._find()
            learned = self.model.window
        if sent is not None and is_overflow(error):
            counted = learn_count(error)
            share = SAFE * window / counted if window is not None and counted is not None else SMALLER
            self.ceiling = min(int(sent * share), self.ceiling or sent)
        return learned

    def describe(self) -> dict[str, Any]:
        """Describe how exact the counting is, for a report."""
        calibration = self.scale.calibration
        return {
            "counter": self.scale.counter.name,
            "exact": self.exact,
            "observations": calibration.observations,
            "error_percent": round(calibration.error, 2),
        }
