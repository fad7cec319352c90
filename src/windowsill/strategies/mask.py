"""Mask: old tool outputs become a line that says what was there; calls and words stay as they are.

It comes in batches, oldest first, and is sticky: what is masked stays so, and until the high mark is passed again the
request only grows at its end.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from windowsill.budget import Budget, Size, tokens_of
from windowsill.history.view import View
from windowsill.strategies import Plan, Strategy
from windowsill.strategies.masking import EXEMPT, Maskers
from windowsill.strategies.scoring import MEASURED, check_settings, check_words
from windowsill.strategies.sliding_window import LARGEST_KEEP


class Mask(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Masks the oldest tool outputs; the latest `keep` and those of exempt tools stay."""

    keep: int = 3
    """The latest outputs that are never masked; those the model has not answered to yet stay as well."""
    exempt: tuple[str, ...] = EXEMPT
    """Tools whose outputs are never masked, by name or pattern (`*` for anything), in lower or upper case."""
    batch: Size = "5%"
    """What a batch must free, in tokens or as a share of what a request may have; less is not worth the cached prefix
    while the request still fits."""

    name = "mask"

    def __post_init__(self) -> None:
        check_settings(self, ("keep",), 0, LARGEST_KEEP, f"a number of outputs from 0 to {LARGEST_KEEP:,}")
        check_words(self, ("exempt",))
        tokens_of(self.batch, MEASURED, "batch")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Mask the oldest outputs until the low mark is reached."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        if wanted <= 0:
            return Plan()
        batch = tokens_of(self.batch, budget.limit, "batch")
        masker = self._maskers.of(view)
        latest = masker.latest(self.keep)
        old = masker.old(latest)
        chosen = masker.oldest(max(wanted, batch), latest)
        if chosen.saved < batch and total <= budget.limit:
            notes = (f"mask: {chosen.saved:,} tokens are no batch of {batch:,}",) if chosen.saved else ()
            return Plan(middle=old, notes=notes)
        return Plan(proposals=chosen.proposals(self.name, f"{total:,} tokens passed {budget.high:,}"), middle=old)

    @cached_property
    def _maskers(self) -> Maskers:
        return Maskers(self.exempt)
