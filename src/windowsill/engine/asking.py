"""Asks the model, and gets over what can be got over: an overflow, a rate limit, a broken server, a garbled answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from windowsill import formats, telemetry
from windowsill.compose import Payload
from windowsill.engine.models.seam import Answer, Asked, Delta, Model, ModelError
from windowsill.engine.result import Event
from windowsill.errors import FormatError
from windowsill.messages import Reply
from windowsill.session.session import Session
from windowsill.telemetry import names
from windowsill.writers.pace import backoff

FORCED = 0.3
"""What a request is reduced to when the provider says it was too long, as a share of what it may have."""

RETRIES = 2
"""How often a model is asked again that failed in passing."""

FIRST_PAUSE = 1.0
"""Seconds before the first retry, give or take; twice as long before the next."""

LONGEST_PAUSE = 60.0
"""A provider that wants to be left alone for longer is not waited for."""


class Heard(msgspec.Struct, frozen=True):
    """An answer, read."""

    answer: Answer
    reply: Reply


class Asking:
    """Asks one model on behalf of one session."""

    def __init__(
        self,
        session: Session,
        model: Model,
        *,
        tell: Callable[[Event], None],
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> None:
        self._session = session
        self._model = model
        self._tell = tell
        self._sleep = sleep
        self._random = random

    async def ask(
        self, compose: Callable[[], Awaitable[Payload]], reduce: Callable[[], object], max_output: int
    ) -> Heard:
        """The answer to the request that `compose` gives; `ModelError` when there is none.

        `compose` is asked again after whatever made the request smaller, and `reduce` makes it smaller by force.
        """
        tried, forced = 0, False
        while True:
            payload = await compose()
            for fold in payload.folds:
                about = {"id": fold.id, "strategy": fold.strategy, "before": fold.before, "after": fold.after}
                self._tell(Event(kind="folded", text=fold.reason, data=about))
            self._tell(Event(kind="request", data={"tokens": payload.tokens}))
            try:
                return await self._once(payload, max_output)
            except ModelError as error:
                if error.kind == "overflow" and not forced:
                    forced = True
                    self._session.overflowed(error.said or str(error), sent=payload.tokens)
                    reduce()
                    self._tell(Event(kind="reduced", text=f"the model's window was passed: {error}"))
                    continue
                pause = error.retry_after
                if pause is None:
                    pause = backoff(FIRST_PAUSE, tried, LONGEST_PAUSE, self._random)
                if not (error.passing or error.kind == "malformed") or tried >= RETRIES or pause > LONGEST_PAUSE:
                    raise
                tried += 1
                self._tell(Event(kind="retry", text=f"{error.kind}: {error}", data={"pause": round(pause, 3)}))
                await self._sleep(pause)

    async def _once(self, payload: Payload, max_output: int) -> Heard:
        model = self._model
        span = telemetry.model_call(
            model.name or None,
            provider=model.format,
            session=self._session.id,
            operation=names.GENERATE_CONTENT if model.format == "gemini" else names.CHAT,
            compacted=payload.compacted,
        )
        with span:
            if span.wants_content:
                sent = formats.read_request(payload.body(), format=model.format)
                span.asked(sent.messages, sent.system)

            def listen(delta: Delta) -> None:
                span.heard()
                self._tell(Event(kind=delta.kind, text=delta.text))

            answer = await model.ask(Asked(payload=payload, max_output=max_output), listen)
            try:
                reply = formats.get(model.format).read_reply(answer.body)
            except FormatError as error:
                raise ModelError(
                    "malformed", f"the answer cannot be read: {error}", remedy="see what it sends"
                ) from error
            span.answered(
                reply.usage,
                model=reply.model,
                finish=reply.stop_reason,
                messages=(reply.message, *reply.more) if span.wants_content else (),
            )
            return Heard(answer, reply)
