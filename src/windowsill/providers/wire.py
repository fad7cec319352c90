"""JSON in and out: exact slices of what came, and errors that name the place and the remedy."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from windowsill.errors import FormatError
from windowsill.messages import json_value

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Decoder(Protocol[T_co]):
    """Reads JSON as values of one type."""

    def decode(self, buf: bytes | msgspec.Raw, /) -> T_co:
        """Return the value."""


class _AnyDecoder:
    """Reads any JSON, with numbers of any size."""

    decode = staticmethod(json_value)


NULL = msgspec.Raw(b"null")

BOM = b"\xef\xbb\xbf"

Fields = dict[str, msgspec.Raw]
fields_decoder: msgspec.json.Decoder[Fields] = msgspec.json.Decoder(Fields)
items_decoder: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
text_decoder: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
any_decoder: Decoder[Any] = _AnyDecoder()

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of a decoder; `decode` says them in words."""


class _Type(msgspec.Struct, gc=False):
    type: str


_type = msgspec.json.Decoder(_Type)

SURROGATES = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""The escapes of JSON; one that is half a surrogate pair without its other half has a group."""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_BYTE = re.compile(r"\(byte (\d+)\)")
_PATH = re.compile(r" - at `\$(.*)`$")
_NESTED = "flatten it, or keep the deep part as text"


def decode(decoder: Decoder[T], raw: bytes | msgspec.Raw, where: str = "") -> T:
    """Decode, or raise a `FormatError` that says where and why it is not what it should be."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise _wrong(str(error), where) from None
    except msgspec.DecodeError as error:
        raise _malformed(str(error), bytes(raw), where) from None
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8: {error.reason}", where=where, remedy="save it as UTF-8") from None
    except RecursionError:
        raise FormatError("nested too deeply", where=where, remedy=_NESTED) from None


def encode(value: Any, where: str = "") -> bytes:
    """Encode a dictionary, a list or objects of an SDK, once.

    Half a surrogate pair, which file names may hold and no JSON can, is written as the text of its escape.
    """
    try:
        try:
            data = _encoder.encode(value)
        except UnicodeEncodeError:
            return _encoder.encode(_writable(value))
        # The encoder writes infinity as null, which is another value.
        return _encoder.encode(_writable(value)) if b"null" in data and _has_infinity(value) else data
    except RecursionError:
        raise FormatError("nested too deeply, or it contains itself", where=where, remedy=_NESTED) from None
    except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
        raise FormatError(
            f"cannot be written as JSON: {error}", where=where, remedy="pass dictionaries, lists, text and numbers"
        ) from None


def escape_halves(text: str) -> str:
    """Return the text with each half of a surrogate pair as its escape, and whole pairs as their character."""
    whole = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return whole.encode(errors="backslashreplace").decode()


def escape_lone(body: bytes) -> bytes:
    """Return JSON with a backslash before each escape that is half a surrogate pair, as `escape_halves` writes it."""
    cuts = [0, *_lone_surrogates(body), len(body)]
    return b"\\".join(body[start:stop] for start, stop in itertools.pairwise(cuts))


