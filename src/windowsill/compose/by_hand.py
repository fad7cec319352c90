"""Reduce a session now because a caller says so: then every strategy acts, and a model that writes is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from windowsill.budget import Size, tokens_of
from windowsill.compose.composer import Composer, lowered
from windowsill.compose.payload import FitResult, RequestSpec, Statistics
from windowsill.compose.reduce import follow
from windowsill.strategies.compact import Compact

COMPACTED = 0.25
"""The share of the messages that compacting leaves of one long turn."""


def reduce(
    composer: Composer,
    *,
    format: str | None = None,
    system: Any = None,
    tools: Sequence[Any] = (),
    to: Size | None = None,
) -> Statistics:
    """Reduce now what is too large for a request with these parts; return what that did.

    With `to`, tokens or a share of what a request may have, reduce to that, or as far as possible.
    """
    with composer.journal.lock:
        composer.journal.refresh()
        spec = _spec(composer, format, system, tools)
        if to is not None:
            goal = tokens_of(to, spec.budget.limit, "to")
            spec = msgspec.structs.replace(spec, goal=goal, budget=lowered(spec.budget, goal))
        return composer.fit(spec).statistics


def compact(
    composer: Composer, wish: str = "", *, format: str | None = None, system: Any = None, tools: Sequence[Any] = ()
) -> Statistics:
    """Put a summary in the place of all but the last turn now, however full the window is; return what that did.

    `wish` is a directive for whoever writes it. A strategy `compact` is followed with its settings.
    """
    with composer.journal.lock:
        composer.journal.refresh()
        view, result = composer.journal.view, FitResult(folds=[], notes=[])
        before = (len(view.items), view.tokens())
        stages = (composer.strategy, *getattr(composer.strategy, "stages", ()))
        strategy = next((each for each in stages if isinstance(each, Compact)), Compact())
        spec = msgspec.structs.replace(_spec(composer, format, system, tools), strategy=strategy)
        # Of a single long turn, the oldest steps go too.
        budget = lowered(spec.budget, spec.budget.fixed + int(view.tokens() * COMPACTED))
        composer.journal.load(view)
        plan = strategy.with_wish(wish).compact(view, budget)
        for proposal in follow(plan, view, budget, spec, composer.summaries, result):
            result.folds.append(composer.fold(proposal))
        # They are in the report of the next request.
        composer.summaries.notes += result.notes
        return composer.finish(result, before, emergency=False)


def _spec(composer: Composer, format: str | None, system: Any, tools: Sequence[Any]) -> RequestSpec:
    format = format or composer.format
    spec = composer.spec(composer.parts(system, tools, {}, format), format)
    strategy = spec.strategy
    if isinstance(strategy, Compact):
        strategy = msgspec.structs.replace(strategy, auto=True)
    return msgspec.structs.replace(spec, now=True, strategy=strategy)
