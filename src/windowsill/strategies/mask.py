"""Mask: old tool outputs become a line that says what was there; calls and words stay as they are.

It comes in batches, oldest first, and is sticky: what is masked stays so, and until the high mark is passed again the
request only grows at its end.
"""

from __future__ import annotations

import msgspec

from windowsill.budget import Budget, Size, tokens_of
from windowsill.history.view import View
from windowsill.strategies.base import MEASURED, Plan, Strategy, check_count, check_words
from windowsill.strategies.masks import EXEMPT, Masker, mask_outputs


class Mask(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Masks the oldest tool outputs; the latest `keep` and those of exempt tools stay."""

    keep: int = 3
    """The latest outputs that are never masked; those the model has not answered to yet stay as well."""
    exempt: tuple[str, ...] = EXEMPT
    """Tools whose outputs are never masked, by name or pattern (`*` for anything), in lower or upper case."""
    inputs: bool = False
    """True to clear long arguments, such as the text of a written file, of the calls whose outputs are masked."""
    batch: Size = "20%"
    """The least that a batch frees, in tokens or as a share of what a request may have; less is not worth the cached
    prefix: the request grows to its limit, where the oldest messages are cut down to the low mark."""

    name = "mask"

    def __post_init__(self) -> None:
        check_count(self, "keep", "outputs")
        check_words(self, "exempt")
        tokens_of(self.batch, MEASURED, "batch")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Mask the oldest outputs until the low mark is reached."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        if wanted <= 0:
            return Plan()
        batch = tokens_of(self.batch, budget.limit, "batch")
        masker = Masker(view, self.keep, self.exempt, inputs=self.inputs)
        chosen = masker.oldest(max(wanted, batch))
        saved = sum(output.saves for output in chosen)
        if saved < batch:
            notes = (f"mask: {saved:,} tokens are no batch of {batch:,}",) if saved else ()
            return Plan(middle=masker.items, notes=notes)
        reason = f"{total:,} tokens passed {budget.high:,}"
        return Plan(proposals=mask_outputs(chosen, strategy=self.name, reason=reason), middle=masker.items)
