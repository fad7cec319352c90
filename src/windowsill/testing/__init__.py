"""A local server that speaks the providers' protocols strictly, for tests without a network.

It refuses what a provider would refuse, with the provider's kind of error; it counts tokens and says what a prompt
cache would have served; it streams, signs reasoning, and edits conversations where it is asked to; it can be told to
overflow, to fail and to be slow.

`Scripted` and `Chaos` are models for an engine that need no server: one plays a script, the other disturbs a model.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from windowsill.testing.protocols.base import Answer, Call
from windowsill.testing.server import Seen, Server

if TYPE_CHECKING:
    from windowsill.testing.models import Chaos, Scripted


__all__ = ["Answer", "Call", "Chaos", "Scripted", "Seen", "Server"]

_MODELS = frozenset({"Chaos", "Scripted"})


def __getattr__(name: str) -> Any:
    """Load the models when they are first used: tests of a client need no engine."""
    if name not in _MODELS:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.models"), name)
