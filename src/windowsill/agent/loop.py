"""One run of a task. What to do next is read from the session alone.

Calls without results are run, an answer without calls ends a phase, anything else is asked: so a run that was killed
between any two steps goes on where it was.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import anyio
import msgspec

from windowsill import providers, telemetry
from windowsill.agent.calls import CallRunner, LedElsewhereError, ReadyCall
from windowsill.agent.knowledge import (
    MAX_GOAL_CHARACTERS,
    TASK_PATHS,
    goal_of,
    load_knowledge,
    role_changes,
    task_changes,
)
from windowsill.agent.limits import (
    MALFORMED,
    EngineSettings,
    RepeatDetector,
    UsageMeter,
    max_seconds,
    reached_limit,
)
from windowsill.agent.models import Answer, Delta, ModelError, ModelRequest
from windowsill.agent.models.base import request_fields
from windowsill.agent.observations import expired, observe_draft, observe_folds, observe_turn
from windowsill.agent.phases import (
    NextPhase,
    PhaseCounts,
    back_to_work,
    first_phase,
    is_answer,
    next_phase,
    phases_until,
    verify_or_end,
)
from windowsill.agent.result import Event, EventKind, EventLog, Result, Status
from windowsill.agent.tools import Outcome, refuse
from windowsill.agent.toolset import FINISH, Finish, changes_of, is_own, read_own_call
from windowsill.agent.verification import (
    Claim,
    Judgement,
    check_output_schema,
    check_validators,
    judge,
    results_in_view,
)
from windowsill.compose import Payload
from windowsill.errors import DamagedError, FormatError, InputError, WindowsillError
from windowsill.messages import ORIGIN, Message, Origin, Reply, Text, Tool, ToolUse, Unknown, text_message
from windowsill.models import prices
from windowsill.providers import stop_kind
from windowsill.providers.faults import refuses_reasoning
from windowsill.providers.streams import PARTIAL
from windowsill.session.audit import open_calls, record_tools, run_key
from windowsill.session.session import Session
from windowsill.state.changes import Change, Put, Set
from windowsill.state.layers import Criterion, State, System, Trouble
from windowsill.state.tools import ToolChange, ToolSelection

STOP_REASON = "stop_reason"
"""The key in a message's metadata that says why it ended."""

BROKEN = "[engine] Your last answer broke off before its end. Go on from there, or say it again."
CUT = "[engine] Your last answer reached the limit of its length. Go on exactly where it ends."
EMPTY = "[engine] Your last answer was empty. Go on with the task, or give the result."
DECLINED = "[engine] Your last answer was declined. Go on with the task, in another way if need be."
REPEATED = (
    "[engine] This is the {times}. time in a row that you do this, with the same result. Do something else, or finish "
    "and say what keeps you from going on."
)


class Ending(msgspec.Struct, frozen=True):
    """The status with which a run is over, and why."""

    status: Status
    error: str = ""


ENDED = ("completed", "failed")
ENDS = {"completed": "Done.", "failed": "Given up."}

CANCELLED = Ending("cancelled", "it was cancelled; run it again to go on")


