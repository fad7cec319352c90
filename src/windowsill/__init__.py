"""Version control for a context window: keep an LLM agent inside its window, and keep everything that happened."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowsill.agent import Engine as Engine
    from windowsill.agent import Result as Result
    from windowsill.agent import tool as tool
    from windowsill.budget import Budget as Budget
    from windowsill.clients.conversations import conversation as conversation
    from windowsill.clients.wrap import wrap as wrap
    from windowsill.compose import Payload as Payload
    from windowsill.compose import Report as Report
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
    from windowsill.messages import Message as Message
    from windowsill.messages import Tool as Tool
    from windowsill.messages import Usage as Usage
    from windowsill.providers import repair as repair
    from windowsill.providers import validate as validate
    from windowsill.session.context_manager import AgentState as AgentState
    from windowsill.session.context_manager import Manager as Manager
    from windowsill.session.session import Session as Session
    from windowsill.session.session import fit as fit
    from windowsill.state import State as State
    from windowsill.store import Store as Store
    from windowsill.store import open_store as open_store
    from windowsill.strategies import Plan as Plan
    from windowsill.strategies import Strategy as Strategy
    from windowsill.strategies.manager import ContextManager as ContextManager


__version__ = "0.1.0"

_HOMES = {
    "AgentState": "session.context_manager",
    "Budget": "budget",
    "BudgetError": "errors",
    "ConflictError": "errors",
    "ContextManager": "strategies.manager",
    "DamagedError": "errors",
    "Engine": "agent",
    "FoldError": "errors",
    "FormatError": "errors",
    "InputError": "errors",
    "LockedError": "errors",
    "Manager": "session.context_manager",
    "Message": "messages",
    "NotFoundError": "errors",
    "Payload": "compose",
    "Plan": "strategies",
    "Report": "compose",
    "Result": "agent",
    "Session": "session.session",
    "SettingError": "errors",
    "State": "state",
    "Store": "store",
    "StoreError": "errors",
    "Strategy": "strategies",
    "Tool": "messages",
    "UnknownModelError": "errors",
    "Usage": "messages",
    "WindowsillError": "errors",
    "conversation": "clients.conversations",
    "fit": "session.session",
    "open_store": "store",
    "repair": "providers",
    "tool": "agent",
    "validate": "providers",
    "wrap": "clients.wrap",
}

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
