"""The parts of a Gemini content while they arrive."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from windowsill.formats.streaming import gemini_args
from windowsill.formats.streaming.events import CallDelta, CallStarted, Event, ReasoningDelta, TextDelta
from windowsill.formats.streaming.pieces import Pieces, settle
from windowsill.formats.wire import encode
from windowsill.history.repair.pairing import numbered_id

PLAIN = frozenset({"text", "thought"})
"""Text of these fields alone goes on in the next part of its kind. A part with a signature stands for itself: Google
asks not to join it with another."""

IN_PIECES = frozenset({"partialArgs", "willContinue"})
"""Fields of a call that say how it arrives; the call that has arrived has none of them."""


class Parts:
    """All parts so far, in order."""

    def __init__(self) -> None:
        self.open: Pieces | None = None
        """The text that goes on when more of its kind comes."""
        self.thought = False
        """Whether that text is a thought."""
        self.place = 0
        """Which part that text is."""
        self._all: list[Any] = []
        self._blank: Any = None
        self._call: dict[str, Any] | None = None
        self._seen: Counter[str] = Counter()

    def take(self, part: Any, raw: msgspec.Raw | None, out: list[Event]) -> bool:
        """One more part, with its bytes where they are whole; false when a listener would hear nothing of it."""
        value = part if isinstance(part, dict) else {}
        text, asked = value.get("text"), value.get("functionCall")
        if isinstance(asked, dict):
            return self._take_call(value, asked, raw, out)
        self._call = None
        if isinstance(text, str) and PLAIN.issuperset(value) and isinstance(value.get("thought", False), bool):
            self._take_text(text, value, out)
            return True
        self._close(part, raw)
        if isinstance(text, str):
            if text:
                out.append(_words(text, len(self._all) - 1, thought=bool(value.get("thought"))))
            return value.keys() <= PLAIN | {"thoughtSignature"}
        return False

    def settle(self) -> list[Any]:
        """The parts in their native form. Empty text alone is an answer; beside other parts it is none."""
        parts = self._all or ([] if self._blank is None else [self._blank])
        return [each if isinstance(each, msgspec.Raw) else settle(each) for each in parts]

    def _close(self, part: Any, raw: msgspec.Raw | None) -> None:
        self.open = None
        self._all.append(part if raw is None else msgspec.Raw(bytes(raw)))

    def _take_text(self, text: str, value: dict[str, Any], out: list[Event]) -> None:
        thought = bool(value.get("thought"))
        if not text:
            self._blank = self._blank or value
            return
        if self.open is None or self.thought is not thought:
            self.open, self.thought, self.place = Pieces(), thought, len(self._all)
            self._all.append({**value, "text": self.open})
        self.open.append(text)
        out.append(_words(text, self.place, thought=thought))

    def _take_call(
        self, part: dict[str, Any], asked: dict[str, Any], raw: msgspec.Raw | None, out: list[Event]
    ) -> bool:
        if self._call is None and not asked:
            # The end of a call that came in pieces, said once more.
            return True
        if self._call is None or asked.get("name"):
            in_pieces = not IN_PIECES.isdisjoint(asked)
            self._close({**part, "functionCall": dict(asked)} if in_pieces else part, None if in_pieces else raw)
            place = len(self._all) - 1
            out.append(CallStarted(self._id(asked), _text(asked.get("name")), place))
            if not in_pieces:
                out.append(CallDelta(_arguments(raw, asked), place))
                return PLAIN.union({"functionCall", "thoughtSignature"}).issuperset(part)
            self._call = self._all[place]
        call = self._call
        if call is None:
            return False
        known = self._grow(call, part, asked)
        if not asked.get("willContinue"):
            self._call = None
            out.append(CallDelta(encode(settle(call["functionCall"].get("args", {}))).decode(), len(self._all) - 1))
        return known

    def _grow(self, call: dict[str, Any], part: dict[str, Any], asked: dict[str, Any]) -> bool:
        """Put what arrived to the call that goes on."""
        inner = call["functionCall"]
        call.update({key: value for key, value in part.items() if key != "functionCall"})
        inner.update({key: value for key, value in asked.items() if key not in IN_PIECES})
        for key in IN_PIECES:
            inner.pop(key, None)
        args = inner.setdefault("args", {})
        pieces = asked.get("partialArgs")
        known = True
        for piece in pieces if isinstance(pieces, list) else ():
            known &= isinstance(piece, dict) and isinstance(args, dict) and gemini_args.put(args, piece)
        return known

    def _id(self, asked: dict[str, Any]) -> str:
        name = _text(asked.get("name"))
        number = self._seen[name]
        self._seen[name] += 1
        return _text(asked.get("id")) or numbered_id(name, number)


def _words(text: str, place: int, *, thought: bool) -> Event:
    return ReasoningDelta(text, place) if thought else TextDelta(text, place)


class _Asked(msgspec.Struct, gc=False):
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Call(msgspec.Struct, rename="camel", gc=False):
    function_call: _Asked


_call = msgspec.json.Decoder(_Call)


def _arguments(raw: msgspec.Raw | None, asked: dict[str, Any]) -> str:
    """The arguments as they came."""
    found = encode(settle(asked.get("args"))) if raw is None else bytes(_call.decode(raw).function_call.args)
    return "{}" if found == b"null" else found.decode()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
