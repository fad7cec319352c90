"""The limits of a run: the resources of its task, the limit that is reached, and a model that repeats itself."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from windowsill.agent.models import Model
from windowsill.agent.phases import WorkPhases
from windowsill.agent.tools import Outcome
from windowsill.agent.toolset import Toolset
from windowsill.agent.verification import Validator
from windowsill.errors import SettingError
from windowsill.messages import Reply
from windowsill.models import Prices, find_known, prices
from windowsill.providers.http import RetryPolicy
from windowsill.session.checkpoints import Automatic
from windowsill.session.session import Session
from windowsill.state.layers import Policy, Resources, Role, State
from windowsill.state.policies import Approve
from windowsill.state.policies.guard import Check, limits_reached
from windowsill.state.tools.projection import URGENT

RETRY = RetryPolicy(retries=30, backoff=0.1, longest_wait=60.0, longest_asked=3_600.0)
"""Retries of a model call: 0.1 s, 0.2 s, 0.4 s, ... up to a minute each, so that a quarter of an hour without an answer
is survived. A pause that the provider asks for is kept, up to an hour."""

MALFORMED = 3
"""Retries of an answer that cannot be read: each costs money, and the next may look the same."""

LONGEST_CYCLE = 4
"""Answers in a cycle: a model may also alternate between a few calls."""


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers by which an engine decides; few tasks need others."""

    reflections: int = 2
    """Reflections on one task: a model that finds something to improve every time never ends."""
    rounds: int = 3
    """Rounds of work after a verification that failed."""
    unproven: int = 1
    """Reminders to a model that says that a task is done and shows no evidence."""
    nudges: int = 3
    """Answers in a row that cannot be used, before the run ends."""
    warn_after: int = 3
    """The same call with the same result so often in a row, and the model is told."""
    stuck_after: int = 6
    """So often, and the run ends."""
    forced: float = 0.3
    """The share of its budget to which a request is reduced when the provider says it was too long."""
    urgent_tools: int = URGENT
    """Tools that an urgent task shows."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value < (1 if name in ("warn_after", "stuck_after", "urgent_tools") else 0):
                raise SettingError(f"tuning.{name}", value, "0 or more, 1 or more for repeats and tools")
        if not 0 < self.forced <= 1:
            raise SettingError("tuning.forced", self.forced, "a share above 0, up to 1")


class RepeatDetector:
    """Notices answers that repeat: the same calls with the same results, also in cycles of a few."""

    def __init__(self, stuck_after: int) -> None:
        self._past: list[bytes] = []
        self._most = stuck_after * LONGEST_CYCLE

    def add(self, outcomes: Sequence[Outcome]) -> int:
        """Count how often the calls that just ran were run in a row, alone or as a cycle of a few."""
        facts = [(each.call.name, each.call.arguments, each.text, each.is_error) for each in outcomes]
        self._past.append(hashlib.blake2b(msgspec.msgpack.encode(facts), digest_size=16).digest())
        del self._past[: -self._most]
        return max(self._times(size) for size in range(1, LONGEST_CYCLE + 1))

    def reset(self) -> None:
        """Forget the past: something else happened."""
        self._past.clear()

    def _times(self, size: int) -> int:
        last, times = self._past[-size:], 1
        while self._past[-size * (times + 1) : -size * times] == last:
            times += 1
        return times if len(last) == size else 0


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one run; `None` is no limit. Reaching one pauses the task: the next run goes on with it."""

    max_turns: int = 1_000
    """Model calls."""
    max_tool_calls: int | None = 2_000
    max_seconds: float | None = 8 * 3_600.0
    max_cost: float | None = None
    """Dollars."""

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise SettingError("max_turns", self.max_turns, "1 or more")
        for name in ("max_tool_calls", "max_seconds", "max_cost"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SettingError(name, value, "above 0, or None for no limit")

    def reached(self, *, turns: int, tool_calls: int, seconds: float, cost: float) -> str:
        """Describe the limit that is reached and what to do about it; empty when none is."""
        for name, unit, value in (
            ("max_turns", "model calls", turns),
            ("max_tool_calls", "tool calls", tool_calls),
            ("max_seconds", "seconds", seconds),
            ("max_cost", "dollars", cost),
        ):
            most = getattr(self, name)
            if most is not None and value >= most:
                return f"the limit of {most:,g} {unit} in one run is reached; run it again to go on, or raise {name}="
        return ""


class UsageMeter:
    """Counts tokens, calls, dollars and time of a run, on top of what its task has used before."""

    def __init__(self, session: Session, model: Model) -> None:
        self._session = session
        self._model = model
        self._began = time.monotonic()
        self._seconds_before = 0.0
        self._price: Prices | None = None

    @property
    def seconds(self) -> float:
        """The seconds that this run has taken."""
        return time.monotonic() - self._began

    def begin(self, seconds_before: float) -> None:
        """Count on top of the seconds that earlier runs of the task have taken."""
        self._seconds_before = seconds_before

    def used(self, reply: Reply | None = None) -> Resources:
        """Return the resources that the task has used by now, including this reply."""
        used = self._session.state.value.runtime.resources
        calls = used.model_calls + (reply is not None)
        used = msgspec.structs.replace(used, seconds=self._seconds_before + self.seconds, model_calls=calls)
        if reply is None or reply.usage is None:
            return used
        usage, price = reply.usage, self._prices
        return msgspec.structs.replace(
            used,
            input=used.input + usage.input + usage.cache_write,
            output=used.output + usage.output,
            cached=used.cached + usage.cache_read,
            cost=used.cost + (price.cost(usage) if price.known else 0.0),
        )

    def unpriced_model(self, state: State) -> str:
        """Name the model whose prices are unknown although the state limits the cost; empty when all is well."""
        limits = (state.system.constraints.max_cost, state.task.limits.max_cost)
        limited = any(limit is not None for limit in limits)
        return "" if not limited or self._prices.known else self._model.name or self._session.model.name

    @property
    def _prices(self) -> Prices:
        """The prices of the model that is asked, which may be another than the session's."""
        if self._price is None:
            session, name = self._session.model, self._model.name
            known = None if not name or name == self._session.settings.model else find_known(name)
            self._price = prices(known or session)
        return self._price


def max_seconds(state: State) -> float | None:
    """Return the seconds that the task may take in all; `None` when nothing limits it."""
    limits = (state.system.constraints.max_seconds, state.task.limits.max_seconds)
    return min((each for each in limits if each is not None), default=None)


def reached_limit(state: State, *, seconds: float) -> str:
    """Describe the limit of the state that is reached and what to do about it; empty when none is.

    `seconds` is the time that the task has taken, earlier runs included.
    """
    used = msgspec.structs.replace(state.runtime.resources, seconds=seconds)
    for path, unit, _, most in limits_reached(state.system.constraints, state.task.limits, used):
        # Without any calls allowed a model may still answer; its calls are refused.
        if most or unit != "tool calls":
            remedy = f'raise it with session.state.set("{path}", ...) and run it again'
            return f"the limit of {most:,g} {unit} is reached; {remedy}"
    return ""


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an engine."""

    model: Model
    toolset: Toolset
    system: str
    """The caller's system prompt; the role and the policies of the state follow it."""
    phases: WorkPhases
    validators: dict[str, Validator]
    limits: RunLimits
    tuning: Tuning
    retry: RetryPolicy
    knowledge: Path
    """The folder with preferences, skills and templates."""
    role: Role | None
    policies: tuple[Policy, ...] | None
    warnings: tuple[str, ...]
    """Told at the beginning of each run."""
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
