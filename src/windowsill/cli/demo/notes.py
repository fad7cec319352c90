"""What the demo's agent has found so far, and how it tells it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from windowsill.cli.demo.tools import Outcome

_AUDITED = re.compile(r"(\S+): (\d+) raised, (\d+) without a remedy(.*)")

MOST_LISTED = 5
"""Files the answer lists: with its other lines it stays under ten, as the user wished."""


class Notes:
    """What the agent has found: for each file the errors it raises and the lines of those without a remedy."""

    def __init__(self) -> None:
        self.raised: dict[str, int] = {}
        self.bare: dict[str, list[int]] = {}

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Learn from what the audit script printed."""
        for outcome in outcomes:
            if (found := _AUDITED.fullmatch(outcome.text)) is not None:
                self.raised[found[1]] = int(found[2])
                self.bare[found[1]] = [int(line) for line in found[4].split()]

    def ranked(self) -> list[tuple[str, list[int]]]:
        """The files with cases, most first; the one that only defines errors is left out, as the user wished."""
        cases = [(path, lines) for path, lines in self.bare.items() if lines and path != "errors.py"]
        return sorted(cases, key=lambda case: (-len(case[1]), case[0]))

    def so_far(self) -> str:
        """An interim report."""
        cases = sum(len(lines) for _, lines in self.ranked())
        return f"So far: {number_of(len(self.bare), 'file')} checked, {number_of(cases, 'error')} without a remedy."

    def answer(self) -> str:
        """The last words: where the cases are and what comes first, in fewer than ten lines."""
        ranked = self.ranked()
        raised = number_of(sum(self.raised.values()), "raised error")
        looked = f"I looked at {number_of(len(self.bare), 'file')} with {raised}."
        if not ranked:
            return f"{looked} Every one of them states a remedy; no file needs work."
        worst, lines = ranked[0]
        listed = [f"- {path}: {len(found)}" for path, found in ranked[:MOST_LISTED]]
        rest = ranked[MOST_LISTED:]
        more = [f"- {number_of(len(rest), 'other file')}: {sum(len(found) for _, found in rest)}"] if rest else []
        where = ("lines " if len(lines) > 1 else "line ") + ", ".join(map(str, lines))
        return "\n".join([f"{worst} needs work first: {where}.", *listed, *more, looked])


def number_of(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
