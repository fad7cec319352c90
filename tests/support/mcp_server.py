"""A real MCP server over standard input and output; its tools write down that they ran."""

from __future__ import annotations

import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp_types import ToolAnnotations


def serve(log: Path, *more: str) -> None:
    """Serve four tools, and more that only have a name."""
    server = MCPServer("notes")

    def note(words: str) -> None:
        with log.open("a") as file:
            file.write(f"{words}\n")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def peek(name: str) -> str:
        """Look at something."""
        note(f"peek {name}")
        return f"saw {name}"

    @server.tool(annotations=ToolAnnotations(destructive_hint=True))
    def wipe(name: str) -> str:
        """Destroy something."""
        note(f"wipe {name}")
        return "gone"

    @server.tool(annotations=ToolAnnotations(destructive_hint=False))
    def put(name: str) -> str:
        """Add something."""
        note(f"put {name}")
        return "added"

    @server.tool()
    def anything(name: str) -> str:
        """Do whatever."""
        note(f"anything {name}")
        return "done"

    for name in more:
        server.add_tool(lambda: "nothing", name=name)

    server.run("stdio")


if __name__ == "__main__":
    serve(Path(sys.argv[1]), *sys.argv[2:])
