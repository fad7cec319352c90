"""A proxy before the providers: agents that cannot be changed get a window that never overflows."""

from windowsill.proxy.server import Proxy, serve

__all__ = ["Proxy", "serve"]
