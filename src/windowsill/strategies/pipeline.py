"""Pipelines: several strategies in a row, cheap before costly, such as `mask+importance+condense`.

The composer folds what a plan proposes and asks again while the request is too large, so each stage plans on what those
before it left. A pipeline keeps nothing in mind: a stage has given all it can when, looking at the view as it is now,
it offers too little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windowsill.budget import Budget
from windowsill.errors import InputError, SettingError
from windowsill.history.view import View
from windowsill.strategies.base import Plan, Strategy, tokens_freed
from windowsill.strategies.registry import Managed, get
from windowsill.text import type_name

JOINT = "+"

LEAST = 0.1
"""The share of what has to go that a stage must free: every fold costs the cached prefix, so a little is left to a
stage that frees more."""


class Pipeline(Strategy):
    """Asks its stages one after the other; the first that frees enough is followed.

    `stages` is text (`mask:keep=5+condense:keep=4`) or a list of strategies, names with settings behind them, and
    `{name: settings}`. What `keep` counts is said by each stage: messages in `condense`, turns in `compact`. Where no
    stage frees the share `least` of what has to go, the one that frees most is followed.
    """

    def __init__(self, stages: str | Sequence[Any], *, least: float | str = LEAST) -> None:
        listed = stages.split(JOINT) if isinstance(stages, str) else list(stages)
        if not listed:
            raise InputError("a pipeline needs stages", remedy="name strategies such as mask+condense")
        self.stages: tuple[Strategy, ...] = tuple(_stage(each) for each in listed)
        self.least = _share(least)
        self.name = JOINT.join(stage.name for stage in self.stages)
        self.priced = any(stage.priced for stage in self.stages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pipeline) and (self.stages, self.least) == (other.stages, other.least)

    def __hash__(self) -> int:
        return hash((self.name, self.least))

    def __repr__(self) -> str:
        return f"Pipeline({list(self.stages)!r}, least={self.least!r})"

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether a stage has something to do although the high mark is not passed."""
        return any(stage.due(view, budget) for stage in self.stages)

    def layers(self, budget: Budget) -> int:
        """Return the tokens in which a request may tell the layered state: the most of any stage."""
        return max(stage.layers(budget) for stage in self.stages)

    def plan(self, view: View, budget: Budget) -> Plan:
        """Return the plan of the first stage that frees enough; below the high mark only stages that are due count."""
        wanted = budget.to_hide(budget.fixed + view.tokens())
        notes: list[str] = []
        best, most = Plan(), 0
        for stage in self.stages:
            if wanted <= 0 and not stage.due(view, budget):
                continue
            plan = _planned(stage, view, budget, notes)
            freed = tokens_freed(view, plan.proposals)
            if freed > most:
                best, most = plan, freed
                if freed >= self.least * wanted:
                    break
        return msgspec.structs.replace(best, notes=(*notes, *best.notes))


def _planned(stage: Strategy, view: View, budget: Budget, notes: list[str]) -> Plan:
    """Ask a stage for its plan; nothing, and a note, when it fails."""
    try:
        plan: Any = stage.plan(view, budget)
    except Exception as error:  # noqa: BLE001 - a user's plug-in may raise anything, and the other stages can do without it
        notes.append(f"stage {stage.name!r} failed with {type(error).__name__}: {error}")
        return Plan()
    if isinstance(plan, Plan):
        return plan
    notes.append(f"stage {stage.name!r} gave {type_name(plan)} where a Plan belongs")
    return Plan()


def _stage(given: Any) -> Strategy:
    """Make a stage from an object, a name, or a name with settings."""
    if isinstance(given, Mapping):
        if len(given) != 1:
            raise SettingError("stages", dict(given), "one name for each stage, with its settings: {name: settings}")
        name, settings = next(iter(given.items()))
        stage = get(str(name), settings or {})
    elif isinstance(given, str):
        if not given.strip():
            raise SettingError("stages", given, "names joined by +, such as mask+condense")
        stage = get(given.strip())
    else:
        stage = get(given)
    if isinstance(stage, Managed):
        raise InputError(
            f"{stage.name} is a context manager, which composes the whole request, so it cannot be a stage",
            remedy="use it alone",
        )
    if stage.delegates:
        raise InputError(
            f"{stage.name} leaves the work to the provider, so it cannot be a stage",
            remedy="use it alone, or leave it out of the pipeline",
        )
    return stage


def _share(given: float | str) -> float:
    """Read a share that is stated in code or as text."""
    try:
        share = float(given)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise SettingError("least", given, "a share of what has to go from 0 to 1")
    return share
