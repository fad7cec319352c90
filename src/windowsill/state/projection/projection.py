"""Decides which tools a model gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import get_args

from windowsill.errors import SettingError
from windowsill.messages import Tool
from windowsill.state.projection import known
from windowsill.state.projection.categories import shown_by
from windowsill.state.projection.forms import Form
from windowsill.state.projection.grouping import fate_of, held_by, phases_of
from windowsill.state.projection.narrowing import Narrow
from windowsill.state.projection.offered import Offered
from windowsill.state.projection.projected import Decided, Hidden, Mode, Projected
from windowsill.state.projection.shelf import Shelf, Weigher
from windowsill.state.projection.urgency import is_urgent
from windowsill.state.runtime import PERMISSIONS, Environment, Permission, Phase
from windowsill.state.state import State

BUDGET = 2_000
"""Tokens of definitions in a request."""

URGENT = 5
"""Tools of an urgent task: fewer to choose from is faster."""

MOST_KEPT = 64
"""Results kept: a session goes back and forth between a few states."""


class Projection:
    """Tools and the rules by which a state shows them.

    What does not depend on a state (tokens, categories, narrowed schemas) is found out here, once for each tool.
    """

    def __init__(
        self,
        offered: Iterable[Offered | Tool],
        *,
        count: Callable[[str], int],
        phases: Mapping[str, Iterable[str]] | None = None,
        budget: int | None = BUDGET,
        urgent: int = URGENT,
        rules: Iterable[Narrow] = (),
        implied: Mapping[str, Iterable[str]] | None = None,
        mode: Mode = "remove",
    ) -> None:
        """Set up.

        `phases` maps phases to the categories they show, in place of the default for that phase; `general` is always
        shown. `implied` maps a permission to others it brings with it: none does by default, `admin` included.
        `budget` limits the tokens of all definitions, as `count` counts their JSON; `None` is no limit.
        """
        if budget is not None and budget < 0:
            raise SettingError("budget", budget, "0 tokens or more, or None for no limit")
        if urgent < 1:
            raise SettingError("urgent", urgent, "1 tool or more")
        if mode not in get_args(Mode):
            raise SettingError("mode", mode, "remove or mask")
        self.mode: Mode = mode
        self._budget, self._urgent, self._rules = budget, urgent, tuple(rules)
        self._shown = shown_by(phases or {})
        self._implied = _implied(implied or {})
        self._weigh = Weigher(count)
        self.offer(offered)

    def offer(self, offered: Iterable[Offered | Tool]) -> None:
        """Offer other tools from now on; those that were offered before are not counted again."""
        categories = frozenset().union(*self._shown.values())
        self._shelf = Shelf(offered, categories=categories, rules=self._rules, weigh=self._weigh)
        self._phases_of = phases_of((group.category for group in self._shelf.groups), self._shown)
        self._kept: dict[object, Projected] = {}

    def project(self, state: State) -> Projected:
        """The tools for this state; the very same result while what decides does not change."""
        runtime = state.runtime
        urgent = is_urgent(state.task, runtime.resources)
        key = (runtime.phase, runtime.environment, tuple(runtime.permissions), urgent)
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            found = self._kept[key] = self._decide(
                known.phase(runtime.phase, "the state"),
                known.environment(runtime.environment, "the state"),
                known.permissions(runtime.permissions, "the state"),
                urgent=urgent,
            )
        return found

    def _decide(
        self, phase: Phase, environment: Environment, permissions: tuple[Permission, ...], *, urgent: bool
    ) -> Projected:
        shelf = self._shelf
        held = held_by(permissions, self._implied)
        fates = [fate_of(group, phase, environment, held, self._phases_of) for group in shelf.groups]
        hidden = [
            None if (fate := fates[group]) is None else Hidden(name, *fate)
            for name, group in zip(shelf.names, shelf.group_of, strict=True)
        ]
        forms = shelf.forms[environment]
        self._make_room(forms, hidden, urgent=urgent)
        callable = [form for form, why in zip(forms, hidden, strict=True) if why is None]
        total, shown = shelf.totals[environment], sum(form.tokens for form in callable)
        masked = self.mode == "mask"
        decided = Decided(
            phase=phase,
            environment=environment,
            permissions=tuple(each for each in PERMISSIONS if each in permissions),
            urgent=urgent,
            mode=self.mode,
            names=tuple(form.tool.name for form in callable),
            hidden=tuple(why for why in hidden if why is not None),
            narrowed=tuple(form.tool.name for form in callable if form.narrowing is not None),
            tokens=total if masked else shown,
        )
        return Projected(
            decided,
            tools=shelf.definitions[environment] if masked else tuple(form.tool for form in callable),
            forms=forms,
            places=shelf.places,
            masking=total - shown,
        )

    def _make_room(self, forms: Sequence[Form], hidden: list[Hidden | None], *, urgent: bool) -> None:
        """Hide what does not fit, the highest priority first; a smaller tool further down may still fit.

        A masked definition is sent all the same, so the budget hides nothing then: it would save nothing.
        """
        budget = None if self.mode == "mask" else self._budget
        names = self._shelf.names
        left = math.inf if budget is None else budget
        most = self._urgent if urgent else len(names)
        full = f"the task is urgent, and the {most} tools of highest priority are shown"
        short = ""  # said alike to all that find the same room
        for place in self._shelf.ranked:
            if hidden[place] is not None:
                continue
            tokens = forms[place].tokens
            if most == 0:
                hidden[place] = Hidden(names[place], "urgent", full)
            elif tokens > left:
                short = short or f"its definition needs more than the {left} tokens left of {budget}"
                hidden[place] = Hidden(names[place], "budget", short)
            else:
                left, most, short = left - tokens, most - 1, ""


def _implied(given: Mapping[str, Iterable[str]]) -> dict[Permission, tuple[Permission, ...]]:
    where = "setting 'implied'"
    return {
        name: known.permissions(brought, f"{where}, {name}")
        for name, brought in zip(known.permissions(given, where), given.values(), strict=True)
    }
