"""Layered: the window is shared out among the layers of the state, by phase and model; what passes its share goes.

The conversation holds two of the layers: tool outputs are evidence, everything else is memory. Outputs beyond their
share are masked, oldest first; turns beyond theirs become a summary. The other layers are told from the state itself,
within a share of their own, and are told anew after each fold.
"""

from __future__ import annotations

from functools import cached_property

from windowsill.budget import Budget
from windowsill.errors import SettingError
from windowsill.history.view import View
from windowsill.state.layers import PHASES, Phase
from windowsill.state.shares import ShareSettings
from windowsill.strategies.base import Plan, SummaryStrategy, check_count, check_words, least_gain
from windowsill.strategies.condense import Condense
from windowsill.strategies.masks import EXEMPT, Masker, mask_outputs, output_items


class Layered(SummaryStrategy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Past the high mark, masks tool outputs beyond the evidence's share, then summarises the oldest turns.

    Requests tell the layered state of the session: whole at first and after each fold, changes in between.
    """

    keep: int = 10
    """The latest messages that are not summarised, a few more where calls go with their results; and the latest outputs
    that are not masked."""
    told: float = 0.25
    """The share of the request's limit in which the state may be told."""
    exempt: tuple[str, ...] = EXEMPT
    """Tools whose outputs are never masked, by name or pattern (`*` for anything), in lower or upper case."""

    name = "layered"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self, "keep", "messages")
        if not 0 < self.told <= 1:
            raise SettingError("told", self.told, "a share of the request's limit above 0, up to 1")
        check_words(self, "exempt")

    def layers(self, budget: Budget) -> int:
        """Return the tokens in which a request may tell the state."""
        return int(self.told * budget.limit)

    def plan(self, view: View, budget: Budget) -> Plan:
        """Mask what passes the evidence's share; where that is not enough, condense the oldest turns."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        if wanted <= 0:
            return Plan()
        outputs = sum(view.each(output_items(view)))
        over = outputs - self._share(budget)
        if over >= least_gain(budget):
            masker = Masker(view, self.keep, self.exempt)
            chosen = masker.oldest(min(over, wanted))
            if sum(output.saves for output in chosen) >= least_gain(budget):
                reason = f"{total:,} tokens passed {budget.high:,}; outputs were {over:,} above their share"
                reason += f" ({_phase(budget)})"
                return Plan(proposals=mask_outputs(chosen, strategy=self.name, reason=reason), middle=masker.items)
        return self._condense.plan(view, budget)

    def instead(self, view: View, budget: Budget) -> Plan:
        """Truncate where no summary can be had."""
        return self._condense.instead(view, budget)

    def _share(self, budget: Budget) -> int:
        """Return the tokens of outputs that may stand after a reduction: evidence's part of what is left."""
        shares = budget.layers or ShareSettings().allocate(budget.limit, phase=_phase(budget), size=budget.size).layers
        both = shares["evidence"] + shares["memory"]
        room = max(0, budget.low - budget.fixed)
        return room * shares["evidence"] // both if both else 0

    @cached_property
    def _condense(self) -> Condense:
        return _Turns(
            keep=self.keep,
            model=self.model,
            instructions=self.instructions,
            directives=self.directives,
            room=self.room,
        )


class _Turns(Condense, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Condenses the turns, under the name of this strategy."""

    name = Layered.name


def _phase(budget: Budget) -> Phase:
    return next((phase for phase in PHASES if phase == budget.phase), "initializing")
