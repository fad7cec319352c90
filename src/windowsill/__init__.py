"""Version control for a context window: keep an LLM agent inside its window without losing anything."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowsill.budget import Budget as Budget
    from windowsill.compose import Payload as Payload
    from windowsill.compose import Report as Report
    from windowsill.engine import Engine as Engine
    from windowsill.engine import Result as Result
    from windowsill.engine import tool as tool
    from windowsill.errors import BudgetError as BudgetError
    from windowsill.errors import ConflictError as ConflictError
    from windowsill.errors import DamagedError as DamagedError
    from windowsill.errors import FoldError as FoldError
    from windowsill.errors import FormatError as FormatError
    from windowsill.errors import InputError as InputError
    from windowsill.errors import LockedError as LockedError
    from windowsill.errors import NotFoundError as NotFoundError
    from windowsill.errors import SettingError as SettingError
    from windowsill.errors import StoreError as StoreError
    from windowsill.errors import UnknownModelError as UnknownModelError
    from windowsill.errors import WindowsillError as WindowsillError
    from windowsill.formats import repair as repair
    from windowsill.formats import validate as validate
    from windowsill.integrations import wrap as wrap
    from windowsill.messages import Message as Message
    from windowsill.messages import Tool as Tool
    from windowsill.messages import Usage as Usage
    from windowsill.session.agent_state import AgentState as AgentState
    from windowsill.session.fit import fit as fit
    from windowsill.session.manager import ContextManager as ContextManager
    from windowsill.session.manager import Manager as Manager
    from windowsill.session.session import Session as Session
    from windowsill.state import State as State
    from windowsill.store import Store as Store
    from windowsill.store import open_store as open_store
    from windowsill.strategies import Plan as Plan
    from windowsill.strategies import Strategy as Strategy

__version__ = "0.1.0"

_HOMES = {
    "AgentState": "session",
    "Budget": "budget",
    "BudgetError": "errors",
    "ConflictError": "errors",
    "ContextManager": "session",
    "DamagedError": "errors",
    "Engine": "engine",
    "FoldError": "errors",
    "FormatError": "errors",
    "InputError": "errors",
    "LockedError": "errors",
    "Manager": "session",
    "Message": "messages",
    "NotFoundError": "errors",
    "Payload": "compose",
    "Plan": "strategies",
    "Report": "compose",
    "Result": "engine",
    "Session": "session",
    "SettingError": "errors",
    "State": "state",
    "Store": "store",
    "StoreError": "errors",
    "Strategy": "strategies",
    "Tool": "messages",
    "UnknownModelError": "errors",
    "Usage": "messages",
    "WindowsillError": "errors",
    "fit": "session",
    "open_store": "store",
    "repair": "formats",
    "tool": "engine",
    "validate": "formats",
    "wrap": "integrations",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - one list, kept in one place, checked by a test


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package costs next to nothing."""
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
