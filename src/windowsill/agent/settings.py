"""The settings that all runs of an engine share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from windowsill.agent.criteria import Validator
from windowsill.agent.models import Model
from windowsill.agent.phases import WorkPhases
from windowsill.agent.toolset import Toolset
from windowsill.session.checkpoints import Automatic
from windowsill.state.policies import Approve
from windowsill.state.policies.guard import Check


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine was made with."""

    model: Model
    toolset: Toolset
    system: str
    """The caller's system prompt; the role and the policies of the state follow it."""
    phases: WorkPhases
    validators: dict[str, Validator]
    max_turns: int
    max_output: int
    base: Path
    approve: Approve | None
    approval_seconds: float | None
    checks: dict[str, Check]
    """Checks of the policies, by their id."""
    checkpoints: Automatic | None
    snapshots: bool | Path | str
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
