"""The command line: a thin door to the library, every command loaded when it is used."""

from windowsill.cli.running import main

__all__ = ["main"]
