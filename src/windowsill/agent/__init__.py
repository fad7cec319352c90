"""The agent loop: a task, a model and tools on a session that keeps everything."""

from __future__ import annotations

from windowsill.agent.engine import Engine
from windowsill.agent.limits import Tuning
from windowsill.agent.models import Model, ModelError, model
from windowsill.agent.result import Event, Result
from windowsill.agent.tools import EngineTool, ToolError, tool

__all__ = ["Engine", "EngineTool", "Event", "Model", "ModelError", "Result", "ToolError", "Tuning", "model", "tool"]
