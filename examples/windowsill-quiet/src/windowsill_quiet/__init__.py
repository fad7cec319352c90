"""The strategy `quiet`."""

import msgspec

from windowsill import Budget, Plan, Strategy
from windowsill.strategies import View, fold_units, foldable_units


class Quiet(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hides the largest messages first, so that as few as possible are hidden."""

    keep: int = 4
    """The latest messages that are never hidden."""
    name = "quiet"

    def plan(self, view: View, budget: Budget) -> Plan:
        """Hide the largest units until the low mark is reached."""
        wanted, chosen = budget.to_hide(budget.fixed + view.tokens()), []
        sized = [(view.tokens(*view.items[unit.start : unit.stop]), unit) for unit in foldable_units(view, self.keep)]
        for size, unit in sorted(sized, key=lambda pair: -pair[0]):
            if wanted > 0:
                wanted -= size
                chosen.append(unit)
        chosen.sort(key=lambda unit: unit.start)
        proposal = fold_units(view, chosen, strategy=self.name, reason="the largest go first")
        return Plan(proposals=(proposal,) if proposal else ())
