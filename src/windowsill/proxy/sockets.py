"""Codex's socket: each frame names the response before it and says what is new; a provider gets whole requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import msgspec

from windowsill.errors import NotFoundError
from windowsill.providers import sse
from windowsill.providers.streams import DONE
from windowsill.proxy.forward import Headers

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.websockets import WebSocket

    from windowsill.proxy.answers import Relay

Ask: TypeAlias = "Callable[[Headers, bytes], Awaitable[Response | Relay]]"
"""Sends a request on, and returns its answer."""

CREATE = "response.create"
"""The type of a frame that asks for a response; others are notes that need no answer."""

MOST_RESPONSES = 4
"""Responses of a socket that a frame may name: Codex names the last."""

MOST_FRAMES = 16
"""Frames of a socket that may wait; a client waits for each answer before it asks on."""

ERROR = 400
"""The first status that is an error."""

HEADER = "ws_request_header_"
"""Stands before the name of a header among the metadata of a frame."""

METADATA = "x-codex-"
"""Begins the names of metadata that are headers where Codex sends requests."""


class _Frame(msgspec.Struct):
    type: str = ""
    previous_response_id: str | None = None
    generate: bool = True
    input: list[msgspec.Raw] = []
    client_metadata: dict[str, Any] = {}


class _Event(msgspec.Struct):
    type: str = ""
    item: msgspec.Raw = msgspec.Raw(b"null")
    response: msgspec.Raw = msgspec.Raw(b"{}")


class _Named(msgspec.Struct):
    id: str = ""


class Asked(msgspec.Struct, frozen=True):
    """A frame as a request of its own."""

    body: bytes
    items: list[msgspec.Raw]
    headers: dict[str, str]
    answered: bool
    """It only says what is to come, and no provider needs to hear it."""


class SocketMemory:
    """The conversation of one socket: what the responses that it may name were about."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, list[msgspec.Raw]] = OrderedDict()
        self._written = 0

    def read(self, text: str) -> Asked | None:
        """Return the request that a frame stands for, whole; `None` for a frame that asks for nothing."""
        frame = msgspec.json.decode(text, type=_Frame)
        if frame.type != CREATE:
            return None
        items = frame.input
        if frame.previous_response_id is not None:
            if frame.previous_response_id not in self._known:
                raise NotFoundError(
                    f"Previous response with id '{frame.previous_response_id}' not found.",
                    remedy="send the whole conversation",
                )
            items = [*self._known[frame.previous_response_id], *items]
        fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        for name in ("type", "previous_response_id", "generate"):
            fields.pop(name, None)
        fields |= {"input": msgspec.Raw(msgspec.json.encode(items)), "stream": msgspec.Raw(b"true")}
        return Asked(msgspec.json.encode(fields), items, _headers(frame.client_metadata), not frame.generate)

    def begun(self, asked: Asked) -> Iterator[str]:
        """Yield the events that answer a frame which only says what is to come."""
        self._written += 1
        response: dict[str, Any] = {
            "id": f"resp_windowsill_{self._written}",
            "object": "response",
            "output": [],
            "usage": None,
        }
        self._keep(response["id"], asked.items)
        for status, type in (("in_progress", "response.created"), ("completed", "response.completed")):
            yield msgspec.json.encode({"type": type, "response": {**response, "status": status}}).decode()

    def hear(self, asked: Asked, events: list[sse.Event]) -> None:
        """Remember the items of an answer as they pass, and its id once it is whole."""
        for event in events:
            if b'"response.' not in event.data:
                continue
            try:
                read = msgspec.json.decode(event.data, type=_Event)
                if read.type == "response.output_item.done":
                    asked.items.append(read.item)
                elif read.type == "response.completed":
                    self._keep(msgspec.json.decode(read.response, type=_Named).id, asked.items)
            except msgspec.DecodeError:
                continue

    def _keep(self, id: str, items: list[msgspec.Raw]) -> None:
        self._known[id] = items
        if len(self._known) > MOST_RESPONSES:
            self._known.popitem(last=False)


async def talk(socket: WebSocket, ask: Ask) -> None:
    """Answer the frames of a socket until its client goes away, which is noticed in the middle of an answer too."""
    from starlette.websockets import WebSocketDisconnect  # noqa: PLC0415 - of an extra

    await socket.accept()
    memory = SocketMemory()
    frames, waiting = anyio.create_memory_object_stream[str](MOST_FRAMES)

    async def listen() -> None:
        # A frame that is no text has another key.
        with suppress(WebSocketDisconnect, KeyError):
            while True:
                await frames.send(await socket.receive_text())
        group.cancel_scope.cancel()

    async with frames, waiting, anyio.create_task_group() as group:
        group.start_soon(listen)
        async for text in waiting:
            async for event in _answer(memory, text, plain_headers(socket.headers.raw), ask):
                await socket.send_text(event)


async def _answer(memory: SocketMemory, text: str, headers: Headers, ask: Ask) -> AsyncIterator[str]:
    """Yield the events that answer a frame."""
    try:
        asked = memory.read(text)
    except (msgspec.DecodeError, NotFoundError) as error:
        code = {"code": "previous_response_not_found"} if isinstance(error, NotFoundError) else {}
        told = {"error": {"type": "invalid_request_error", "message": str(error), **code}}
        yield error_event(ERROR, msgspec.json.encode(told), {})
        return
    if asked is None:
        return
    if asked.answered:
        for event in memory.begun(asked):
            yield event
        return
    headers = [(name, value) for name, value in headers if name.decode("latin-1").lower() not in asked.headers]
    headers += [(name.encode(), value.encode()) for name, value in asked.headers.items()]
    response = await ask(headers, asked.body)
    pieces: AsyncIterator[bytes] | None = getattr(response, "body_iterator", None)
    if pieces is None or response.status_code >= ERROR:
        whole = getattr(response, "body", b"")
        body = b"".join([piece async for piece in pieces]) if pieces is not None else whole
        yield error_event(response.status_code, body, dict(response.headers))
        return
    parser = sse.Parser()
    async for piece in pieces:
        events = parser.feed(piece)
        memory.hear(asked, events)
        for each in events:
            if each.data != DONE:
                yield each.data.decode(errors="replace")


def error_event(status: int, body: bytes, headers: Mapping[str, str]) -> str:
    """Return an answer that is an error as the event that a socket has for it."""
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        told = {"message": body.decode(errors="replace")}
    error = told.get("error", told) if isinstance(told, dict) else {"message": str(told)}
    error = error if isinstance(error, dict) else {"message": str(error)}
    return msgspec.json.encode({"type": "error", "status": status, "error": error, "headers": dict(headers)}).decode()


def plain_headers(headers: Headers) -> Headers:
    """Return the headers of a socket as those of a request."""
    kept = [(name, value) for name, value in headers if not name.lower().startswith(b"sec-websocket-")]
    kept = [(name, value) for name, value in kept if not value.startswith(b"responses_websockets=")]
    return [*kept, (b"content-type", b"application/json"), (b"accept", b"text/event-stream")]


def _headers(metadata: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for name, value in metadata.items():
        if not isinstance(value, str) or not value.isprintable() or not value.isascii():
            continue
        if name.startswith(HEADER):
            found[name.removeprefix(HEADER).replace("_", "-").lower()] = value
        elif name.startswith(METADATA):
            found[name.lower()] = value
    return found