class Loop:
    """Runs the task of one session, from wherever it stands."""

    def __init__(self, session: Session, settings: EngineSettings, events: EventLog) -> None:
        self._session = session
        self._settings = settings
        self._events = events
        self._meter = UsageMeter(session, settings.model)
        self._calls = CallRunner(session, settings, self._meter, events)
        tuning = settings.tuning
        self._repeats = RepeatDetector(tuning.stuck_after)
        self._phase_counts = PhaseCounts(tuning.reflections, tuning.rounds, tuning.unproven)
        self._turns = self._tool_calls = self._nudges = 0
        self._cost_before = 0.0
        self._system: System | None = None
        self._at = 0
        self._text = ""
        self._finished: NextPhase | None = None
        self._missing: Sequence[str] = ()
        self._system_text: tuple[System | None, str] = (None, "")
        self._selected: ToolSelection | None = None
        self._tool_changes: list[ToolChange] = []
        self._cancelled = False
        self._thread = threading.get_ident()
        self._scope = anyio.CancelScope()

    async def run(self, task: str | None, criteria: Sequence[str | Criterion], id: str = "") -> Result:
        """Run a task, or the one that was interrupted, and return how it ended; raise `InputError` without either."""
        ending = CANCELLED
        try:
            self._begin_or_restore(task, criteria, id)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - a store may raise anything; the caller gets a result
            return self._result(_failure(error))
        for warning in self._settings.warnings:
            self._emit("warning", warning)
        with self._scope:
            try:
                ending = await self._run_steps()
            except Exception as error:  # noqa: BLE001 - a store or a model may raise anything; the caller gets a result
                ending = _failure(error)
        return self._result(ending)

    def cancel(self) -> None:
        """End the run: at once from the thread that runs it, else after the step at hand."""
        self._cancelled = True
        if self._thread == threading.get_ident():
            self._scope.cancel()

    def lose_session(self, error: WindowsillError) -> None:
        """End the run because somebody else works on the session."""
        self._events.note(f"the session was taken over: {error}")
        self.cancel()

    # The beginning

    def _begin_or_restore(self, task: str | None, criteria: Sequence[str | Criterion], id: str) -> None:
        try:
            self._begin(task, criteria, id)
        except DamagedError as error:
            if not self._restore(error):
                raise
            self._begin(task, criteria, id)

    def _begin(self, task: str | None, criteria: Sequence[str | Criterion], id: str) -> None:
        """Take a task in, or take up the one that was interrupted; raise `InputError` when there is neither."""
        self._session.journal.refresh()
        self._calls.find_earlier_runs()
        self._prepare_state()
        state = self._session.state.value
        self._system = state.system
        self._calls.enforce(state.system)
        unfinished = state.runtime.phase in self._settings.phases
        if task is not None and not task.strip():
            raise InputError("the task is empty", remedy="say what is to be done, or leave it out to go on")
        known = bool(id) and self._session.journal.store.find(self._session.id, id) is not None
        if (known or (id and task is None)) and state.runtime.phase in ENDED:
            # The task of this id ended already: the first step finds that, and says how.
            self._text = self._find_last_text()
            return
        if known:
            task = None
        if task is None and not unfinished:
            raise InputError("there is no task to go on with", remedy="give one")
        check_output_schema(state.task)
        self._meter.begin(state.runtime.resources.seconds if unfinished else 0.0)
        self._cost_before = state.runtime.resources.cost if unfinished else 0.0
        if name := self._meter.unpriced_model(state):
            self._emit("warning", f"nobody knows what {name!r} costs: the limit of cost does not hold")
        if unfinished and (task is None or (not id and goal_of(task) == state.task.goal)):
            check_validators(state.task.success_criteria, self._settings.validators)
            self._repeat_first_instruction(state)
            return
        assert task is not None
        if waiting := open_calls(self._session.journal):
            self._calls.close(waiting)
        if unfinished:
            self._session.add(task, id=id)
        else:
            self._take_task(task, criteria, state, id)

    def _prepare_state(self) -> None:
        """Bring in the role, and the user's preferences, skills and templates; let go of what is kept no longer."""
        state = self._session.state.value
        changes = [
            *role_changes(self._settings.role, self._settings.policies, state.system),
            *load_knowledge(self._settings.knowledge, state),
            *expired(state, self._session.journal.clock()),
        ]
        if changes:
            self._session.state.patch(*changes, reason="a run begins")

    def _take_task(self, task: str, criteria: Sequence[str | Criterion], state: State, id: str) -> None:
        start = self._first_phase()
        # What somebody set since the last task ended is for this one; the rest was for that one.
        stated = self._session.state.changed_since_phase()
        left = [path for path in TASK_PATHS if path not in stated] if state.runtime.phase in ENDED else []
        judged, changes = task_changes(task, criteria, state, left)
        changes.append(Set("runtime.phase", start.phase))
        self._session.state.check(changes)
        check_validators(judged, self._settings.validators)
        self._session.add(task, id=id, state=lambda entry: [*changes, *observe_turn("user", task, entry)])
        if start.text:
            self._tell_model(start.text)
        self._emit("phase", start.phase)

    def _repeat_first_instruction(self, state: State) -> None:
        """Add the instruction of the first phase, where the process ended between it and the task."""
        last, start = self._last_message(), self._first_phase()
        is_task = last is not None and last.role == "user" and not last.results and ORIGIN not in last.metadata
        if is_task and start.text and state.runtime.phase == start.phase:
            self._tell_model(start.text)

    def _first_phase(self) -> NextPhase:
        return first_phase(self._settings.phases, own_tools=self._settings.toolset.has_own)

    # The loop

    async def _run_steps(self) -> Ending:
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
            if self._cancelled:
                return CANCELLED

    async def _step_in_time(self) -> Ending | None:
        """Do one step, and stop everything in it when the time of the task is up."""
        state = self._state()
        most, run = max_seconds(state), self._settings.limits.max_seconds
        ends = [most - self._meter.used().seconds] if most is not None else []
        ends += [run - self._meter.seconds] if run is not None else []
        # Where nothing is left, nothing is begun: calls that wait are refused, with their reason.
        with anyio.move_on_after(min((left for left in ends if left > 0), default=None)) as scope:
            return await self._step()
        assert scope.cancelled_caught
        return Ending("limit", reached_limit(state, seconds=self._meter.used().seconds) or self._run_limit(late=True))

    def _run_limit(self, *, calls: int = 0, late: bool = False) -> str:
        """Describe the limit of this run that is reached, with `calls` more than were counted; empty when none is."""
        limits, used = self._settings.limits, self._meter.used()
        seconds = max(self._meter.seconds, limits.max_seconds or 0.0) if late else self._meter.seconds
        calls, cost = self._tool_calls + calls, used.cost - self._cost_before
        return limits.reached(turns=self._turns, tool_calls=calls, seconds=seconds, cost=cost)

    def _state(self) -> State:
        """Return the state with the first layer as the run found it: nothing in a run changes the rules for it."""
        state = self._session.state.value
        if self._system is None or state.system == self._system:
            return state
        self._events.note("the first layer was changed during the run: that holds from the next run on", once=True)
        return msgspec.structs.replace(state, system=self._system)

    async def _step(self) -> Ending | None:
        """Do one step; return an ending when it was the last."""
        self._session.journal.refresh()
        self._find_position()
        if waiting := open_calls(self._session.journal):
            if limit := self._run_limit():
                return Ending("limit", limit)
            return await self._run_calls(waiting)
        state = self._state()
        if state.runtime.phase not in self._settings.phases:
            return _ended(state)
        last = self._last_message()
        if last is not None and last.role == "assistant" and stop_kind(last.metadata.get(STOP_REASON)) != "paused":
            if why := _refusal(last):
                return self._give_up_refused(why, last.text)
            if text := _nudge(last):
                return self._nudge_model(text)
            self._text = last.text
            return await self._end_phase(state, last.text)
        if limit := self._run_limit() or reached_limit(state, seconds=self._meter.used().seconds):
            return Ending("limit", limit)
        await self._ask_model()
        return None

    # Calls

    async def _run_calls(self, waiting: Sequence[tuple[str, ToolUse]]) -> Ending | None:
        try:
            outcomes = await self._answer_calls(waiting)
        except LedElsewhereError:
            self._events.note("the session was led elsewhere while calls ran; their results were left out")
            return None
        self._tool_calls += sum(each.ran for each in outcomes)
        if self._finished is not None and not self._finished.text:
            return self._end(self._missing)
        times = self._repeats.add(outcomes)
        if times >= self._settings.tuning.stuck_after:
            tools = ", ".join(dict.fromkeys(each.call.name for each in outcomes))
            return Ending("stuck", f"the model did the same {times} times in a row ({tools}); give it another hint")
        if times >= self._settings.tuning.warn_after:
            self._tell_model(REPEATED.format(times=times))
        return None

    async def _answer_calls(self, waiting: Sequence[tuple[str, ToolUse]]) -> list[Outcome]:
        """Answer calls in their order, neighbours that may run together at once; each result is recorded."""
        calls = self._calls
        calls.start()
        outcomes: list[Outcome] = []
        group: list[ReadyCall] = []
        for number, (message, call) in enumerate(waiting):
            if self._run_limit(calls=len(group) + sum(each.ran for each in outcomes)):
                # The others wait for the next run.
                break
            if not calls.may_join(group, call):
                # What a call may do is judged, and somebody asked, when what comes before it is done.
                outcomes += await calls.run(group)
                group = []
            judged = await calls.judge(message, call, number=number, running=len(group))
            if isinstance(judged, ReadyCall) and not is_own(judged.tool):
                group.append(judged)
                continue
            outcomes += await calls.run(group)
            group = []
            if isinstance(judged, ReadyCall):
                outcome, changes = await self._answer_own_call(judged)
            else:
                outcome, changes = judged, []
                self._emit("tool_refused", judged.text, tool=call.name)
            calls.record([(run_key(message, call.id), outcome)], changes)
            outcomes.append(outcome)
        return [*outcomes, *await calls.run(group)]

    async def _answer_own_call(self, ready: ReadyCall) -> tuple[Outcome, list[Change]]:
        """Return the outcome of a call of one of the engine's own tools, and its changes of the state."""
        try:
            wanted = read_own_call(ready.tool.name, ready.arguments)
            if isinstance(wanted, Finish):
                changes, reply = await self._finish(wanted)
            else:
                changes, reply = changes_of(wanted, self._session.state.value, ready.call.id, self._at)
            self._session.state.check(changes)
        except (InputError, msgspec.ValidationError) as error:
            return refuse(ready.call, f"Error: {error}"), []
        return Outcome(call=ready.call, blocks=(Text(text=reply),), ran=False), changes

    async def _finish(self, wanted: Finish) -> tuple[list[Change], str]:
        """Take the model's word that it is done, or what is missing."""
        state = self._session.state.value
        judged = await self._judge(state, wanted.result, wanted.criteria)
        if wanted.done:
            missing = judged.missing
            following = verify_or_end(state, self._settings.phases, self._phase_counts, missing, judged.unknown)
        else:
            missing = list(wanted.missing) or [wanted.result]
            following = back_to_work(self._phase_counts, missing)
        self._phase_counts.count(state, following)
        self._finished, self._missing = following, missing
        if following.text and following.phase != state.runtime.phase:
            self._emit("phase", following.phase)
        if not following.text:
            self._text = wanted.result
        reply = following.text or ENDS.get(following.phase, "Not verified.")
        changes = judged.changes(state.task)
        return [*changes, *(Set("runtime.phase", phase) for phase in phases_until(state, following))], reply

    async def _judge(self, state: State, result: str, claims: Sequence[Claim] = ()) -> Judgement:
        """Judge the criteria of the task and the form of its result."""
        category = self._settings.toolset.evidence_category
        results = results_in_view(self._session, state.task.goal[:MAX_GOAL_CHARACTERS], category) if claims else []
        return await judge(state.task, self._settings.validators, result, claims, results)

    # Answers

    async def _end_phase(self, state: State, text: str) -> Ending | None:
        """Go to the next phase, or to the end: the model has answered without a call."""
        self._nudges = 0
        self._repeats.reset()
        checked = state.runtime.phase != "planning" or is_answer(state)
        judged = await self._judge(state, text) if checked else Judgement()
        missing = judged.missing
        following = next_phase(state, self._settings.phases, self._phase_counts, missing, judged.unknown)
        self._phase_counts.count(state, following)
        entered = (Set("runtime.phase", phase) for phase in phases_until(state, following))
        changes = [*judged.changes(state.task), *entered]
        if checked and following.text:
            changes.append(observe_draft(state, text, self._at))
        if not following.text:
            self._session.state.patch(*changes, reason="; ".join(missing))
            return self._end(missing)
        self._tell_model(following.text, changes)
        self._emit("phase", following.phase)
        return None

    def _nudge_model(self, text: str) -> Ending | None:
        self._nudges += 1
        if self._nudges > self._settings.tuning.nudges:
            return Ending("failed", f"the model gave no usable answer {self._nudges} times in a row")
        self._events.note(text)
        self._tell_model(text)
        return None

    def _give_up_refused(self, why: str, text: str) -> Ending | None:
        """End the run; a refusal of an earlier run is asked once more, perhaps another model."""
        if not self._turns:
            return self._nudge_model(DECLINED)
        words = f": {text}" if text else ""
        return Ending("failed", f"the model declined to answer ({why}){words}; ask in other words, or another model")

    # The model

    async def _ask_model(self) -> None:
        """Ask the model and record its answer; get over an overflow once, and over faults that may pass."""
        attempt, reduced, unreasoned = 0, False, False
        while True:
            payload = await self._compose()
            try:
                answer, reply = await self._call_model(payload)
                break
            except ModelError as error:
                if error.kind == "refused" and not unreasoned and refuses_reasoning(error.provider_message):
                    unreasoned = True
                    self._session.composer.drop_reasoning()
                    self._emit("retry", f"sent again without reasoning: {error}")
                    continue
                if error.kind == "overflow" and not reduced:
                    reduced = True
                    await self._reduce(error, payload)
                    continue
                pause = self._settings.retry.pause(attempt, error.retry_after, self._settings.random)
                malformed = error.kind == "malformed"
                if pause is None or not (error.passing or malformed) or (malformed and attempt >= MALFORMED):
                    raise
                attempt += 1
                self._emit("retry", f"{error.kind}: {error}", pause=round(pause, 3))
                await self._settings.sleep(pause)
        self._record(answer, reply)

    async def _compose(self) -> Payload:
        state, settings = self._state(), self._settings
        payload = await self._session.compose(
            system=self._system_prompt(state),
            tools=self._select_tools(state),
            format=settings.model.format,
            max_output=settings.max_output or None,
            params=request_fields(settings.model, settings.max_output),
        )
        self._at = self._session.view.items[-1].last
        if kept := observe_folds(payload.folds, self._session.view):
            self._session.state.patch(*kept, reason="folds were written")
        for fold in payload.folds:
            facts = {"id": fold.id, "strategy": fold.strategy, "before": fold.before, "after": fold.after}
            self._emit("folded", fold.reason, **facts)
        self._emit("request", tokens=payload.tokens)
        return payload

    async def _reduce(self, error: ModelError, payload: Payload) -> None:
        """Learn the window from an overflow and reduce the history by force."""
        self._session.composer.overflowed(error.provider_message or str(error), sent=payload.tokens)
        state = self._state()
        await self._session.reduce(
            format=self._settings.model.format or None,
            system=self._system_prompt(state),
            tools=self._select_tools(state),
            to=self._settings.tuning.forced,
        )
        self._emit("reduced", f"the model's window was passed: {error}")

    async def _call_model(self, payload: Payload) -> tuple[Answer, Reply]:
        model = self._settings.model
        span = telemetry.model_call(
            model.name or None,
            provider=model.format,
            session=self._session.id,
            operation=providers.get(model.format).spec.operation,
            compacted=payload.compacted,
        )

        def listen(delta: Delta) -> None:
            span.record_first_chunk()
            self._events.emit(Event(kind=delta.kind, text=delta.text))

        with span:
            if span.wants_content:
                sent = providers.read_request(payload.body(), format=model.format)
                span.record_request(sent.messages, sent.system)
            answer = await model.ask(ModelRequest(payload=payload, max_output=self._settings.max_output), listen)
            try:
                reply = providers.get(model.format).read_reply(answer.body)
            except FormatError as error:
                raise ModelError(
                    "malformed", f"the answer cannot be read: {error}", remedy="see what it sends"
                ) from error
            span.record_answer(
                reply.usage,
                model=reply.model,
                finish=reply.stop_reason,
                messages=(reply.message, *reply.more) if span.wants_content else (),
            )
        return answer, reply

    def _record(self, answer: Answer, reply: Reply) -> None:
        self._turns += 1
        self._finished = None
        spent = Set("runtime.resources", self._meter.used(reply))
        self._session.journal.refresh()
        if self._was_led_elsewhere():
            self._session.state.patch(spent)
            self._events.note("the session was led elsewhere while the model answered; its answer was left out")
            return
        metadata: dict[str, Any] = {STOP_REASON: reply.stop_reason} if reply.stop_reason else {}
        if answer.partial:
            metadata[PARTIAL] = True
        self._session.add(
            answer.body,
            format=self._settings.model.format,
            metadata=metadata,
            state=lambda entry: [spent, *observe_turn("assistant", reply.message.text, entry)],
        )
        self._text = reply.message.text or self._text
        self._emit("answer", reply.message.text, calls=len(reply.message.calls))

    def _system_prompt(self, state: State) -> str:
        """Return the caller's prompt with role and policies of the state: the same text while these stay the same."""
        if self._system_text[0] != state.system:
            self._system_text = (state.system, self._session.composer.step.state_messages.system_text(state))
        system, text = self._settings.system, self._system_text[1]
        return f"{system}\n\n{text}" if system and text else system or text

    def _select_tools(self, state: State) -> tuple[Tool, ...]:
        """Return the tools of a request; record a selection that differs from the one before."""
        current = self._settings.toolset.project(state)
        selected = current.selected
        before, self._selected = self._selected, selected
        if before is None or before.decision != selected.decision:
            if state.system.audit.log_decisions:
                record_tools(self._session.journal, selected.decision)
            # The definitions that are always there come first, and stay in the cache.
            cached = max(0, self._session.composer.fill[0] - current.always.tokens) if before is not None else 0
            change = selected.change(before, cached_tokens=cached, prices=prices(self._session.model))
            self._tool_changes.append(change)
            facts = {"decided": msgspec.to_builtins(selected.decision), "cost": msgspec.to_builtins(change)}
            self._emit("tools_shown", ", ".join(selected.names), **facts)
        return current.tools

    # The session

    def _find_last_text(self) -> str:
        """Return the result that a task ended with: what the model finished it with, else its last words."""
        view = self._session.view
        for message in map(view.read, reversed(view.items)):
            if message.role == "assistant":
                results = (call.input.get("result") for call in message.calls if call.name == FINISH)
                return str(next(results, None) or message.text)
        return ""

    def _last_message(self) -> Message | None:
        items = self._session.view.items
        return self._session.view.read(items[-1]) if items else None

    def _tell_model(self, text: str, changes: Sequence[Change] = ()) -> None:
        """Add a message of the engine, and change the state in the same commit."""
        self._session.add(text_message("user", text, metadata={ORIGIN: Origin.ENGINE}), state=changes)

    def _was_led_elsewhere(self) -> bool:
        """Tell whether somebody led the session away from where this run last saw it."""
        return bool(self._at) and self._session.view.cover(self._at) is None

    def _find_position(self) -> None:
        """Note where the session stands; on another branch, which of its calls were run before."""
        if self._was_led_elsewhere():
            self._calls.find_earlier_runs()
        items = self._session.view.items
        self._at = items[-1].last if items else 0

    def _checkpoint(self) -> None:
        rule = self._settings.checkpoints
        if rule is None:
            return
        try:
            made = self._session.checkpoints.make_if_due(rule, snapshots=self._settings.snapshots)
        except (WindowsillError, OSError) as error:
            # What was done is in the journal; a run must not end for want of a name for it.
            self._events.note(f"no checkpoint was made: {error}", once=True)
            return
        if made is not None:
            self._emit("checkpoint", made.id, reason=made.reason)

    def _restore(self, error: DamagedError) -> bool:
        """Go back to the last checkpoint whose state can be read; tell whether there is one."""
        for checkpoint in self._session.checkpoints(None):
            try:
                self._session.restore(checkpoint.id)
                _ = self._session.state.value
            except DamagedError:
                continue
            self._calls.find_earlier_runs()
            self._emit("restored", f"{error}; went back to checkpoint {checkpoint.id}")
            return True
        return False

    # Events and the result

    def _emit(self, kind: EventKind, text: str = "", **data: Any) -> None:
        self._events.emit(Event(kind=kind, text=text, data=data))

    def _end(self, missing: Sequence[str]) -> Ending:
        """Return how a task that needs no further answer has ended."""
        state = self._session.state.value
        unknown = [each.description for each in state.task.success_criteria if each.status == "unknown"]
        if state.runtime.phase in self._settings.phases and unknown:
            words = "; ".join(unknown)
            remedy = "give tools that read or test, or validators=, and run it again"
            return Ending("unverified", f"nothing has shown that this holds: {words}; {remedy}")
        return _ended(state, missing)

    def _result(self, ending: Ending) -> Result:
        state = State()
        try:
            state = self._session.state.value
            if ending.error and ending.status != "cancelled":
                self._session.state.patch(
                    Put("runtime.execution.errors", Trouble(message=ending.error)),
                    Set("runtime.resources", self._meter.used()),
                )
                state = self._session.state.value
        except Exception as error:  # noqa: BLE001 - a store may raise anything; the caller gets a result all the same
            self._events.note(f"the end was not recorded: {error}")
        return Result(
            status=ending.status,
            text=self._text,
            error=ending.error,
            phase=state.runtime.phase,
            criteria=state.task.success_criteria,
            turns=self._turns,
            tool_calls=self._tool_calls,
            used=state.runtime.resources,
            seconds=self._meter.seconds,
            tool_changes=tuple(self._tool_changes),
            notes=tuple(self._events.notes),
        )


