"""The tools of the projection's tests: those of a small coding agent."""

from __future__ import annotations

from windowsill.messages import Tool
from windowsill.state import State
from windowsill.state.layers import About, Resources, Runtime, Task, TaskLimits
from windowsill.state.tools import Narrow, Projection, ToolOffer


def tool(name, *, required=(), description="", **properties):
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return Tool(
        name=name, description=description, schema={**schema, "required": list(required)} if required else schema
    )


TEXT = {"type": "string"}
DELETABLE = ("/tmp/allowed-file-1.txt", "/tmp/allowed-file-2.txt")
COMMANDS = ("npm test", "npm run build", "npm run lint")
RULES = (
    Narrow(tool="deleteFile", parameter="path", allow=DELETABLE),
    Narrow(tool="execute", parameter="command", allow=COMMANDS),
)
ALL = (
    ToolOffer(tool("search", query=TEXT), "search", priority=80),
    ToolOffer(tool("readFile", path=TEXT), "readFile", priority=90),
    ToolOffer(tool("writeFile", path=TEXT, content=TEXT), "writeFile", priority=85),
    ToolOffer(tool("deleteFile", path={**TEXT, "description": "File path"}), "deleteFile", ("admin",)),
    ToolOffer(tool("execute", command=TEXT), "execute", priority=70),
    ToolOffer(tool("test"), "test", priority=75),
    ToolOffer(tool("deploy"), "deploy", ("deploy",), priority=60),
)


def letters(text):
    return len(text)


def state(phase="executing", permissions=("read",), environment="dev", *, priority="medium", limit=None, used=0.0):
    return State(
        runtime=Runtime(
            phase=phase, permissions=permissions, environment=environment, resources=Resources(seconds=used)
        ),
        task=Task(about=About(priority=priority), limits=TaskLimits(max_seconds=limit)),
    )


def projected(offered=ALL, at=None, **settings):
    return Projection(offered, count=settings.pop("count", letters), **settings).project(at or state())
