"""The tools of a session over the Model Context Protocol: by standard input and output, or by streamable HTTP."""

from __future__ import annotations

from windowsill.mcp.server import http_app, serve_http, serve_stdio

__all__ = ["http_app", "serve_http", "serve_stdio"]