def _nudge(last: Message) -> str:
    """Return the instruction that follows an answer that broke off, was cut or is empty; empty for a real answer."""
    if PARTIAL in last.metadata:
        return BROKEN
    if stop_kind(last.metadata.get(STOP_REASON)) == "length":
        return CUT
    return "" if last.text.strip() else EMPTY


def _refusal(last: Message) -> str:
    """Return why the model, or its provider, would not answer; empty when it did."""
    stop = last.metadata.get(STOP_REASON)
    if stop_kind(stop) == "refused":
        return str(stop)
    return "refusal" if any(isinstance(block, Unknown) and block.type == "refusal" for block in last.blocks) else ""


def _ended(state: State, missing: Sequence[str] = ()) -> Ending:
    phase = state.runtime.phase
    if phase == "completed":
        return Ending("completed")
    if phase != "failed":
        return Ending("failed", f"somebody led the task to the phase {phase}, which this engine does not work in")
    why = "; ".join(missing) or "its success criteria were not met"
    return Ending("failed", f"the task failed: {why}")


def _failure(error: Exception) -> Ending:
    if isinstance(error, ModelError):
        return Ending("failed", f"the model gave no answer ({error.kind}): {error}")
    return Ending("failed", str(error) if isinstance(error, WindowsillError) else f"{type(error).__name__}: {error}")
