"""The command line: a thin door to the library; every command is loaded when it is used."""

from windowsill.cli.main import main

__all__ = ["main"]
