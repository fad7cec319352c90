"""The model that requests are composed for: its limits, how its tokens are counted, and what was learned of both."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import msgspec

from windowsill import models, tokens
from windowsill.budget import Budget, CachePrices, WriterPrices
from windowsill.compose.summaries import SummaryQueue
from windowsill.config import Settings
from windowsill.errors import UnknownModelError, log
from windowsill.messages import Usage
from windowsill.models import Model
from windowsill.models.catalog import is_overflow, learn_count, learn_window
from windowsill.store import Store
from windowsill.tokens import Calibration, Scale, Weight

WINDOW = "window/"
"""Before the name of a model, the fact that a store remembers of it."""

STATED_FRAMING = "generic"
"""A stated tokenizer is used as it is, with framing that undercounts no provider."""

SAVE_EVERY = 20
"""Observations between two writes of what was learned: losing a few costs nothing, a commit each turn would."""

LEAST_OF_COUNT = 0.1
"""A report below this share of our count is a mistake: it left out what came from a cache, or counts something else."""

DOUBT_OF_FIRST = 4_000.0
"""Tokens that the first report of a session may have for what only the provider sees: they are no lesson about text."""

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
            images=tokens.image_rule(self.model.image_rule if self.model.sees else "words"),
            calibration=Calibration.exact() if self.exact else self._recalled(),
        )
        self.calibration = self.scale.calibration
        """The ratios that were learned; the scale has more, where a report was lower than that."""
        self.unseen = 0
        """Tokens of the last request that only the provider saw: tools given to its SDK, files by id, its own text."""
        self.ceiling: int | None = None
        """The most tokens a request should have, by our count, after the provider refused one that should have fitted.

        A guess: what cannot be made so small is sent as the window allows."""
        self._accepted = self._recalled_number(self._accepted_key)
        """Tokens of the largest request that the provider has answered, by its own count."""
        self._seen: tuple[Weight, int] | None = None
        self._unsaved = 0
        listed = models.find_known(settings.model)
        self._largest = max(self.model.window, listed.window if listed is not None else 0)
        """The most tokens a request can have had, whatever window is stated."""

    @cached_property
    def cache_prices(self) -> CachePrices:
        """The prices of cached tokens against fresh ones."""
        found = models.relative_prices(self.model)
        return CachePrices(
            read=found.cache_read,
            write=found.cache_write,
            output=found.output,
            lifetime=float(self.model.cache_lifetime),
        )

    def priced(self, budget: Budget, summaries: SummaryQueue) -> Budget:
        """Return the budget with all that a strategy needs that decides by prices."""
        writer, bound = summaries.writer, self.demands.bound_reasoning
        paid = writer_prices(writer.name, self.model) if writer is not None else None
        return msgspec.structs.replace(
            budget,
            cache=self.cache_prices,
            writer=paid and msgspec.structs.replace(paid, seconds=summaries.seconds),
            bound_after=self.demands.refused if bound else None,
        )

    def _find(self) -> Model:
        settings = self.settings
        learned = self._recalled_number(WINDOW + settings.model) if settings.model else 0
        window = settings.window or learned or None
        stated = settings.budget if isinstance(settings.budget, int) else None
        if settings.model is None and not (window or stated):
            raise UnknownModelError(
                "no model is stated", remedy="give model=, such as gpt-5, or window=, such as 200_000"
            )
        if settings.model is None:
            return models.find("unknown", window=window or stated)
        try:
            return models.find(settings.model, window=window, overrides=settings.models)
        except UnknownModelError:
            if window is not None or stated is None:
                raise
            # A budget in tokens says how much room there is: more need not be known of a model.
            return models.find(settings.model, window=stated, overrides=settings.models)

    def _recalled_number(self, key: str) -> int:
        known = self.store.recall(key)
        # What a damaged store remembers is not worth refusing to open for: the table still knows a window.
        return int(known) if known is not None and known.isdigit() else 0

    @property
    def _accepted_key(self) -> str:
        return f"accepted/{self.settings.model or self.model.name}"

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

    def refresh(self) -> None:
        """Count with what other sessions have learned since, for one that only looks."""
        self.calibration = self.scale.calibration = self._recalled()

    def observe(self, counted: Weight, usage: Usage, predicted: int) -> None:
        """Learn from a reported usage of a request that was counted as `counted`, and shown as `predicted` tokens.

        The difference to the request before teaches the ratio; what remains is what only the provider sees.
        """
        reported = usage.prompt - self.settings.overhead
        if not LEAST_OF_COUNT * self.calibration.estimate(counted) < reported <= self._largest:
            # No provider counts like that: a mistake in the report, which must not empty or overfill a window.
            return
        self._accepted = max(self._accepted, usage.prompt)
        seen, self._seen = self._seen, (counted, reported)
        total = (float(predicted - self.settings.overhead), reported)
        if seen is not None:
            self.calibration = self.calibration.observe(counted - seen[0], reported - seen[1], total=total)
        else:
            self.calibration = self.calibration.observe(
                counted, reported - self.unseen, total=total, doubt=DOUBT_OF_FIRST
            )
        estimate = self.calibration.estimate(counted)
        self.unseen = max(0, round(reported - estimate))
        self.scale.calibration = self.calibration.lowered(counted, reported)
        self._unsaved += 1
        if self._unsaved >= SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Remember what was learned for the next session."""
        if self._unsaved:
            self.store.remember(self._calibration_key, msgspec.json.encode(self.calibration))
            self.store.remember(self._accepted_key, str(self._accepted).encode())
            self._unsaved = 0

    def overflowed(self, error: str, sent: int | None = None) -> int | None:
        """Learn a lower window from a provider's overflow error; return the window from now on, if it says one.

        `sent` is what the refused request was counted as. The window alone might allow it again, where the provider
        counts more than we do or does not say what it takes: less is sent from then on, as long as the session is open.
        """
        window, learned = learn_window(error), None
        if window is not None and window < self._accepted:
            # It has answered larger requests: whatever this number is, it is not the window.
            window = None
        name = self.settings.model
        if window is not None and name is not None and not self.settings.window:
            if window < self.model.window:
                self.store.remember(WINDOW + name, str(window).encode())
                before, self.model = self.model.window, self._find()
                log.warning(
                    "the provider of %s names a window of %s tokens, not %s; `windowsill models forget %s` undoes it",
                    *(name, f"{window:,}", f"{before:,}", name),
                )
            learned = self.model.window
        if sent is not None and is_overflow(error):
            counted = learn_count(error) if window is not None else None
            guess = max(int(SMALLER * sent), self._accepted)
            fits = int(SAFE * sent * window / counted) if window is not None and counted is not None else guess
            self.ceiling = min(fits, self.ceiling or sent)
        return learned

    @property
    def error(self) -> float | None:
        """The mean error of the last totals against those reported, in percent; `None` while none was."""
        return round(self.calibration.error, 2) if self.calibration.observations else None

    def describe(self) -> dict[str, Any]:
        """Describe how exact the counting is, for a report."""
        return {
            "counter": self.scale.counter.name,
            "exact": self.exact,
            "observations": self.calibration.observations,
            "error_percent": self.error or 0.0,
            "unseen": self.unseen,
        }


@lru_cache(16)
def writer_prices(name: str, model: Model) -> WriterPrices:
    """Return the prices of a writer (`provider:model`) against those of the session's model; nothing where unknown.

    A provider alone asks the session's own model, which has read most of it already.
    """
    named = name.partition(":")[2]
    known = models.find_known(named) if named else model
    if known is None:
        return WriterPrices()
    try:
        own, paid = models.prices(model), models.prices(known)
    except ImportError:
        return WriterPrices()
    if not (own.known and paid.known and own.input):
        return WriterPrices()
    return WriterPrices(input=paid.input / own.input, output=paid.output / own.input, shared=known.name == model.name)
