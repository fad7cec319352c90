"""Put the real output of `windowsill ... --help` into docs/cli.md (`make docs`); a test checks that it is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from windowsill.cli.main import group

PAGE = Path(__file__).with_name("cli.md")
_BLOCK = re.compile(r"```console\n\$ windowsill ([^\n]*--help)\n.*?```", re.DOTALL)


def filled(page: str) -> str:
    """Return the page with what each command prints."""

    def block(match: re.Match[str]) -> str:
        result = CliRunner().invoke(
            group, shlex.split(match[1]), prog_name="windowsill", terminal_width=80, catch_exceptions=False
        )
        return f"```console\n$ windowsill {match[1]}\n{result.output.rstrip()}\n```"

    return _BLOCK.sub(block, page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
