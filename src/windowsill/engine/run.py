"""One run of a task. What to do next is read from the session alone.

Calls without results are run, an answer without calls ends a phase, anything else is asked: so a run that was killed
between any two steps goes on where it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import msgspec

from windowsill.compose import Payload
from windowsill.engine.answers import nudge, refusal
from windowsill.engine.asking import FORCED, Asking, Heard
from windowsill.engine.beginning import Beginning
from windowsill.engine.calls import Calls, LedElsewhereError
from windowsill.engine.models import ModelError
from windowsill.engine.models.stating import stated
from windowsill.engine.own import Finish
from windowsill.engine.phases import Next, Road, after, again, verified, way
from windowsill.engine.result import Event, Result, Status
from windowsill.engine.setup import Setup
from windowsill.engine.showing import Showing
from windowsill.engine.speaking import last_of, say
from windowsill.engine.spending import Spending
from windowsill.engine.verifying import unmet
from windowsill.engine.watching import STUCK_AFTER, WARN_AFTER, Circles, most_seconds, passed_limit
from windowsill.engine.words import DECLINED, MOST_NUDGES, PAUSED, REPEATED, STOP_REASON
from windowsill.errors import DamagedError, InputError, WindowsillError
from windowsill.formats.streaming import PARTIAL
from windowsill.messages import ToolUse
from windowsill.session.session import Session
from windowsill.state.changes import Change, Put, Set
from windowsill.state.runtime import Trouble
from windowsill.state.state import State
from windowsill.state.task import Criterion


class Ending(msgspec.Struct, frozen=True):
    """Why a run is over."""

    status: Status
    error: str = ""


class Run:
    """Runs the task of one session, from wherever it stands."""

    def __init__(self, session: Session, setup: Setup, tell: Callable[[Event], None]) -> None:
        self._session = session
        self._setup = setup
        self._hear = tell
        self._asking = Asking(session, setup.model, tell=self._tell, sleep=setup.sleep, random=setup.random)
        self._calls = Calls(
            session,
            setup.toolset,
            base=setup.base,
            approve=setup.approve,
            wait=setup.approval_seconds,
            checks=setup.checks,
            tell=self._tell,
        )
        self._showing = Showing(session, setup.toolset, self._tell)
        self._road = Road()
        self._circles = Circles()
        self._notes: list[str] = []
        self._turns = self._tool_calls = self._nudges = 0
        self._spending = Spending(session, setup.model, self._tell)
        self._beginning = Beginning(session, setup, self._calls, self._spending, self._tell)
        self._at = 0
        self._finished: Next | None = None
        self._missing: Sequence[str] = ()
        self._failed: Ending | None = None
        self._text = ""
        self._wanted_to_end = False
        self._thread = threading.get_ident()
        self._scope = anyio.CancelScope()

    # From outside

    def begin(self, task: str | None, criteria: Sequence[str | Criterion]) -> None:
        """Take a task in, or take up the one that was interrupted; `InputError` when there is neither."""
        try:
            try:
                self._beginning.begin(task, criteria)
            except DamagedError as error:
                if not self._restore(error):
                    raise
                self._beginning.begin(task, criteria)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - a store may raise anything; the caller gets a result
            self._failed = _failed(error)

    async def go(self) -> Result:
        """Run until it ends; how it ended."""
        if self._failed is not None:
            return self._result(self._failed)
        ending = Ending("cancelled", "it was cancelled; run it again to go on")
        with self._scope:
            try:
                ending = await self._until_the_end()
            except Exception as error:  # noqa: BLE001 - a store or a model may raise anything; the caller gets a result
                ending = _failed(error)
        return self._result(ending)

    def cancel(self) -> None:
        """End it: at once from the thread that runs it, else after the step at hand."""
        self._wanted_to_end = True
        if self._thread == threading.get_ident():
            self._scope.cancel()

    def lost(self, error: WindowsillError) -> None:
        """Somebody else works on the session."""
        self._notes.append(f"the session was taken over: {error}")
        self.cancel()

    # The loop

    async def _until_the_end(self) -> Ending:
        restored = False
        while True:
            try:
                ending = await self._step_in_time()
            except DamagedError as error:
                if restored or not self._restore(error):
                    raise
                restored = True
                continue
            if ending is not None:
                return ending
            self._checkpoint()
            if self._wanted_to_end:
                return Ending("cancelled", "it was cancelled; run it again to go on")

    async def _step_in_time(self) -> Ending | None:
        """One step, of which nothing goes on when the time of the task is up."""
        state, most = self._session.state.value, most_seconds(self._session.state.value)
        left = most - self._spending.used().seconds if most is not None else 0.0
        # Where nothing is left, nothing is begun: calls that wait are refused, with their reason.
        with anyio.move_on_after(left if left > 0 else None) as scope:
            return await self._step()
        assert scope.cancelled_caught
        assert most is not None
        return Ending("limit", passed_limit(state, seconds=most, turns=0, max_turns=1))

    async def _step(self) -> Ending | None:
        """One step; an ending when it was the last."""
        self._session.refresh()
        self._look_where_we_are()
        waiting = self._session.open_calls()
        if waiting:
            return await self._run_calls(waiting)
        state = self._session.state.value
        if state.runtime.phase not in self._setup.phases:
            return self._ended(state)
        last = last_of(self._session)
        if last is not None and last.role == "assistant" and last.metadata.get(STOP_REASON) not in PAUSED:
            if why := refusal(last):
                return self._refused(why, last.text)
            if said := nudge(last):
                return self._nudged(said)
            self._text = last.text
            return await self._go_on(state, last.text)
        used = self._spending.used()
        limit = passed_limit(state, seconds=used.seconds, turns=self._turns, max_turns=self._setup.max_turns)
        if limit:
            return Ending("limit", limit)
        await self._ask()
        return None

    async def _run_calls(self, waiting: Sequence[tuple[str, ToolUse]]) -> Ending | None:
        try:
            ran = await self._calls.answer(waiting, self._spending.used, self._finish)
        except LedElsewhereError:
            self._note("the session was led elsewhere while calls ran; their results were left out")
            return None
        self._tool_calls += sum(each.ran for each in ran)
        if self._finished is not None and not self._finished.text:
            return self._ended(self._session.state.value, self._missing)
        times = self._circles.see(ran)
        if times >= STUCK_AFTER:
            names = ", ".join(dict.fromkeys(each.call.name for each in ran))
            return Ending("stuck", f"the model did the same {times} times in a row ({names}); give it another hint")
        if times >= WARN_AFTER:
            say(self._session, REPEATED.format(times=times))
        return None

    async def _ask(self) -> None:
        model = self._setup.model

        async def compose() -> Payload:
            state = self._session.state.value
            payload = await self._session.compose(
                system=self._setup.system(state),
                tools=self._showing.tools(state),
                format=model.format,
                max_output=self._setup.max_output or None,
                params=stated(model, self._setup.max_output),
            )
            self._at = self._session.items()[-1].last
            return payload

        def reduce() -> None:
            state = self._session.state.value
            self._session.reduce(
                system=self._setup.system(state), tools=self._showing.tools(state), format=model.format, to=FORCED
            )

        heard = await self._asking.ask(compose, reduce, self._setup.max_output)
        self._record(heard)

    def _record(self, heard: Heard) -> None:
        self._turns += 1
        self._finished = None
        answer, reply = heard.answer, heard.reply
        spent = Set("runtime.resources", self._spending.used(reply))
        self._session.refresh()
        if self._is_elsewhere():
            self._session.state.patch(spent)
            self._note("the session was led elsewhere while the model answered; its answer was left out")
            return
        metadata: dict[str, Any] = {STOP_REASON: reply.stop_reason} if reply.stop_reason else {}
        if answer.partial:
            metadata[PARTIAL] = True
        self._session.add(
            answer.body,
            format=self._setup.model.format,
            metadata=metadata,
            state=[spent],
        )
        self._text = reply.message.text or self._text
        self._tell(Event(kind="answer", text=reply.message.text, data={"calls": len(reply.message.calls)}))

    async def _go_on(self, state: State, text: str) -> Ending | None:
        """The model has answered without a call: the next phase, or the end."""
        self._nudges = 0
        self._circles.forget()
        checked = state.runtime.phase != "planning"
        missing = await unmet(state.task, self._setup.validators, text) if checked else []
        following = after(state, self._setup.phases, self._road, missing)
        self._count(state, following)
        changes = [Set("runtime.phase", phase) for phase in way(state, following)]
        if not following.text:
            self._session.state.patch(*changes, reason="; ".join(missing))
            return self._ended(self._session.state.value, missing)
        say(self._session, following.text, changes)
        self._tell(Event(kind="phase", text=following.phase))
        return None

    async def _finish(self, wish: Finish) -> tuple[str, list[Change]]:
        """The model says that it is done, or what is missing."""
        state = self._session.state.value
        missing = [] if wish.done else list(wish.missing) or [wish.result]
        if wish.done:
            missing = await unmet(state.task, self._setup.validators, wish.result)
        following = again(self._road, missing) if missing else verified(state, self._setup.phases)
        self._count(state, following)
        self._finished, self._missing = following, missing
        if following.text and following.phase != state.runtime.phase:
            self._tell(Event(kind="phase", text=following.phase))
        if not following.text:
            self._text = wish.result
        changes: list[Change] = [Set("runtime.phase", phase) for phase in way(state, following)]
        return following.text or ("Done." if following.phase == "completed" else "Given up."), changes

    def _count(self, state: State, following: Next) -> None:
        road = self._road
        if following.phase == "reflecting":
            road.reflections += 1
            road.judged = sum(1 + failure.retries for failure in state.runtime.failures)
        elif following.phase == "executing" and state.runtime.phase != "planning":
            road.rounds += 1

    def _nudged(self, said: str) -> Ending | None:
        self._nudges += 1
        if self._nudges > MOST_NUDGES:
            return Ending("failed", f"the model gave no usable answer {self._nudges} times in a row")
        self._note(said)
        say(self._session, said)
        return None

    def _refused(self, why: str, text: str) -> Ending | None:
        """It is asked once more in another run, which may be another model's."""
        if not self._turns:
            return self._nudged(DECLINED)
        said = f": {text}" if text else ""
        return Ending("failed", f"the model declined to answer ({why}){said}; ask in other words, or another model")

    # The session

    def _is_elsewhere(self) -> bool:
        """Whether somebody led the session away from where this run last saw it."""
        return bool(self._at) and self._session.view.cover(self._at) is None

    def _look_where_we_are(self) -> None:
        """Know where the session stands; on another branch, which calls of it were run before."""
        if self._is_elsewhere():
            self._calls.look_around()
        items = self._session.items()
        self._at = items[-1].last if items else 0

    def _checkpoint(self) -> None:
        rule = self._setup.checkpoints
        try:
            made = None if rule is None else self._session.checkpoint_if_due(rule, snapshots=self._setup.snapshots)
        except (WindowsillError, OSError) as error:
            # What was done is in the journal; a run must not end for want of a name for it.
            if (said := f"no checkpoint was made: {error}") not in self._notes:
                self._note(said)
            return
        if made is not None:
            self._tell(Event(kind="checkpoint", text=made.id, data={"reason": made.reason}))

    def _restore(self, error: DamagedError) -> bool:
        """Go back to the last checkpoint whose state can be read; whether there is one."""
        for checkpoint in self._session.checkpoints(None):
            try:
                self._session.restore(checkpoint.id)
                _ = self._session.state.value
            except DamagedError:
                continue
            self._calls.look_around()
            self._tell(Event(kind="restored", text=f"{error}; went back to checkpoint {checkpoint.id}"))
            return True
        return False

    # Telling

    def _tell(self, event: Event) -> None:
        if event.kind in ("retry", "reduced", "restored", "warning"):
            self._note(event.text)
        self._hear(event)

    def _note(self, text: str) -> None:
        self._notes.append(text)

    def _ended(self, state: State, missing: Sequence[str] = ()) -> Ending:
        phase = state.runtime.phase
        if phase == "completed":
            return Ending("completed")
        if phase != "failed":
            return Ending("failed", f"somebody led the task to the phase {phase}, which this engine does not work in")
        why = "; ".join(missing) or "its success criteria were not met"
        return Ending("failed", f"the task failed: {why}")

    def _result(self, ending: Ending) -> Result:
        state = State()
        try:
            state = self._session.state.value
            if ending.error and ending.status != "cancelled":
                self._session.state.patch(
                    Put("runtime.execution.errors", Trouble(message=ending.error)),
                    Set("runtime.resources", self._spending.used()),
                )
                state = self._session.state.value
        except Exception as error:  # noqa: BLE001 - a store may raise anything; the result is told all the same
            self._note(f"the end was not recorded: {error}")
        return Result(
            status=ending.status,
            text=self._text,
            error=ending.error,
            phase=state.runtime.phase,
            turns=self._turns,
            tool_calls=self._tool_calls,
            used=state.runtime.resources,
            seconds=self._spending.seconds,
            tool_changes=tuple(self._showing.changes),
            notes=tuple(self._notes),
        )


def _failed(error: Exception) -> Ending:
    if isinstance(error, ModelError):
        return Ending("failed", f"the model gave no answer ({error.kind}): {error}")
    return Ending("failed", str(error) if isinstance(error, WindowsillError) else f"{type(error).__name__}: {error}")