def to_bytes(source: Any) -> bytes:
    """Return the JSON of anything a caller may hand over: bytes, text, a dictionary, a list, SDK objects."""
    if isinstance(source, str):
        source = source.encode(errors="backslashreplace")
    if isinstance(source, bytes | bytearray | memoryview):
        body = bytes(source).removeprefix(BOM)
        try:
            str(body, "utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(f"not UTF-8 at byte {error.start}", remedy="save it as UTF-8") from None
        return body
    return encode(source)


def text_or_json(raw: msgspec.Raw) -> str:
    """Return a text, or any other value as its JSON: arguments of a call, which some servers write as the object."""
    try:
        return text_decoder.decode(raw)
    except msgspec.ValidationError:
        return str(raw, "utf-8")


def kind_of(raw: bytes, where: str) -> str:
    """Return the `type` of an object whose other fields could not be read."""
    return decode(_type, raw, where).type


def join_body(
    fields: Mapping[str, bytes | msgspec.Raw], messages: Sequence[bytes], under: bytes = b"messages"
) -> bytes:
    """Join a request body with its messages last, in one go: requests are large, and copies cost."""
    head = b"{" + b"".join(encode(key) + b":" + bytes(value) + b"," for key, value in fields.items())
    head += b'"' + under + b'":['
    if not messages:
        return head + b"]}"
    whole = list(messages)
    whole[0] = head + whole[0]
    whole[-1] += b"]}"
    return b",".join(whole)


def take_out(body: bytes, name: str) -> tuple[Fields, list[bytes] | None]:
    """Take the long list out of a body: return the other fields, and its items, or `None` where it is no list."""
    fields = decode(fields_decoder, body)
    if bytes(memoryview(fields.get(name, NULL))[:1]) != b"[":
        return fields, None
    return fields, [bytes(item) for item in items_decoder.decode(fields.pop(name))]


def read_each(raw: bytes | msgspec.Raw, where: str, read: Callable[[bytes, str], T]) -> tuple[T, ...]:
    """Read each item of a list; the place of an item is put into words only when it has an error."""
    return read_items([bytes(item) for item in decode(items_decoder, raw, where)], where, read)


def read_items(items: Sequence[bytes], where: str, read: Callable[[bytes, str], T]) -> tuple[T, ...]:
    """Read items that were cut apart already."""
    try:
        return tuple([read(item, "") for item in items])
    except FormatError:
        return tuple([read(item, f"{where}[{index}]") for index, item in enumerate(items)])


def plain(value: Any) -> Any:
    """Return an object of an SDK as the JSON it came as: fields that were never set are left out."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        # `parsed` holds the caller's own objects beside the text they came from; providers do not take it back.
        return _without_parsed(dump(mode="json", by_alias=True, exclude_unset=True, warnings=False))
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, msgspec.Struct) or dataclasses.is_dataclass(value):
        return msgspec.to_builtins(value, enc_hook=plain)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
    if hasattr(value, "__iter__"):
        return list(value)
    raise NotImplementedError(f"an object of type {type(value).__name__}")


_encoder = msgspec.json.Encoder(enc_hook=plain)


def _without_parsed(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_parsed(each)
            for key, each in value.items()
            if key not in {"parsed", "parsed_output", "parsed_arguments"}
        }
    return [_without_parsed(each) for each in value] if isinstance(value, list) else value


def _wrong(error: str, where: str) -> FormatError:
    found = _PATH.search(error)
    path = found.group(1) if found else ""
    what = _PATH.sub("", error).replace("`", "")
    return FormatError(what, where=(where + path).removeprefix("."), remedy="compare it with the provider's reference")


def _malformed(error: str, raw: bytes, where: str) -> FormatError:
    if (place := next(_lone_surrogates(raw), None)) is not None:
        return FormatError(
            f"half a surrogate pair (an escape from \\ud800 to \\udfff without its other half) at byte {place}",
            where=where,
            remedy="remove the escape or write \\ufffd in its place",
        )
    found = _BYTE.search(error)
    place = int(found.group(1)) if found else len(raw)
    if "trailing" in error:
        place -= 1  # msgspec counts the first character too many as read
    why = "it ends too early" if "truncated" in error else _BYTE.sub("", error).rpartition(": ")[2].strip()
    return FormatError(
        f"not JSON at byte {place}: {why}", where=where, remedy="pass one JSON document (a .jsonl file: line by line)"
    )


def _lone_surrogates(raw: bytes) -> Iterator[int]:
    return (found.start() for found in SURROGATES.finditer(raw) if found[1])


def _has_infinity(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_infinity(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(_has_infinity(each) for each in value)
    return isinstance(value, float) and not math.isfinite(value)


def _writable(value: Any) -> Any:
    """Return a value in which everything can be written: halves of surrogate pairs escaped, infinity as a number."""
    if isinstance(value, str):
        return escape_halves(value)
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise ValueError("NaN is no number")
        # Every reader of JSON takes it for infinity again.
        return msgspec.Raw(b"1e999" if value > 0 else b"-1e999")
    if hasattr(value, "model_dump") or isinstance(value, msgspec.Struct):
        value = plain(value)
    if isinstance(value, Mapping):
        return {_writable(key): _writable(each) for key, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list | tuple) else value
