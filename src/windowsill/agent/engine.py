"""The engine: the object that runs an agent on a session, one at a time for each session."""

from __future__ import annotations

import itertools
import os
import random as randomness
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio import from_thread, to_thread

from windowsill import telemetry
from windowsill.agent.limits import RETRY as RUN_RETRY
from windowsill.agent.limits import EngineSettings, RunLimits, Tuning
from windowsill.agent.loop import Loop
from windowsill.agent.models import Model
from windowsill.agent.models import model as model_of
from windowsill.agent.models.http_model import RETRY
from windowsill.agent.phases import ALL, check_phases
from windowsill.agent.result import Event, EventLog, Result
from windowsill.agent.tools import AnyTool
from windowsill.agent.toolset import Toolset
from windowsill.agent.verification import Validator
from windowsill.budget import Size, tokens_of
from windowsill.errors import InputError, LockedError, SettingError, StoreError, log
from windowsill.extras import require
from windowsill.models import find_known
from windowsill.providers.http import RetryPolicy
from windowsill.session.checkpoints import Automatic
from windowsill.session.session import Session
from windowsill.session.snapshots import snapshot_folder
from windowsill.state.layers import Criterion, Phase, Policy, Role
from windowsill.state.policies import Approve
from windowsill.state.policies.guard import WAIT, Check
from windowsill.state.prompt import read_state_settings
from windowsill.state.tools import Narrow
from windowsill.state.tools.projection import Mode
from windowsill.store import default_place
from windowsill.store.base import holder_name
from windowsill.telemetry import names
from windowsill.text import type_name

LAYERS: Size = 0.25
"""The share of a request that the state may take."""

NO_RETRIES = msgspec.structs.replace(RETRY, retries=0)
"""A fault that may pass is retried by the run, which emits an event: not by both."""

KEEP = 10
"""The latest messages that `condense` leaves in an engine, where each step is several messages."""

LIMITS = RunLimits()

LEASE = 60.0
"""Seconds after which the lock of a machine that is gone is free again; that of a dead process of ours is at once."""

_runs = itertools.count(1)


