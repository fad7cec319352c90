"""Hosts that a call may reach, however an address is written."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from windowsill.errors import InputError
from windowsill.state.tools.argument_checks import list_names, quote

LONGEST_HOST = 253
"""Characters of a name in the domain name system."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_ODD = re.compile(r"[\s\\\x00-\x1f\x7f]")
"""Signs that clients read differently: some take a backslash for a slash, some drop tabs and line breaks."""

_TWO_READINGS = re.compile("[\u00df\u03c2\u200c\u200d]")
"""Letters that older clients replace by others, as sharp s by a double s, and newer ones keep."""

_NUMBERS = re.compile(r"(0x[0-9a-f]+|\d+)(\.(0x[0-9a-f]+|\d+))*")
"""Hosts that clients read as numbers, in whatever base."""


class UnclearError(Exception):
    """An address of which clients may read different hosts."""


class _Place(NamedTuple):
    host: str
    port: int | None


class Hosts:
    """The only hosts that may be reached: each with its subdomains; `*.example.com` is the subdomains alone."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._stated = tuple(allowed)
        self._allowed = [_read_entry(each) for each in self._stated]

    def beyond(self, url: str) -> str | None:
        """Return why an address may not be reached; `None` when it may. Without a scheme it begins with the host."""
        try:
            place = _read(url)
        except UnclearError as error:
            return f"{quote(url)} is not a clear address: {error}"
        if any(_covers(entry, place, only_below=only_below) for entry, only_below in self._allowed):
            return None
        allowed = list_names(self._stated, none="there are none")
        return f"{quote(place.host)} is not among the allowed domains ({allowed})"


def _read(url: str) -> _Place:
    """Read the host an address leads to, in small ASCII letters."""
    text = url.strip(" ")
    if _ODD.search(text):
        raise UnclearError("it holds spaces, backslashes or control characters")
    if not text.startswith("//") and "://" not in text:
        scheme = _SCHEME.match(text)
        if scheme and not text[scheme.end() : scheme.end() + 1].isdigit():
            raise UnclearError("there is no // before its host")
        text = f"//{text}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        if ":" in host:
            return _Place(str(ipaddress.IPv6Address(host)), port)
        if _TWO_READINGS.search(host):
            raise UnclearError("its host has letters that clients read differently")
        host = (host if host.isascii() else host.encode("idna").decode()).removesuffix(".")
    except ValueError as error:
        raise UnclearError(str(error)) from None
    if len(host) > LONGEST_HOST or not _HOST.fullmatch(host):
        raise UnclearError("its host holds characters that no host has" if host else "it names no host")
    return _Place(host, port)


def _read_entry(stated: str) -> tuple[_Place, bool]:
    try:
        return _read(stated.removeprefix("*").removeprefix(".")), stated.startswith(("*.", "."))
    except UnclearError as error:
        raise InputError(
            f"allowed_domains has {stated!r}: {error}", remedy="give hosts: example.com, *.example.com, localhost:8080"
        ) from None


def _covers(entry: _Place, place: _Place, *, only_below: bool) -> bool:
    if entry.port is not None and entry.port != place.port:
        return False
    if place.host == entry.host:
        return not only_below
    # A number has no subdomains: 9.127.0.0.1 is not below 127.0.0.1.
    return place.host.endswith(f".{entry.host}") and not _NUMBERS.fullmatch(entry.host)
