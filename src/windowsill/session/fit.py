"""Fit a conversation in any format to a budget, in one call and without a session."""

from __future__ import annotations

import itertools
from typing import Any, Unpack

from windowsill import providers
from windowsill.budget import Size
from windowsill.compose.payload import Payload
from windowsill.compose.summaries import Source
from windowsill.config import StatedSettings
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
    system: Any = None,
    tools: Any = (),
    max_output: int | None = None,
    strategy: str | Strategy | None = None,
    writer: Source | None = None,
    **settings: Unpack[StatedSettings],
) -> Payload:
    """Make a message list or a whole request body fit: dicts, SDK objects, JSON text or bytes.

    What fits comes back unchanged. `payload.messages` is the list in the format it came in, `payload.to(...)` any
    other, `payload.report` what was done. State a `model`, a `budget` or a `window`. Settings are those of
    `Session.open`; a `writer` that asks a model is waited for, `wait` seconds at most: there is no later request that
    could use its text.
    """
    request = providers.read_request(messages, format=settings.get("format"))
    model = settings.get("model") or request.model
    if model is None and settings.get("budget") is None and settings.get("window") is None:
        raise InputError("fit needs to know how much room there is", remedy="give model=, budget= or window=")
    settings["model"], settings["format"] = model, request.format
    if settings.get("high") is None:
        settings["high"] = FULL
        if settings.get("low") is None:
            settings["low"] = STEP
    ticks = itertools.count(1)
    with Session.open(
        "fit",
        strategy=strategy,
        writer=writer,
        store=MemoryStore(),
        config=False,
        clock=lambda: float(next(ticks)),
        **settings,
    ) as session:
        session.extend(request.messages)
        composer, format = session.composer, session.composer.format
        parts = composer.parts(
            system if system is not None else request.system, tuple(tools) or request.tools, request.rest, format
        )
        return composer.compose(parts, format=format, max_output=max_output, model_name=model, stateless=True)
