"""Choose where a request goes and with which headers: pure."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Mapping
from typing import TypeAlias
from urllib.parse import urlsplit

from windowsill.clients.exchange import route
from windowsill.errors import InputError, SettingError

Headers: TypeAlias = list[tuple[bytes, bytes]]

UPSTREAMS = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "gemini": "https://generativelanguage.googleapis.com",
}

OWNERS = {"responses": "openai", "deepseek": "openai"}
"""Formats whose provider has another name."""

HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade host content-length".split()
)
"""Headers that hold for one connection only."""

OURS = b"x-windowsill-"

LARGEST_BODY = 128 * 1024 * 1024
"""Bytes of a request, packed or not: several times what any provider takes."""

NOT_THERE = (404, 405, 501)
"""Statuses of a server that does not count."""

COUNTS = {"/count_tokens": "anthropic", "/input_tokens": "responses", ":countTokens": "gemini"}
"""Ends of paths at which providers count the tokens of a request, and the format of that request."""


LONGEST_PREFIX = 4
"""Parts of a path before which a name stands: nothing, the letter, the name, the rest."""

UNVERSIONED = ("/messages", "/chat", "/responses", "/models")
"""Paths of Anthropic and OpenAI without the version."""


def parse_upstreams(stated: Iterable[str]) -> dict[str, str]:
    """Return where each provider is: the known places, and those stated as `NAME=URL`."""
    found = dict(UPSTREAMS)
    for each in stated:
        name, equals, url = each.partition("=")
        if name not in UPSTREAMS or not equals or not is_address(url):
            raise SettingError("upstream", each, f"NAME=URL with one of {', '.join(UPSTREAMS)} and http:// or https://")
        found[name] = url.rstrip("/")
    return found


def is_address(url: str) -> bool:
    """Tell whether a text is the address of a server: scheme and host, and a port that can be."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def split_prefixes(path: str) -> tuple[str, str, str]:
    """Return the session and the provider that `/s/NAME/p/PROVIDER/v1/messages` states, and the path without them."""
    found = {"s": "", "p": ""}
    while len(parts := path.split("/", 3)) == LONGEST_PREFIX and parts[1] in found and parts[2]:
        found[parts[1]], path = parts[2], f"/{parts[3]}"
    return found["s"], found["p"], path


def provider_of(path: str, headers: Mapping[str, str]) -> str:
    """Tell which provider an address belongs to; `headers` have names in lower case."""
    if (found := route(path)) is not None:
        return OWNERS.get(found.format, found.format)
    if path.startswith("/v1beta") or "x-goog-api-key" in headers:
        return "gemini"
    if "anthropic-version" in headers or "x-api-key" in headers or path.startswith(("/api/", "/v1/messages")):
        return "anthropic"
    return "openai"


def join_address(upstream: str, path: str, query: str) -> str:
    """Return the address upstream; a version at the end of the upstream's own path is not said twice.

    Some clients expect it in their base URL: where neither has it, it is added.
    """
    version = path.split("/", 2)[1] if path.startswith("/") else ""
    if version and upstream.endswith(f"/{version}"):
        path = path[len(version) + 1 :]
    elif f"/{version}" in UNVERSIONED and not urlsplit(upstream).path:
        path = f"/v1{path}"
    return f"{upstream}{path}" + (f"?{query}" if query else "")


def forwarded(headers: Headers, *, without: frozenset[bytes] = frozenset()) -> Headers:
    """Return the headers that go on to the other side, as they came and in their order."""
    named = {
        each.strip().lower() for name, value in headers if name.lower() == b"connection" for each in value.split(b",")
    }
    gone = HOP | without | named
    return [(name, value) for name, value in headers if name.lower() not in gone and not name.lower().startswith(OURS)]


def unpack(body: bytes, encoding: str) -> bytes:
    """Return the bytes of a packed request; `InputError` for what cannot be unpacked, or is larger than allowed."""
    try:
        match encoding.strip().lower():
            case "" | "identity":
                return body
            case "gzip" | "x-gzip":
                return _bounded(zlib.decompressobj(16 + zlib.MAX_WBITS), body)
            case "deflate":
                return _bounded(zlib.decompressobj(), body)
            case "zstd":
                return _unpack_zstd(body)
    except (zlib.error, gzip.BadGzipFile, EOFError, ValueError) as error:
        raise InputError(f"the request is not {encoding} ({error})") from None
    raise InputError(f"requests packed with {encoding!r} are not read", remedy="send them as they are, gzip or zstd")


def _bounded(unpacker: zlib._Decompress, body: bytes) -> bytes:
    data = unpacker.decompress(body, LARGEST_BODY + 1)
    if len(data) > LARGEST_BODY:
        raise ValueError("more than a request may have")
    return data


def _unpack_zstd(body: bytes) -> bytes:
    import zstandard  # noqa: PLC0415 - one client packs its requests like this

    try:
        with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
            data = reader.read(LARGEST_BODY + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if len(data) > LARGEST_BODY:
        raise ValueError("more than a request may have")
    return bytes(data)
