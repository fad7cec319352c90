"""The doors to other people's code. Importing one imports nothing of theirs."""

from windowsill.integrations.clients import wrap

__all__ = ["wrap"]
