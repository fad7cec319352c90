"""Calls of a client, taken over: shared by everything that stands between a client and its provider."""

from windowsill.exchange.exchange import Exchange, Recorder
from windowsill.exchange.routes import Route, route

__all__ = ["Exchange", "Recorder", "Route", "route"]
