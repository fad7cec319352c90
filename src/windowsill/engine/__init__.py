"""The agent loop: a task, a model and tools on a session that keeps everything."""

from __future__ import annotations

from windowsill.engine.engine import Engine
from windowsill.engine.models import Model, ModelError, model
from windowsill.engine.result import Event, Result
from windowsill.engine.run_tool import ToolError
from windowsill.engine.tools import EngineTool, tool

__all__ = ["Engine", "EngineTool", "Event", "Model", "ModelError", "Result", "ToolError", "model", "tool"]
