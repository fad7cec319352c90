"""Version control for a context window: keep an LLM agent inside its window, and keep everything that happened."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowsill.agent import Engine, Result, tool
    from windowsill.budget import Budget
    from windowsill.clients.conversations import conversation
    from windowsill.clients.wrap import wrap
    from windowsill.compose import Payload, Report
    from windowsill.errors import (
        BudgetError,
        ConflictError,
        DamagedError,
        FoldError,
        FormatError,
        InputError,
        LockedError,
        NotFoundError,
        SettingError,
        StoreError,
        UnknownModelError,
        WindowsillError,
    )
    from windowsill.messages import Message, Tool, Usage
    from windowsill.providers import repair, validate
    from windowsill.session.context_manager import AgentState, Manager
    from windowsill.session.session import Session, fit
    from windowsill.state import State
    from windowsill.store import Store, open_store
    from windowsill.strategies import Plan, Strategy
    from windowsill.strategies.registry import ContextManager


__version__ = "0.1.0"

_MODULES = {
    "agent": "Engine Result tool",
    "budget": "Budget",
    "clients.conversations": "conversation",
    "clients.wrap": "wrap",
    "compose": "Payload Report",
    "errors": "BudgetError ConflictError DamagedError FoldError FormatError InputError LockedError NotFoundError "
    "SettingError StoreError UnknownModelError WindowsillError",
    "messages": "Message Tool Usage",
    "providers": "repair validate",
    "session.context_manager": "AgentState Manager",
    "session.session": "Session fit",
    "state": "State",
    "store": "Store open_store",
    "strategies": "Plan Strategy",
    "strategies.registry": "ContextManager",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "AgentState",
    "Budget",
    "BudgetError",
    "ConflictError",
    "ContextManager",
    "DamagedError",
    "Engine",
    "FoldError",
    "FormatError",
    "InputError",
    "LockedError",
    "Manager",
    "Message",
    "NotFoundError",
    "Payload",
    "Plan",
    "Report",
    "Result",
    "Session",
    "SettingError",
    "State",
    "Store",
    "StoreError",
    "Strategy",
    "Tool",
    "UnknownModelError",
    "Usage",
    "WindowsillError",
    "conversation",
    "fit",
    "open_store",
    "repair",
    "tool",
    "validate",
    "wrap",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package costs next to nothing."""
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
