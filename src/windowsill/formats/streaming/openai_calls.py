"""The tool calls of an OpenAI message while they arrive."""

from __future__ import annotations

from typing import Any

from windowsill.formats.streaming.events import CallDelta, CallStarted, Event
from windowsill.formats.streaming.pieces import Pieces, grow, joined, settle


class OpenCall:
    """One call: its fields so far, and its arguments."""

    __slots__ = ("arguments", "fields", "id", "place")

    def __init__(self, fields: dict[str, Any], place: int) -> None:
        self.place = place
        self.id = _text(fields.get("id"))
        self.fields: dict[str, Any] = {"id": self.id, "type": fields.get("type") or "function"}
        grow(self.fields, {key: value for key, value in fields.items() if key not in {"index", "id", "type"}})
        asked = self.asked
        asked.setdefault("name", Pieces())
        said = asked.setdefault("input" if "custom" in self.fields else "arguments", Pieces())
        self.arguments: Pieces | None = said if isinstance(said, Pieces) else None

    @property
    def asked(self) -> dict[str, Any]:
        """The part with name and arguments."""
        key = "custom" if isinstance(self.fields.get("custom"), dict) else "function"
        if not isinstance(self.fields.get(key), dict):
            self.fields[key] = {}
        part: dict[str, Any] = self.fields[key]
        return part

    @property
    def name(self) -> str:
        """What is called."""
        name = self.asked["name"]
        return joined(name) if isinstance(name, Pieces) else ""


class Calls:
    """All calls of a message, in the order in which they began."""

    def __init__(self) -> None:
        self.known: dict[int, OpenCall] = {}
        self._all: list[OpenCall] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def settle(self) -> list[Any]:
        """The calls in their native form."""
        return [settle(call.fields) for call in self._all]

    def take(self, piece: dict[str, Any], out: list[Event]) -> None:
        """One more piece: the first has id and name, the others more of the arguments."""
        id = _text(piece.get("id"))
        call = self._meant(piece.get("index"), id)
        if call is None:
            call = OpenCall(piece, len(self._all))
            self._all.append(call)
            index = piece.get("index")
            self.known[index if isinstance(index, int) else call.place] = call
            out.append(CallStarted(call.id, call.name, call.place))
        else:
            _continue(call, piece, id)
        if text := _arguments(piece):
            out.append(CallDelta(text, call.place))

    def _meant(self, index: Any, id: str) -> OpenCall | None:
        """The call a piece belongs to. Some servers give no index, or the same to all: another id is another call."""
        call = self.known.get(index) if isinstance(index, int) else next(reversed(self._all), None)
        return None if call is not None and id and call.id and id != call.id else call


def _continue(call: OpenCall, piece: dict[str, Any], id: str) -> None:
    # Some servers repeat id and name with every piece, or send them empty.
    news = {key: value for key, value in piece.items() if value and key not in {"index", "id"}}
    for key in ("function", "custom"):
        part = news.get(key)
        if isinstance(part, dict) and part.get("name") == call.name:
            news[key] = {name: value for name, value in part.items() if name != "name"}
    if id and not call.id:
        call.id = call.fields["id"] = id
    grow(call.fields, news)


def _arguments(piece: dict[str, Any]) -> str:
    for key, field in (("function", "arguments"), ("custom", "input")):
        part = piece.get(key)
        if isinstance(part, dict) and isinstance(part.get(field), str):
            return str(part[field])
    return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