class Engine:
    """Runs an agent on a session.

    `tools` are functions, or tools made with `@tool`. `system` comes before the agent's role and policies in the system
    prompt. `approve` is asked before a call that needs somebody's consent; `checks` enforce policies, by their id;
    `validators` check success criteria, by their id or description; `listen` gets every event.

    `role` and `policies` are told to the model; nobody is told one that was not stated. `max_turns`, `max_tool_calls`,
    `max_seconds` and `max_cost` (dollars) limit one run: reaching one pauses the task, and the next run goes on. Limits
    of a whole task are those of the state, `system.constraints` and `task.limits`. `retry` says how often and with
    which pauses a model that gives no answer is asked again. `tuning` has the other numbers of a run. `implied` maps a
    permission to others that it brings with it.

    `layers` and `state` say how much of the state a request shows, and how. `knowledge` is a folder with
    `preferences.toml`, `skills/` and `templates/`; without it, the user's own. `snapshots` are on where the store has a
    folder.
    """

    def __init__(  # noqa: PLR0913 - settings are read by name, and most are left alone
        self,
        session: Session,
        *,
        model: str | Callable[..., Any] | Model,
        tools: Iterable[AnyTool] = (),
        system: str = "",
        role: str | Role | None = None,
        policies: Iterable[str | Policy] | None = None,
        phases: Sequence[Phase] = ALL,
        rules: Iterable[Narrow] = (),
        tool_mode: Mode = "remove",
        tool_budget: int | None = 2_000,
        categories: Mapping[str, Iterable[str]] | None = None,
        implied: Mapping[str, Iterable[str]] | None = None,
        approve: Approve | None = None,
        approval_seconds: float | None = WAIT,
        checks: Mapping[str, Check] | None = None,
        base: Path | str = ".",
        validators: Mapping[str, Validator] | None = None,
        listen: Callable[[Event], object] | None = None,
        max_turns: int = LIMITS.max_turns,
        max_tool_calls: int | None = LIMITS.max_tool_calls,
        max_seconds: float | None = LIMITS.max_seconds,
        max_cost: float | None = LIMITS.max_cost,
        retry: RetryPolicy = RUN_RETRY,
        tuning: Tuning = Tuning(),  # noqa: B008 - a frozen value
        max_output: int = 0,
        layers: Size = LAYERS,
        state: Mapping[str, Any] | None = None,
        knowledge: Path | str | None = None,
        checkpoints: Automatic | None = Automatic(),  # noqa: B008 - a frozen value
        snapshots: bool | Path | str | None = None,
        history_tools: bool = True,
        own_tools: bool = True,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        require("agent", "an agent", "jsonschema")
        if max_output < 0:
            raise SettingError("max_output", max_output, "tokens above 0, or 0 to leave it to the provider")
        if not isinstance(session, Session):
            raise InputError(f"{type_name(session)} is no session", remedy="pass what `Session.open` returns")
        tokens_of(layers, session.model.window, "layers")
        self.session = session
        self.model = _model(model, session)
        self._listen = listen
        self._busy = threading.Lock()
        self._loop: Loop | None = None
        self._layers = layers
        self._look = None if state is None else read_state_settings(state)
        if snapshots is None:
            snapshots = isinstance(getattr(session.journal.store, "path", None), Path)
        elif snapshots:
            # Raised now, not at the first checkpoint: a session in memory has no folder for them.
            snapshot_folder(session.journal.store, session.id, None if snapshots is True else snapshots)
        toolset = Toolset(
            session,
            tools,
            rules=rules,
            mode=tool_mode,
            budget=tool_budget,
            categories=categories,
            history=history_tools,
            own=own_tools,
            urgent=tuning.urgent_tools,
            implied=implied,
        )
        self._settings = EngineSettings(
            model=self.model,
            toolset=toolset,
            knowledge=default_place(os.environ, Path.home()) if knowledge is None else Path(knowledge),
            role=Role(name=role) if isinstance(role, str) else role,
            policies=None if policies is None else _policies(policies),
            limits=RunLimits(
                max_turns=max_turns, max_tool_calls=max_tool_calls, max_seconds=max_seconds, max_cost=max_cost
            ),
            retry=retry,
            tuning=tuning,
            warnings=tuple(_warnings(session, self.model, toolset, approve)),
            system=system,
            phases=check_phases(phases),
            validators=dict(validators or {}),
            max_output=max_output,
            base=Path(base),
            approve=approve,
            approval_seconds=approval_seconds,
            checks=dict(checks or {}),
            checkpoints=checkpoints,
            snapshots=snapshots,
            sleep=sleep,
            random=random,
        )

    async def run(
        self, task: str | None = None, *, criteria: Iterable[str | Criterion] = (), id: str = "", wait: float = 0.0
    ) -> Result:
        """Run a task to its end and return how it ended; whatever goes wrong is in the result, and nothing is lost.

        A run that was interrupted is taken up by `run()`, or by `run` with the same task again. With an `id`, which
        becomes that of the task's message, a task is begun once: calling again with it goes on, or returns how it
        ended. Only a mistake in this call, another engine at work on the session, and a cancellation from outside are
        raised. For that other engine it can `wait` so many seconds: those who do are let in as they came.
        """
        if not self._busy.acquire(blocking=False):
            raise InputError(
                "this engine is running already", remedy="wait for it, or make another session for the task"
            )
        try:
            events = EventLog(self._listen)
            loop = self._loop = Loop(self.session, self._settings, events)
            span = telemetry.span(names.INVOKE_AGENT, operation=names.INVOKE_AGENT, session=self.session.id)
            state_shown = self.session.composer.step.show_state(self._layers, apart=("system",), settings=self._look)
            async with hold_session(self.session, loop, wait), self.model.opened():
                with span, state_shown, self.session.composer.keep_latest(KEEP):
                    result = await loop.run(task, (criteria,) if isinstance(criteria, str) else tuple(criteria), id)
                    span.set(status=result.status)
            data = {"status": result.status, "turns": result.turns}
            events.emit(Event(kind="ended", text=result.error or result.text, data=data))
            return result
        finally:
            self._loop = None
            self._busy.release()

    def run_sync(
        self, task: str | None = None, *, criteria: Iterable[str | Criterion] = (), id: str = "", wait: float = 0.0
    ) -> Result:
        """Run a task like `run`, from code without an event loop or inside one."""
        with from_thread.start_blocking_portal() as portal:
            return portal.call(partial(self.run, task, criteria=criteria, id=id, wait=wait))

    def cancel(self) -> None:
        """End the run: at once from the thread that runs it, else after the step at hand. It can be taken up again."""
        if self._loop is not None:
            self._loop.cancel()


def _model(given: str | Callable[..., Any] | Model, session: Session) -> Model:
    """Return the model; a function gets requests in the format of the session."""
    if isinstance(given, Model):
        return given
    if isinstance(given, str):
        return model_of(given, policy=NO_RETRIES)
    return model_of(given, format=session.composer.format) if callable(given) else model_of(given)


def _policies(given: Iterable[str | Policy]) -> tuple[Policy, ...]:
    """Return policies with their ids; a text alone is a soft one, as no code checks it."""
    stated = (given,) if isinstance(given, str) else given
    made = [Policy(rule=each, enforcement="soft") if isinstance(each, str) else each for each in stated]
    return tuple(
        each if each.id else msgspec.structs.replace(each, id=f"policy-{number}")
        for number, each in enumerate(made, start=1)
    )


def _warnings(session: Session, model: Model, toolset: Toolset, approve: Approve | None) -> Iterator[str]:
    """Yield what the caller has probably not meant."""
    if toolset.unstated and approve is None:
        names = ", ".join(toolset.unstated)
        yield (
            f"every call of {names} will be refused: a tool that states no category may change things and needs "
            'approval; state one, such as @tool(category="read"), or give approve='
        )
    asked = find_known(model.name or None)
    if asked is not None and asked.name != session.model.name:
        yield (
            f"the session counts for {session.model.name} (window {session.model.window:,}), and the engine asks "
            f"{asked.name} (window {asked.window:,}); open the session with model={asked.name!r}"
        )


@asynccontextmanager
async def hold_session(session: Session, loop: Loop, wait: float = 0.0) -> AsyncIterator[None]:
    """Hold a session's lock and renew it; raise `LockedError` when another holds it, end the loop when it is lost."""
    # Two runs in one thread are two holders all the same.
    holder = f"{holder_name()}-{next(_runs)}"
    raised: Exception | None = None
    try:
        await _take(session, holder, wait)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_renew, session, holder, loop)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised below: through the group it would be one of a group
                raised = error
            tasks.cancel_scope.cancel()
    finally:
        try:
            session.journal.store.unlock(session.id, holder)
        except StoreError as error:
            # It ends by itself; the result of the run is worth more.
            log.warning("the lock of session %s was not given back: %s", session.id, error)
    if raised is not None:
        raise raised


async def _take(session: Session, holder: str, wait: float) -> None:
    """Take a session's lock, in pieces of a second, so that a run that is cancelled does not wait on."""
    end = time.monotonic() + wait
    while True:
        left = end - time.monotonic()
        try:
            if left <= 0:
                session.journal.hold(holder, seconds=LEASE)
            else:
                hold = partial(session.journal.hold, holder, seconds=LEASE, wait=min(left, 1.0))
                await to_thread.run_sync(hold)
        except LockedError:
            if left <= 0:
                raise
        else:
            return


async def _renew(session: Session, holder: str, loop: Loop) -> None:
    while True:
        await anyio.sleep(LEASE / 3)
        try:
            session.journal.hold(holder, seconds=LEASE)
        except LockedError as error:
            loop.lose_session(error)
            return
        except StoreError as error:
            log.warning("the lock of session %s was not renewed: %s", session.id, error)
