"""A writer that asks a function of the user's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio

from windowsill.history.folds import Brief
from windowsill.writers import Material, Written, prompts
from windowsill.writers.asker import SEPARATE, UNKNOWN_WINDOW, Asker, Book, limit_of
from windowsill.writers.calling import Caller
from windowsill.writers.errors import UnusableError
from windowsill.writers.judging import judge

Function: TypeAlias = Callable[[str], Awaitable[str]]
"""Anything that turns a prompt into an answer."""


class FunctionWriter(Asker):
    """Asks a function of the user's."""

    def __init__(self, function: Function, *, caller: Caller, name: str = "", window: int | None = None) -> None:
        super().__init__(caller, window)
        self.name = name or f"function:{getattr(function, '__name__', type(function).__name__)}"
        self._function = function

    async def _write(self, brief: Brief, material: Material, book: Book) -> Written:
        limit = limit_of(brief, material)
        try:
            prompt = self._separate(brief, material, window=self._window or UNKNOWN_WINDOW, limit=limit)
            answer = await self._answer(f"{prompts.apart()}\n\n{prompt}")
            judged = judge(answer, brief, material, tags=False)
        except UnusableError as fault:
            book.fault(SEPARATE, fault)
            raise book.unusable(fault.kind, fault.what, fault.remedy) from None
        return book.written(SEPARATE, judged, self.name)

    async def _answer(self, prompt: str) -> str:
        await self._caller.turn()
        answer: Any = None
        with anyio.move_on_after(self._caller.manners.timeout) as scope:
            try:
                answer = await self._function(prompt)
            except Exception as error:  # noqa: BLE001 whatever a user's function raises, a turn goes on
                raise UnusableError("failed", f"the function raised {type(error).__name__}") from None
        if scope.cancelled_caught:
            raise UnusableError("timeout", "the function did not answer in time", remedy="raise timeout=")
        if not isinstance(answer, str):
            raise UnusableError("unreadable", f"the function gave a {type(answer).__name__}", remedy="return text")
        return answer
