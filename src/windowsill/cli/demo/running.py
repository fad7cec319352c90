"""Runs the agent: each turn composes a request through the session, as a real agent would before it calls a model."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from windowsill import formats
from windowsill.budget import budget_for
from windowsill.cli.demo.agent import SYSTEM, TASK, Turn, script
from windowsill.cli.demo.conversation import Native, answer_of, results_of, said_by_user
from windowsill.cli.demo.tally import Tally
from windowsill.cli.demo.tools import DEFINITIONS, Workbench
from windowsill.compose.payload import Payload, Report
from windowsill.session import Session
from windowsill.tokens import Weight

FORMAT = "anthropic"

LONGEST_ANSWER = 1_024
"""The provider wants a limit stated; the agent's answers are short."""


class Moment(msgspec.Struct, frozen=True):
    """What there is to see after a request was composed."""

    report: Report
    turn: Turn
    """What the agent answered to it."""
    tally: Tally
    written: int
    """Messages in the session so far."""
    low: int
    high: int
    """The marks between which the window fills."""


class Added(msgspec.Struct, frozen=True):
    """A message as it was handed to the session: the bytes to compare with later."""

    id: str
    raw: bytes


class Run:
    """One agent at work in one session."""

    def __init__(self, session: Session, workbench: Workbench, calls: int) -> None:
        self.session = session
        self.workbench = workbench
        self.calls = calls
        self.tally = Tally(session.model)
        self.added: list[Added] = []
        self.words: list[str] = []
        """Everything the user said."""
        self.last: Payload | None = None
        self.answer = ""
        self._weight = Weight()

    def go(self, watch: Callable[[Moment], None]) -> None:
        """Work to the end; `watch` sees every request."""
        self._hear(TASK)
        turns = script(self.workbench.files, self.workbench.size, self.calls)
        turn = next(turns)
        while True:
            report = self._compose()
            watch(Moment(report, turn, self.tally, len(self.added), *self._marks(report)))
            first = self.tally.tools + 1
            self._add(answer_of(turn, first))
            self.tally.answered(self.session.view.tokens(self.session.view.items[-1]))
            outcomes = [self.workbench.use(call.tool, call.input) for call in turn.calls]
            self.tally.tools += len(outcomes)
            if outcomes:
                self._add(results_of(outcomes, first))
            elif turn.wish:
                self._hear(turn.wish)
            else:
                self.answer = turn.says
                return
            turn = turns.send(outcomes)

    def _compose(self) -> Report:
        payload = self.session.compose_sync(system=SYSTEM, tools=DEFINITIONS, params={"max_tokens": LONGEST_ANSWER})
        report = payload.report
        self.tally.request(report, _fixed(report) + self.session.view.tokens_of(self._weight))
        found = formats.get(FORMAT).validate(msgspec.json.decode(payload.body(FORMAT)))
        self.tally.problems += [f"request {self.tally.requests}: {problem}" for problem in found]
        self.last = payload
        return report

    def _marks(self, report: Report) -> tuple[int, int]:
        """The marks of this request; they leave room above what is never folded, the task included."""
        settings, view = self.session.settings, self.session.view
        task = view.task()
        held = view.tokens(view.items[task]) if task is not None else 0
        budget = budget_for(
            self.session.model,
            budget=settings.budget,
            high=settings.high,
            low=settings.low,
            fixed=_fixed(report) + held,
        )
        return budget.low, budget.high

    def _hear(self, words: str) -> None:
        self.words.append(words)
        self._add(said_by_user(words))

    def _add(self, message: Native) -> None:
        id = self.session.add(message)
        self.added.append(Added(id, msgspec.json.encode(message)))
        # The newest item is the message whole: the same scale then weighs both ways to work.
        self._weight = self._weight + self.session.view.items[-1].weight


def _fixed(report: Report) -> int:
    """Tokens of what every request has: system prompt, tools, and the framing around them."""
    return sum(report.parts[part] for part in ("system", "tools", "framing"))
