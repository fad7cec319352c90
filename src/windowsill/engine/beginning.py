"""How a run begins: with a new task, with one that was interrupted, or with a word in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windowsill.engine.calls import Calls
from windowsill.engine.goal import goal_of
from windowsill.engine.phases import first
from windowsill.engine.result import Event
from windowsill.engine.setup import Setup
from windowsill.engine.speaking import last_of, say
from windowsill.engine.spending import Spending
from windowsill.engine.verifying import check_form, check_validators
from windowsill.errors import InputError
from windowsill.session.session import Session
from windowsill.state.changes import Change, Drop, Put, Set
from windowsill.state.runtime import Resources
from windowsill.state.state import State
from windowsill.state.task import Criterion


class Beginning:
    """Begins the run of one session."""

    def __init__(
        self, session: Session, setup: Setup, calls: Calls, spending: Spending, tell: Callable[[Event], None]
    ) -> None:
        self._session = session
        self._setup = setup
        self._calls = calls
        self._spending = spending
        self._tell = tell

    def begin(self, task: str | None, criteria: Sequence[str | Criterion]) -> None:
        """Take a task in, or take up the one that was interrupted; `InputError` when there is neither."""
        self._session.refresh()
        self._calls.look_around()
        state = self._session.state.value
        unfinished = state.runtime.phase in self._setup.phases
        if task is not None and not task.strip():
            raise InputError("the task is empty", remedy="say what is to be done, or leave it out to go on")
        if task is None and not unfinished:
            raise InputError("there is no task to go on with", remedy="give one")
        check_form(state.task)
        self._spending.begin(state, before=state.runtime.resources.seconds if unfinished else 0.0)
        if unfinished and (task is None or goal_of(task) == state.task.goal):
            check_validators(state.task.success_criteria, self._setup.validators)
            self._say_what_is_missing(state)
            return
        assert task is not None
        waiting = self._session.open_calls()
        if waiting:
            self._calls.settle(waiting, self._spending.used())
        if unfinished:
            self._session.add(task)
            return
        self._take(task, criteria, state)

    def _take(self, task: str, criteria: Sequence[str | Criterion], state: State) -> None:
        start = first(self._setup.phases)
        wanted = [each if isinstance(each, Criterion) else Criterion(description=each) for each in criteria]
        changes: list[Change] = [
            Set("task.goal", goal_of(task)),
            *(Drop("task.success_criteria", each.key) for each in (state.task.success_criteria if wanted else ())),
            *(Put("task.success_criteria", each) for each in wanted),
            *(Drop("work.plan.steps", step.key) for step in state.work.plan.steps),
            Set("work.plan.current", ""),
            Set("runtime.phase", start.phase),
            Set("runtime.resources", Resources()),
        ]
        self._session.state.check(changes)
        check_validators(wanted or state.task.success_criteria, self._setup.validators)
        self._session.add(task, state=changes)
        if start.text:
            say(self._session, start.text)
        self._tell(Event(kind="phase", text=start.phase))

    def _say_what_is_missing(self, state: State) -> None:
        """The words of the first phase, where the process ended between them and the task."""
        last, start = last_of(self._session), first(self._setup.phases)
        own = last is not None and last.role == "user" and not last.results and "windowsill" not in last.metadata
        if own and start.text and state.runtime.phase == start.phase:
            say(self._session, start.text)
