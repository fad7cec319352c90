"""A model behind a function of the user's, such as a call of an SDK."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from windowsill import providers, user_function
from windowsill.agent.models.base import (
    Answer,
    Delta,
    Model,
    ModelRequest,
    decoded_request,
    emit_answer,
    render_reply,
)
from windowsill.errors import FormatError
from windowsill.messages import text_message
from windowsill.providers.faults import ModelError, from_exception, hide_keys
from windowsill.providers.wire import to_bytes


class FunctionModel(Model):
    """Asks `function(request)`, which may be async; one that is not is run in a thread.

    `request` is the decoded body in `format`, complete but for streaming. The function gives text, or a response in
    that format: a dictionary, an object of an SDK, or bytes. What it raises becomes a `ModelError`.
    """

    def __init__(
        self,
        function: Callable[[dict[str, Any]], Any],
        *,
        format: str = "openai",
        name: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.format = providers.get(format).name
        self._function = function
        self._called = getattr(function, "__name__", type(function).__name__)
        self._clock = clock

    def __repr__(self) -> str:
        return f"<model function:{self._called}>"

    async def ask(self, request: ModelRequest, listen: Callable[[Delta], None]) -> Answer:
        """Return the answer of the function."""
        began = self._clock()
        decoded = decoded_request(request, self.format, self.name)
        try:
            result = await user_function.call(self._function, decoded)
        except Exception as error:  # noqa: BLE001 whatever a user's function raises, the loop hears of it by one name
            raise from_exception(error, self._called) from None
        body = self._body(result)
        emit_answer(body, self.format, listen, hide_keys)
        return Answer(body=body, seconds=self._clock() - began)

    def _body(self, given: Any) -> bytes:
        try:
            if isinstance(given, str):
                return render_reply(text_message("assistant", given), self.format, model=self.name)
            return self._whole_reply(to_bytes(given))
        except FormatError as error:
            remedy = "return text, or a response of the provider"
            raise ModelError("malformed", f"{self._called}: {error.what}", remedy=remedy) from None

    def _whole_reply(self, body: bytes) -> bytes:
        """Return an answer as it is, and a message that came alone in an answer around it."""
        with suppress(FormatError):
            providers.get(self.format).read_reply(body)
            return body
        with suppress(FormatError):
            messages = providers.read_added(body, format=self.format).messages
            if len(messages) == 1 and messages[0].role == "assistant" and body.lstrip()[:1] == b"{":
                return render_reply(messages[0], self.format, model=self.name)
        return body
