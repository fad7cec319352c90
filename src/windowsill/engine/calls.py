"""Answers the calls of one reply: what may run runs, the rest is refused with its reason, and each result is recorded.

Before a tool with side effects runs, the journal says that it begins. So after a crash nothing of the kind is run twice
without the model being told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import msgspec

from windowsill import telemetry
from windowsill.engine import own
from windowsill.engine.result import Event
from windowsill.engine.running import Ran, refused, run
from windowsill.engine.tools import EngineTool
from windowsill.engine.toolset import Toolset
from windowsill.engine.words import BROKEN_CALL, CANCELLED, INTERRUPTED, NOT_RUN, TOO_MANY, WENT_BACK
from windowsill.errors import InputError
from windowsill.formats.streaming import PARTIAL
from windowsill.messages import Block, Message, OutputRef, Text, ToolResult, ToolUse
from windowsill.session.session import Session
from windowsill.session.telling_tools import RUNS, run_key
from windowsill.state.book import LATEST
from windowsill.state.changes import Change, Put, Set
from windowsill.state.policies import Approve, Guard
from windowsill.state.policies.guard import Check
from windowsill.state.runtime import Resources, ToolRun
from windowsill.state.state import State
from windowsill.state.system import System
from windowsill.state.verbs import failed

HUGE = 1_000_000
"""Characters of an output that no window has room for: to count its tokens alone would take a while."""

LONGEST_NOTE = 200
"""Characters of a result that the state keeps; the history has it whole."""


Finishing: TypeAlias = Callable[[own.Finish], Awaitable[tuple[str, list[Change]]]]
"""Takes the model's word that it is done, or not; what it is told, and what that changes in the state."""


class LedElsewhereError(Exception):
    """Somebody led the session to another branch while calls of this one ran."""


class Ready(msgspec.Struct, frozen=True):
    """A call that may run."""

    key: str
    call: ToolUse
    tool: EngineTool
    arguments: dict[str, Any]


