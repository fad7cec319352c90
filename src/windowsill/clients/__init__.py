"""The doors to other people's code. Importing one imports nothing of theirs."""

from __future__ import annotations

from windowsill.clients.wrap import wrap

__all__ = ["wrap"]
