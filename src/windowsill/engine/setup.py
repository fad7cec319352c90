"""What an engine was made with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from windowsill.checkpoints.automatic import Automatic
from windowsill.engine.models import Model
from windowsill.engine.phases import Worked
from windowsill.engine.toolset import Toolset
from windowsill.engine.verifying import Validator
from windowsill.state.policies import Approve
from windowsill.state.policies.guard import Check
from windowsill.state.state import State


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of all its runs."""

    model: Model
    toolset: Toolset
    system: Callable[[State], str]
    """The system prompt, which changes only with the state's first layer."""
    phases: Worked
    validators: dict[str, Validator]
    max_turns: int
    max_output: int
    base: Path
    approve: Approve | None
    approval_seconds: float | None
    checks: dict[str, Check]
    """Of the policies, by their id."""
    checkpoints: Automatic | None
    snapshots: bool | Path | str
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
