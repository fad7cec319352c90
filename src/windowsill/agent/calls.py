"""Answer the calls of one reply: run what may run, refuse the rest with its reason, and record each result.

Before a tool with side effects runs, the journal says that it begins. So after a crash nothing of the kind is run twice
without the model being told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio
import msgspec

from windowsill import telemetry
from windowsill.agent.limits import EngineSettings, UsageMeter
from windowsill.agent.observations import observe_call
from windowsill.agent.result import Event, EventLog
from windowsill.agent.tools import EngineTool, Outcome, refuse, run
from windowsill.agent.toolset import is_own
from windowsill.messages import Block, Message, OutputRef, Text, ToolResult, ToolUse, json_value
from windowsill.providers.streams import PARTIAL
from windowsill.session.audit import RUNS, begun_calls, open_calls, run_key
from windowsill.session.session import Session
from windowsill.state.changes import LATEST, Change, Drop, Put, Set
from windowsill.state.layers import Resources, System, ToolRun
from windowsill.state.policies import Guard
from windowsill.state.session_state import count_failure

HUGE = 1_000_000
"""Characters of an output that no window has room for: to count its tokens alone would take a while."""

MAX_NOTE_CHARACTERS = 200
"""Characters of a result that the state keeps; the history has it whole."""

INTERRUPTED = (
    "Error: the program was interrupted while this ran. It may have taken effect, in part or whole: look before you "
    "do it again."
)
WENT_BACK = (
    "Error: this was run before the session went back to this point, and may have taken effect: look before you do it "
    "again."
)
CANCELLED = "Error: this was cancelled while it ran. It may have taken effect, in part or whole."
NOT_RUN = "Error: this was not run, because the user said something first."
BROKEN_CALL = "Error: the answer broke off in this call, so it was not run. Make it again."
TOO_MANY = "Error: this was not run: one answer may hold at most {most} calls."


class LedElsewhereError(Exception):
    """Somebody led the session to another branch while calls of this one ran."""


class ReadyCall(msgspec.Struct, frozen=True):
    """A call that may run."""

    key: str
    call: ToolUse
    tool: EngineTool
    arguments: dict[str, Any]


class CallRunner:
    """Judges, runs and records the calls of one session's model."""

    def __init__(self, session: Session, settings: EngineSettings, meter: UsageMeter, events: EventLog) -> None:
        self._session = session
        self._settings = settings
        self._meter = meter
        self._events = events
        self._run_elsewhere: set[str] = set()
        self._at = 0
        self._system = System()

    def enforce(self, system: System) -> None:
        """Enforce the first layer as it is now, whatever happens to it in the run."""
        self._system = system

    def start(self) -> None:
        """Remember the place of the session: results are recorded only while it stays on this branch."""
        self._at = self._session.view.items[-1].last

    def find_earlier_runs(self) -> None:
        """Find the open calls that were run before the session came here, by a run that was killed or left."""
        waiting = open_calls(self._session.journal)
        begun = {id: begun_calls(self._session.journal, id) for id in dict.fromkeys(message for message, _ in waiting)}
        self._run_elsewhere = {run_key(message, call.id) for message, call in waiting if call.id in begun[message]}

    def close(self, waiting: Sequence[tuple[str, ToolUse]]) -> None:
        """Record a result for calls that nobody will run any more."""
        begun = self._begun()
        self.start()
        for message, call in waiting:
            key = run_key(message, call.id)
            self.record([(key, refuse(call, INTERRUPTED if key in begun else NOT_RUN))])

    # Judging

    def may_join(self, group: Sequence[ReadyCall], call: ToolUse) -> bool:
        """Tell whether a call may run at the same time as the calls before it."""
        tool = self._settings.toolset.get(call.name)
        return not group or (group[-1].tool.parallel and tool is not None and tool.parallel)

    async def judge(self, message: str, call: ToolUse, *, number: int, running: int) -> ReadyCall | Outcome:
        """Return a call that may run, or the outcome of one that is refused.

        `number` is the place of the call in its answer, `running` how many calls are about to run beside it.
        """
        if number >= LATEST:
            return refuse(call, TOO_MANY.format(most=LATEST))
        key = run_key(message, call.id)
        tool = self._settings.toolset.get(call.name)
        if tool is None or not tool.repeatable:
            if key in self._begun():
                return refuse(call, INTERRUPTED)
            if key in self._run_elsewhere:
                return refuse(call, WENT_BACK)
        state = self._session.state.value
        arguments, fault = _read_arguments(call, broken=PARTIAL in self._session.message(message).metadata)
        if fault:
            return refuse(call, fault)
        tools = self._settings.toolset.project(state)
        refusal = tools.allows(call.name, arguments)
        if refusal is not None:
            return refuse(call, f"Error: {refusal}")
        assert tool is not None
        arguments = tools.arguments(call.name, arguments)
        if is_own(tool):
            return ReadyCall(key, call, tool, arguments)
        used = _with_calls(self._meter.used(), running)
        settings = self._settings
        guard = Guard(
            self._system,
            base=settings.base,
            approve=settings.approve,
            wait=settings.approval_seconds,
            checks=settings.checks,
        )
        verdict = await guard.check(tool.offer, arguments, state, used=used)
        for warning in verdict.warnings:
            self._events.emit(Event(kind="warning", text=warning, data={"tool": call.name}))
        return ReadyCall(key, call, tool, arguments) if verdict.allowed else refuse(call, f"Error: {verdict.why}")

    def _begun(self) -> set[str]:
        """Return the calls that were begun and not ended."""
        runs = self._session.state.value.runtime.execution.tool_calls
        return {each.id for each in runs if each.success is None}

    # Running

    async def run(self, group: Sequence[ReadyCall]) -> list[Outcome]:
        """Run calls at the same time and record their results in one commit."""
        if not group:
            return []
        self._record_begin(group)
        outcomes: dict[int, Outcome] = {}
        try:
            async with anyio.create_task_group() as tasks:
                for number, each in enumerate(group):
                    tasks.start_soon(self._run_one, each, number, outcomes)
        finally:
            ended = [
                outcomes.get(number) or refuse(each.call, CANCELLED, ran=True) for number, each in enumerate(group)
            ]
            self.record([(each.key, outcome) for each, outcome in zip(group, ended, strict=True)])
        return ended

    def _record_begin(self, group: Sequence[ReadyCall]) -> None:
        """Record the calls that are about to run, where running one twice may do harm."""
        runs = [
            Put(RUNS, ToolRun(id=each.key, tool=each.tool.name, input=_shorten(each.arguments)))
            for each in group
            if not each.tool.repeatable
        ]
        if runs:
            self._session.state.patch(*runs, Set("runtime.resources", self._meter.used()), reason="tools begin")

    async def _run_one(self, ready: ReadyCall, number: int, outcomes: dict[int, Outcome]) -> None:
        tool, call, emit = ready.tool, ready.call, self._events.emit
        emit(Event(kind="tool_started", text=tool.name, data={"id": call.id, "arguments": ready.arguments}))
        span = telemetry.tool_run(tool.name, call_id=call.id, session=self._session.id, arguments=ready.arguments)
        with span:
            outcome = await run(tool, call, ready.arguments)
            span.record_result(outcome.text, is_error=outcome.is_error)
        outcomes[number] = outcome
        data = {"tool": tool.name, "id": call.id, "is_error": outcome.is_error, "seconds": round(outcome.seconds, 3)}
        emit(Event(kind="tool_finished", text=outcome.text, data=data))

    # Recording

    def record(self, ended: Sequence[tuple[str, Outcome]], more: Sequence[Change] = ()) -> None:
        """Record results and their changes of the state in one commit.

        Raise `LedElsewhereError` when the session was led away from the calls.
        """
        used = self._meter.used()
        self._session.journal.refresh()
        if self._session.view.cover(self._at) is None:
            raise LedElsewhereError
        results: list[ToolResult] = []
        refs: dict[str, OutputRef] = {}
        changes: list[Change] = [
            Set("runtime.resources", _with_calls(used, sum(outcome.ran for _, outcome in ended))),
            *more,
        ]
        state = self._session.state.value
        logged, begun = state.system.audit.log_tool_calls, {each.id for each in state.runtime.execution.tool_calls}
        for key, outcome in ended:
            call = outcome.call
            content, ref = self._content(outcome)
            if ref is not None:
                refs[call.id] = ref
            results.append(ToolResult(tool_use_id=call.id, name=call.name, content=content, is_error=outcome.is_error))
            run = ToolRun(
                id=key,
                tool=call.name,
                input=_shorten(call.input),
                output=outcome.text[:MAX_NOTE_CHARACTERS],
                duration=outcome.seconds,
                success=not outcome.is_error,
            )
            if logged:
                changes.append(Put(RUNS, run))
            elif key in begun:
                changes.append(Drop(RUNS, key))
            tool = self._settings.toolset.get(call.name)
            if tool is not None and not is_own(tool):
                changes += observe_call(tool, key, outcome, self._at, state.evidence)
        errors = [(each.call.name, each.text[:MAX_NOTE_CHARACTERS]) for _, each in ended if each.is_error]
        changes += [
            Put("runtime.failures", count_failure(state, *each, times, self._at))
            for each, times in Counter(errors).items()
        ]
        self._session.add(Message(role="user", blocks=tuple(results)), state=changes, outputs=refs)

    def _content(self, outcome: Outcome) -> tuple[tuple[Block, ...], OutputRef | None]:
        """Return the content of a result. A huge one is kept whole beside the journal and shown from its beginning."""
        outputs = self._session.outputs
        ref = outcome.ref or (outputs.keep([outcome.text]) if len(outcome.text) > HUGE else None)
        if ref is None:
            return outcome.blocks, None
        others = (block for block in outcome.blocks if not isinstance(block, Text))
        return (Text(text=outputs.preview(ref.id)), *others), ref


def _with_calls(used: Resources, more: int) -> Resources:
    return msgspec.structs.replace(used, tool_calls=used.tool_calls + more)


def _shorten(arguments: Any) -> str:
    return msgspec.json.encode(arguments).decode()[:MAX_NOTE_CHARACTERS]


def _read_arguments(call: ToolUse, *, broken: bool) -> tuple[dict[str, Any], str]:
    """Read the arguments of a call, and describe what is wrong with them."""
    text = call.arguments.strip()
    if broken and text in ("", "{}"):
        # Its arguments never came: an empty call could do something else than was meant.
        return {}, BROKEN_CALL
    try:
        value = json_value(text or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        return {}, BROKEN_CALL if broken else f"Error: the arguments are not JSON ({error}). Make the call again."
    if not isinstance(value, dict):
        return {}, "Error: the arguments have to be a JSON object. Make the call again."
    return value, ""