class Calls:
    """Runs the calls of one session's model."""

    def __init__(
        self,
        session: Session,
        toolset: Toolset,
        *,
        base: Path,
        approve: Approve | None,
        wait: float | None,
        checks: Mapping[str, Check],
        tell: Callable[[Event], None],
    ) -> None:
        self._session = session
        self._toolset = toolset
        self._base = base
        self._approve = approve
        self._wait = wait
        self._checks = checks
        self._guard: tuple[System, Guard] | None = None
        self._elsewhere: set[str] = set()
        self._at = 0
        self._tell = tell

    async def answer(
        self, waiting: Sequence[tuple[str, ToolUse]], used: Callable[[], Resources], finish: Finishing
    ) -> list[Ran]:
        """Answer calls in their order; each gets a result that is recorded.

        `LedElsewhereError` when the session is led away from them: then the rest is not run.
        """
        self._at = self._session.items()[-1].last
        ran: list[Ran] = []
        ready: list[Ready] = []
        for number, (message, call) in enumerate(waiting):
            if ready and not self._together(ready[-1].tool, self._toolset.get(call.name)):
                # What a call may do is judged, and somebody asked, when what comes before it is done.
                ran += await self._run_all(ready, used)
                ready = []
            if number < LATEST:
                counted = _counting(used(), len(ready))
                judged = await self._judge(message, call, counted)
            else:
                judged = refused(call, TOO_MANY.format(most=LATEST))
            if isinstance(judged, Ready) and not own.is_own(judged.tool):
                ready.append(judged)
                continue
            ran += await self._run_all(ready, used)
            ready = []
            if isinstance(judged, Ready):
                ended, changes = await self._own(judged, finish)
            else:
                ended, changes = judged, []
                self._tell(Event(kind="tool_refused", text=judged.text, data={"tool": call.name}))
            self._record([(run_key(message, call.id), ended)], used(), changes)
            ran.append(ended)
        return [*ran, *await self._run_all(ready, used)]

    @staticmethod
    def _together(one: EngineTool, other: EngineTool | None) -> bool:
        """Whether two neighbouring calls may run at the same time."""
        return one.parallel and other is not None and other.parallel

    async def _own(self, ready: Ready, finish: Finishing) -> tuple[Ran, list[Change]]:
        """What a call of one of the engine's own tools changes."""
        try:
            wanted = own.wish(ready.tool.name, ready.arguments)
            if isinstance(wanted, own.Finish):
                said, changes = await finish(wanted)
            else:
                changes, said = own.changes_of(wanted, self._session.state.value, ready.call.id)
            self._session.state.check(changes)
        except (InputError, msgspec.ValidationError) as error:
            return refused(ready.call, f"Error: {error}"), []
        return Ran(call=ready.call, blocks=(Text(text=said),), ran=False), changes

    def look_around(self) -> None:
        """Find out which open calls were run before the session came here, by a run that was killed or left."""
        waiting = self._session.open_calls()
        begun = {id: self._session.begun_calls(id) for id in dict.fromkeys(message for message, _ in waiting)}
        self._elsewhere = {run_key(message, call.id) for message, call in waiting if call.id in begun[message]}

    def settle(self, waiting: Sequence[tuple[str, ToolUse]], used: Resources) -> None:
        """Give calls that nobody will run any more a result that says so."""
        begun = self._begun()
        self._at = self._session.items()[-1].last
        for message, call in waiting:
            key = run_key(message, call.id)
            self._record([(key, refused(call, INTERRUPTED if key in begun else NOT_RUN))], used)

    # Deciding

    async def _judge(self, message: str, call: ToolUse, used: Resources) -> Ready | Ran:
        """Whether a call may run, and if not, what the model is told."""
        key = run_key(message, call.id)
        tool = self._toolset.get(call.name)
        if tool is None or not tool.repeatable:
            if key in self._begun():
                return refused(call, INTERRUPTED)
            if key in self._elsewhere:
                return refused(call, WENT_BACK)
        state = self._session.state.value
        arguments, fault = _arguments(call, broken=PARTIAL in self._session.message(message).metadata)
        if fault:
            return refused(call, fault)
        projected = self._toolset.project(state)
        refusal = projected.allows(call.name, arguments)
        if refusal is not None:
            return refused(call, f"Error: {refusal}")
        assert tool is not None
        filled = projected.arguments(call.name, arguments)
        if own.is_own(tool):
            return Ready(key, call, tool, filled)
        verdict = await self._guard_of(state).check(tool.offered, filled, state, used=used)
        for warning in verdict.warnings:
            self._tell(Event(kind="warning", text=warning, data={"tool": call.name}))
        return Ready(key, call, tool, filled) if verdict.allowed else refused(call, f"Error: {verdict.why}")

    def _guard_of(self, state: State) -> Guard:
        if self._guard is None or self._guard[0] != state.system:
            guard = Guard(state.system, base=self._base, approve=self._approve, wait=self._wait, checks=self._checks)
            self._guard = (state.system, guard)
        return self._guard[1]

    def _begun(self) -> set[str]:
        """Calls that were begun and not ended."""
        runs = self._session.state.value.runtime.execution.tool_calls
        return {each.id for each in runs if each.success is None}

    # Running

    async def _run_all(self, group: Sequence[Ready], used: Callable[[], Resources]) -> list[Ran]:
        """Run calls that may run at the same time."""
        if not group:
            return []
        self._begin(group, used())
        done: dict[int, Ran] = {}
        try:
            async with anyio.create_task_group() as tasks:
                for number, each in enumerate(group):
                    tasks.start_soon(self._run, each, number, done)
        except BaseException:
            cancelled = [
                done.get(number) or refused(each.call, CANCELLED, ran=True) for number, each in enumerate(group)
            ]
            self._record([(each.key, ran) for each, ran in zip(group, cancelled, strict=True)], used())
            raise
        self._record([(each.key, done[number]) for number, each in enumerate(group)], used())
        return [done[number] for number in range(len(group))]

    def _begin(self, group: Sequence[Ready], used: Resources) -> None:
        """Write down what is about to run, where running it twice may do harm."""
        runs = [
            Put(RUNS, ToolRun(id=each.key, tool=each.tool.name, input=_short(each.arguments)))
            for each in group
            if not each.tool.repeatable
        ]
        if runs:
            self._session.state.patch(*runs, Set("runtime.resources", used), reason="tools begin")

    async def _run(self, ready: Ready, number: int, done: dict[int, Ran]) -> None:
        tool, call = ready.tool, ready.call
        self._tell(Event(kind="tool_started", text=tool.name, data={"id": call.id, "arguments": ready.arguments}))
        span = telemetry.tool_run(tool.name, call_id=call.id, session=self._session.id, arguments=ready.arguments)
        with span:
            ran = await run(tool, call, ready.arguments)
            span.answered(ran.text, is_error=ran.is_error)
        done[number] = ran
        about = {"id": call.id, "is_error": ran.is_error, "seconds": round(ran.seconds, 3)}
        self._tell(Event(kind="tool_finished", text=ran.text, data={"tool": tool.name, **about}))

    # Recording

    def _record(self, ended: Sequence[tuple[str, Ran]], used: Resources, more: Sequence[Change] = ()) -> None:
        """Record results, and what they mean for the state, in one commit."""
        self._session.refresh()
        if self._session.view.cover(self._at) is None:
            raise LedElsewhereError
        outputs = self._kept(ended)
        blocks = tuple(
            ToolResult(tool_use_id=ran.call.id, name=ran.call.name, content=content, is_error=ran.is_error)
            for (_, ran), (content, _) in zip(ended, outputs, strict=True)
        )
        state = self._session.state.value
        counted = _counting(used, sum(ran.ran for _, ran in ended))
        changes: list[Change] = [Set("runtime.resources", counted), *more]
        changes += [_run_change(key, ran) for key, ran in ended]
        failures = Counter((ran.call.name, ran.text[:LONGEST_NOTE]) for _, ran in ended if ran.is_error)
        changes += [Put("runtime.failures", failed(state, *each, times)) for each, times in failures.items()]
        refs = {ran.call.id: ref for (_, ran), (_, ref) in zip(ended, outputs, strict=True) if ref is not None}
        self._session.add(Message(role="user", blocks=blocks), state=changes, outputs=refs)

    def _kept(self, ended: Sequence[tuple[str, Ran]]) -> list[tuple[tuple[Block, ...], OutputRef | None]]:
        """What the results show. A huge one is kept whole beside the journal, and shown from its beginning."""
        found: list[tuple[tuple[Block, ...], OutputRef | None]] = []
        for _, ran in ended:
            ref = ran.ref or (self._session.outputs.keep([ran.text]) if len(ran.text) > HUGE else None)
            if ref is None:
                found.append((ran.blocks, None))
            else:
                others = tuple(block for block in ran.blocks if not isinstance(block, Text))
                found.append(((Text(text=self._session.outputs.shown(ref.id)), *others), ref))
        return found


def _counting(used: Resources, more: int) -> Resources:
    """What is used with so many calls more."""
    return msgspec.structs.replace(used, tool_calls=used.tool_calls + more) if more else used


def _run_change(key: str, ran: Ran) -> Change:
    run = ToolRun(
        id=key,
        tool=ran.call.name,
        input=_short(ran.call.input),
        output=ran.text[:LONGEST_NOTE],
        duration=ran.seconds,
        success=not ran.is_error,
    )
    return Put(RUNS, run)


def _short(arguments: Any) -> str:
    """Arguments as the state keeps them."""
    return msgspec.json.encode(arguments).decode()[:LONGEST_NOTE]


def _arguments(call: ToolUse, *, broken: bool) -> tuple[dict[str, Any], str]:
    """What a call passes, and what is wrong with it."""
    text = call.arguments.strip()
    if broken and text in ("", "{}"):
        # Nothing came of what it was to pass: an empty call could do something else than was meant.
        return {}, BROKEN_CALL
    try:
        value = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        return {}, BROKEN_CALL if broken else f"Error: the arguments are no JSON ({error}). Make the call again."
    if not isinstance(value, dict):
        return {}, "Error: the arguments have to be a JSON object. Make the call again."
    return value, ""
