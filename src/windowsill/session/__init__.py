"""The object a user holds, and the one-call form of it."""

from windowsill.session.agent_state import AgentState
from windowsill.session.fit import fit
from windowsill.session.manager import ContextManager, Manager
from windowsill.session.session import Session

__all__ = ["AgentState", "ContextManager", "Manager", "Session", "fit"]
