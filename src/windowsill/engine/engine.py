"""The engine: the object that runs an agent on a session."""

from __future__ import annotations

import random as randomness
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio import from_thread

from windowsill import telemetry
from windowsill.budget import Size, tokens_of
from windowsill.checkpoints.automatic import Automatic
from windowsill.engine.holding import holding
from windowsill.engine.models import Model
from windowsill.engine.models import model as model_of
from windowsill.engine.models.remote import MANNERS, Remote
from windowsill.engine.phases import ALL, check_phases
from windowsill.engine.result import Event, Result
from windowsill.engine.run import Run
from windowsill.engine.setup import Setup
from windowsill.engine.tools import AnyTool
from windowsill.engine.toolset import Toolset
from windowsill.engine.verifying import Validator
from windowsill.errors import InputError, SettingError
from windowsill.logs import log
from windowsill.session.session import Session
from windowsill.state.policies import Approve
from windowsill.state.policies.approval import WAIT
from windowsill.state.policies.guard import Check
from windowsill.state.projection import Narrow
from windowsill.state.projection.projected import Mode
from windowsill.state.runtime import Phase
from windowsill.state.state import State
from windowsill.state.system import System
from windowsill.state.task import Criterion
from windowsill.telemetry import names

LAYERS: Size = 0.25
"""The share of a request in which the state is told."""

ONCE = msgspec.structs.replace(MANNERS, retries=0)

MAX_TURNS = 200
"""Model calls in one run."""


class Engine:
    """Runs an agent on a session.

    `tools` are functions, or tools made with `@tool`. `system` stands before what the state says of the agent's role
    and policies. `approve` is asked before a call that needs somebody's consent; `checks` enforce policies, by their
    id; `validators` check success criteria, by their id or description; `listen` hears every event. Limits are those
    of the state: `system.constraints` and `task.limits`.
    """

    def __init__(  # noqa: PLR0913 - settings are read by name, and most are left alone
        self,
        session: Session,
        *,
        model: str | Callable[..., Any] | Model,
        tools: Iterable[AnyTool] = (),
        system: str = "",
        phases: Sequence[Phase] = ALL,
        rules: Iterable[Narrow] = (),
        tool_mode: Mode = "remove",
        tool_budget: int | None = 2_000,
        shown: Mapping[str, Iterable[str]] | None = None,
        approve: Approve | None = None,
        approval_seconds: float | None = WAIT,
        checks: Mapping[str, Check] | None = None,
        base: Path | str = ".",
        validators: Mapping[str, Validator] | None = None,
        listen: Callable[[Event], object] | None = None,
        max_turns: int = MAX_TURNS,
        max_output: int = 0,
        layers: Size = LAYERS,
        checkpoints: Automatic | None = Automatic(),  # noqa: B008 - a frozen value
        snapshots: bool | Path | str = False,
        history_tools: bool = True,
        own_tools: bool = True,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        if max_turns < 1:
            raise SettingError("max_turns", max_turns, "1 or more")
        if max_output < 0:
            raise SettingError("max_output", max_output, "tokens above 0, or 0 to leave it to the provider")
        tokens_of(layers, session.model.window, "layers")
        self.session = session
        # A fault in passing is got over by the run, which tells of it: not by both.
        self.model = model_of(model, manners=ONCE) if isinstance(model, str) else model_of(model)
        self._system = system
        self._told: tuple[System | None, str] = (None, "")
        self._listen = listen
        self._busy = threading.Lock()
        self._run: Run | None = None
        self._layers = layers
        if snapshots:
            # Said now, not at the first checkpoint: a session in memory has no folder for them.
            session.snapshot_folder(None if snapshots is True else snapshots)
        self._setup = Setup(
            model=self.model,
            toolset=Toolset(
                session,
                tools,
                rules=rules,
                mode=tool_mode,
                budget=tool_budget,
                shown=shown,
                history=history_tools,
                own=own_tools,
            ),
            system=self._system_prompt,
            phases=check_phases(phases),
            validators=dict(validators or {}),
            max_turns=max_turns,
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

    async def run(self, task: str | None = None, *, criteria: Iterable[str | Criterion] = ()) -> Result:
        """Run a task to its end; how it ended. Whatever goes wrong is told in the result, and nothing is lost.

        A run that was interrupted is taken up by `run()`, or by `run` with the same task again. Only a mistake in this
        call, another engine at work on the session, and a cancellation from outside are raised.
        """
        if not self._busy.acquire(blocking=False):
            raise InputError(
                "this engine is running already", remedy="wait for it, or make another session for the task"
            )
        try:
            run = self._run = Run(self.session, self._setup, self._tell)
            span = telemetry.span(names.INVOKE_AGENT, operation=names.INVOKE_AGENT, session=self.session.id)
            telling = self.session.telling_state(self._layers, apart=("system",))
            opened = self.model.opened() if isinstance(self.model, Remote) else nullcontext()
            async with holding(self.session, run.lost), opened:
                with span, telling:
                    run.begin(task, (criteria,) if isinstance(criteria, str) else tuple(criteria))
                    result = await run.go()
                    span.set(status=result.status)
            data = {"status": result.status, "turns": result.turns}
            self._tell(Event(kind="ended", text=result.error or result.text, data=data))
            return result
        finally:
            self._run = None
            self._busy.release()

    def run_sync(self, task: str | None = None, *, criteria: Iterable[str | Criterion] = ()) -> Result:
        """`run` for code without an event loop, or inside one."""

        async def go() -> Result:
            return await self.run(task, criteria=criteria)

        with from_thread.start_blocking_portal() as portal:
            return portal.call(go)

    def cancel(self) -> None:
        """End the run: at once from the thread that runs it, else after the step at hand. It can be taken up again."""
        if self._run is not None:
            self._run.cancel()

    def _system_prompt(self, state: State) -> str:
        """The caller's words, and the role and the policies of the state; the same text while these stay the same."""
        if self._told[0] != state.system:
            self._told = (state.system, self.session.layering.system_text(state))
        return f"{self._system}\n\n{self._told[1]}" if self._system else self._told[1]

    def _tell(self, event: Event) -> None:
        if self._listen is None:
            return
        try:
            self._listen(event)
        except Exception:  # noqa: BLE001 - whoever only listens must not end the run
            log.warning("a listener of the engine failed", exc_info=True)
