"""What a guard says of a call."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from windowsill.state.tools.arguments import Refusal

Outcome: TypeAlias = Literal["allowed", "refused", "needs-approval"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a call may be run, as a plain value that can be recorded."""

    outcome: Outcome
    refusal: Refusal | None = None
    """Which policy or limit speaks against it, where the outcome is `refused`."""
    warnings: tuple[str, ...] = ()
    """Soft policies that it goes against, one line each; they are reported, and the call is run."""
    approved: bool = False
    """Whether somebody was asked and said yes."""

    @property
    def allowed(self) -> bool:
        """Whether it may be run now."""
        return self.outcome == "allowed"

    @property
    def why(self) -> str:
        """One line for the model on why it is not run; empty when nothing speaks against it."""
        return "" if self.refusal is None else str(self.refusal)
