"""The object a user holds, and the one-call form of it."""

from __future__ import annotations

from windowsill.session.context_manager import AgentState, Manager
from windowsill.session.session import Session, fit

__all__ = ["AgentState", "Manager", "Session", "fit"]
