"""Errors and what ended them: a later success of the same command, or a change of a file they name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from windowsill.writers import shell
from windowsill.writers.ledger import CAPS, Trouble

PASSED = "passed later"


class Troubles:
    """The latest errors of a session; no more than a ledger holds, so that each success is checked quickly."""

    def __init__(self, before: Iterable[Trouble]) -> None:
        self._held: dict[tuple[str, str], tuple[str, Trouble]] = {}
        for one in before:
            self.add(one)

    def add(self, trouble: Trouble) -> None:
        """Take in an error; the same one again is one, and open again."""
        key = (trouble.source, trouble.text)
        self._held.pop(key, None)
        self._held[key] = (shell.core(trouble.source), trouble)
        if len(self._held) > CAPS["errors"]:
            del self._held[next(iter(self._held))]

    def ended(self, command: str, changed: Sequence[str]) -> None:
        """Note a command that passed, or files that were changed."""
        passed = shell.core(command)
        names = [(path, path.replace("\\", "/").rpartition("/")[2]) for path in changed]
        for key, (core, trouble) in self._held.items():
            if passed and core == passed and PASSED not in trouble.fix:
                fix = f"{trouble.fix}; {PASSED}" if trouble.fix else PASSED
            elif not trouble.fix:
                fix = next((f"changed {path}" for path, name in names if _concerns(trouble, name)), "")
            else:
                continue
            if fix:
                self._held[key] = (core, msgspec.structs.replace(trouble, fix=fix))

    def all(self) -> list[Trouble]:
        """All of them, oldest first."""
        return [trouble for _, trouble in self._held.values()]


def _concerns(trouble: Trouble, name: str) -> bool:
    return len(name) > 1 and (name in trouble.text or name in trouble.source)
