"""The inspector: a page that shows what fills a window, what left it and why, and brings it back."""

from windowsill.inspector.server import app, serve

__all__ = ["app", "serve"]
