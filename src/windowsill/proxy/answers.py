"""Answers of providers: passed on to a client as they come, and copies of streams that are recorded later."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import anyio

from windowsill.clients.exchange import Exchange
from windowsill.proxy.forward import Headers

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MOST_TOGETHER = 32
"""Pieces that are sent on as one: few enough that reading them holds back the first by less than a millisecond."""

LAST_PIECES = 256
"""Pieces at the end of a stream in which its last event is looked for: that of OpenAI repeats the whole answer."""

LAST_WORDS = (b"message_stop", b"[DONE]", b"response.completed", b"response.incomplete", b"response.failed")
"""Words of which the last event of a stream holds one: without any, no expression needs to be tried."""

LAST_EVENT = re.compile(
    rb'(?:"type": ?"(?:message_stop|response\.(?:completed|incomplete|failed))"|^data: ?\[DONE\])[^\n]*\n\r?\n',
    re.MULTILINE,
)
"""The end of a stream, whole: quotes and line breaks that are not escaped stand in no text of a model."""


class Relay:
    """An answer that is sent on as it comes: an ASGI application.

    What came while other bytes were on their way is sent on together, which takes far fewer steps for a long stream.
    Nothing waits for bytes that have not come.
    """

    def __init__(self, pieces: AsyncIterator[bytes], status: int, headers: Headers) -> None:
        self.body_iterator = pieces
        self.status_code = status
        self.raw_headers = headers
        self._pieces: list[bytes] = []
        self._came, self._taken = asyncio.Event(), asyncio.Event()

    @property
    def headers(self) -> dict[str, str]:
        """The headers as text."""
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self.raw_headers}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; a client that goes away ends the answer of the provider."""
        del scope
        reader = asyncio.ensure_future(self._read())
        reader.add_done_callback(lambda _: self._came.set())
        gone = asyncio.ensure_future(_disconnected(receive))
        gone.add_done_callback(lambda _: reader.cancel())
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while self._pieces or not reader.done():
                await self._came.wait()
                self._came.clear()
                together = b"".join(self._pieces)
                self._pieces.clear()
                self._taken.set()
                if together:
                    await send({"type": "http.response.body", "body": together, "more_body": True})
        finally:
            gone.cancel()
            reader.cancel()
            await asyncio.wait([reader])
        if not reader.cancelled() and reader.exception() is None:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _read(self) -> None:
        async for piece in self.body_iterator:
            self._pieces.append(piece)
            self._came.set()
            if len(self._pieces) >= MOST_TOGETHER:
                self._taken.clear()
                await self._taken.wait()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class StreamCopy:
    """A copy of a stream, recorded when it is whole."""

    def __init__(self, exchange: Exchange, owner: str) -> None:
        self.exchange = exchange
        self.owner = owner
        self.pieces: list[bytes] = []
        self.begun = False
        """It is being recorded."""
        self.done = anyio.Event()

    @property
    def is_whole(self) -> bool:
        """Tell whether the last event is there: whoever has it may ask on before the stream is closed."""
        if self.begun:
            return True
        end = b"".join(self.pieces[-LAST_PIECES:])
        return any(words in end for words in LAST_WORDS) and LAST_EVENT.search(end) is not None

    def record(self) -> None:
        """Read the stream, and record it."""
        self.exchange.begin_stream()
        self.exchange.feed(b"".join(self.pieces))
        self.exchange.close()
