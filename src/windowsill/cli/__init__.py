"""The command line: a thin door to the library; every command is loaded when it is used."""

from __future__ import annotations

from windowsill.cli.main import main

__all__ = ["main"]
