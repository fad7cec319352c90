"""One call, no session: a conversation in any format, fitted to a budget."""

from __future__ import annotations

import itertools
from typing import Any

from windowsill import formats
from windowsill.budget import Size
from windowsill.compose.payload import Payload
from windowsill.errors import InputError
from windowsill.session.session import Session
from windowsill.store.memory import MemoryStore
from windowsill.strategies import Strategy

FULL: Size = 1.0
STEP: Size = 0.75
"""A caller without a session sends the whole list each time. What is hidden grows in steps of a quarter of the budget,
counted from the start, so that the same cut, and with it the cached prefix, holds for many turns."""


def fit(
    messages: Any,
    *,
    model: str | None = None,
    budget: Size | None = None,
    window: int | None = None,
    format: str | None = None,
    tokenizer: str | None = None,
    strategy: str | Strategy | None = None,
    system: Any = None,
    tools: Any = (),
    overhead: int = 0,
    max_output: int | None = None,
    **settings: Any,
) -> Payload:
    """Make a message list or a whole request body fit: dicts, SDK objects, JSON text or bytes.

    What fits comes back unchanged. `payload.messages` is the list in the format it came in, `payload.to(...)` any
    other, `payload.report` what was done. Without a model, state a budget or a window. Further settings are those of
    `Session.open`, such as `high` and `low`; a `writer` that asks a model is waited for, `wait` seconds at most: there
    is no later request that could use its text.
    """
    request = formats.read_request(messages, format=format)
    named = model or request.model
    if named is None and budget is None and window is None:
        raise InputError("fit needs to know how much room there is", remedy="give model=, budget= or window=")
    ticks = itertools.count(1)
    with Session.open(
        "fit",
        model=named,
        window=window,
        budget=budget,
        strategy=strategy,
        store=MemoryStore(),
        clock=lambda: float(next(ticks)),
        tokenizer=tokenizer,
        format=request.format,
        overhead=overhead or None,
        **{"high": FULL, "low": STEP, **settings},
    ) as session:
        session.extend(request.messages)
        given = system if system is not None else request.system
        return session.compose_once(
            system=given,
            tools=tuple(tools) or request.tools,
            params=request.rest,
            max_output=max_output,
            model=named,
        )
