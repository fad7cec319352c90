"""A model that says what a test wrote down, one answer after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from anyio.lowlevel import checkpoint

from windowsill import formats
from windowsill.engine.models.base import Answer, Asked, Delta, Model
from windowsill.engine.models.bodies import decoded_request
from windowsill.errors import InputError
from windowsill.testing.models.making import answer_of, mark_of, message_of, told
from windowsill.writers.faults import from_exception


class Scripted(Model):
    """Gives each of `answers` once, in any wire format, with a usage.

    An answer is text, a `Call` or `(name, arguments)`, a list of these in one answer, an `Answer` of the engine's seam,
    an error to be raised, or a function of the decoded request that gives any of these. `then` is what it says when
    they are used up; without it that is an error. `requests` are the requests it saw.
    """

    def __init__(self, answers: Iterable[Any], format: str = "openai", *, name: str = "", then: Any = None) -> None:
        self.name = name
        self.format = formats.get(format).name
        self.requests: list[dict[str, Any]] = []
        self._answers = list(answers)
        self._then = then

    def __repr__(self) -> str:
        return f"<model scripted: {len(self.requests)} of {len(self._answers)} answers given>"

    @property
    def left(self) -> int:
        """How many answers have not been given."""
        return max(0, len(self._answers) - len(self.requests))

    async def ask(self, asked: Asked, listen: Callable[[Delta], None]) -> Answer:
        """The next answer."""
        await checkpoint()
        request = decoded_request(asked, self.format, self.name)
        self.requests.append(request)
        item = self._item(request)
        if isinstance(item, Answer):
            return told(item, self.format, listen)
        message = message_of(item, mark_of(request, len(self.requests)))
        return told(answer_of(message, asked, self.format, name=self.name), self.format, listen)

    def _item(self, request: dict[str, Any]) -> Any:
        number = len(self.requests)
        item = self._answers[number - 1] if number <= len(self._answers) else self._then
        if item is None:
            raise InputError(
                f"the script has {len(self._answers)} answers and is asked for number {number}",
                remedy="give it more, or say with then= what comes after them",
            )
        while callable(item):
            item = _given(item, request)
        if isinstance(item, Exception):
            raise from_exception(item, "the script") from None
        if isinstance(item, BaseException):
            raise item
        return item


def _given(function: Callable[[dict[str, Any]], Any], request: dict[str, Any]) -> Any:
    try:
        return function(request)
    except Exception as error:  # noqa: BLE001 whatever it raises is what the script says
        return error
