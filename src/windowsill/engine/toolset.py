"""The tools of one engine, and which of them the model sees at a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from windowsill.engine.own import own_tools
from windowsill.engine.running import ToolError
from windowsill.engine.tools import AnyTool, EngineTool, as_tool
from windowsill.errors import InputError
from windowsill.session.session import Session
from windowsill.state.projection import Narrow, Projected, Projection, Refusal, known
from windowsill.state.projection.projected import Mode
from windowsill.state.state import State


class Shown:
    """The tools of one request: those that are always there, and those that the state shows."""

    def __init__(self, always: Projected, given: Projected) -> None:
        self.always = always
        self.given = given
        # What is always there stands first, so that a change of the others leaves most of a cached prefix alone.
        self.tools = (*always.tools, *given.tools)

    def allows(self, name: str, arguments: Any) -> Refusal | None:
        """`None` when this call may be run; otherwise what to tell the model."""
        return self._of(name).allows(name, arguments)

    def arguments(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments to run a call with."""
        return self._of(name).arguments(name, given)

    def _of(self, name: str) -> Projected:
        return self.always if name in self.always.names else self.given


class Toolset:
    """Tools by name, projected by the state. Those of the engine and of the history are always shown."""

    def __init__(
        self,
        session: Session,
        tools: Iterable[AnyTool],
        *,
        rules: Iterable[Narrow] = (),
        mode: Mode = "remove",
        budget: int | None,
        shown: Mapping[str, Iterable[str]] | None = None,
        history: bool = True,
        own: bool = True,
    ) -> None:
        given = [as_tool(each) for each in tools]
        for name in shown or ():
            known.phase(name, "setting 'shown'")
        always = [*(own_tools() if own else ()), *(_history_tools(session) if history else ())]
        names = {each.name for each in always}
        taken = next((each.name for each in given if each.name in names), None)
        if taken is not None:
            raise InputError(
                f"the engine has a tool {taken!r} of its own", remedy="give yours another name, or switch off own_tools"
            )
        self._by_name = {each.name: each for each in (*always, *given)}
        # Neither the budget nor urgency concerns what the engine cannot do without.
        self._always = Projection(
            [each.offered for each in always], count=session.count, budget=None, urgent=len(always) or 1
        )
        self._given = Projection(
            [each.offered for each in given],
            count=session.count,
            phases=shown,
            budget=budget,
            rules=rules,
            mode=mode,
        )
        self._last: Shown | None = None

    def get(self, name: str) -> EngineTool | None:
        """A tool by its name."""
        return self._by_name.get(name)

    def project(self, state: State) -> Shown:
        """The tools for this state; the very same while what decides does not change."""
        always, given = self._always.project(state), self._given.project(state)
        last = self._last
        if last is None or last.always is not always or last.given is not given:
            last = self._last = Shown(always, given)
        return last


def _history_tools(session: Session) -> list[EngineTool]:
    return [
        EngineTool(
            definition=definition,
            function=_door(session, definition.name),
            category="general",
            parallel=True,
            repeatable=True,
        )
        for definition in session.tools.tools
    ]


def _door(session: Session, name: str) -> Any:
    def call(**arguments: Any) -> str:
        answer = session.tools.call(name, arguments)
        if answer.is_error:
            raise ToolError(answer.text)
        return answer.text

    return call
