"""Hosts that a call may reach."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from windowsill.errors import InputError
from windowsill.state.tools.arguments import list_names, quote

LONGEST_HOST = 253
"""Characters of a name in the domain name system."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_ODD = re.compile(r"[\s\\\x00-\x1f\x7f]")
"""What clients read differently: some take a backslash for a slash, some drop tabs and line breaks."""

_ADDRESS = re.compile(r"(0x[0-9a-f]+|\d+)(\.(0x[0-9a-f]+|\d+))*")
"""Hosts that clients read as numbers, in whatever base."""


class Place(NamedTuple):
    """A host, and a port where one is stated."""

    host: str
    port: int | None


class UnclearError(Exception):
    """An address of which clients may read different hosts."""


class Hosts:
    """The only hosts that may be reached: each with its subdomains; `*.example.com` is the subdomains alone."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._stated = tuple(allowed)
        self._allowed = [_entry(each) for each in self._stated]

    def beyond(self, url: str) -> str | None:
        """Why an address may not be reached; `None` when it may. Without a scheme it begins with the host."""
        try:
            place = read(url)
        except UnclearError as error:
            return f"{quote(url)} is no clear address: {error}"
        if any(_covers(entry, only_below, place) for entry, only_below in self._allowed):
            return None
        return (
            f"{quote(place.host)} is not among the allowed domains ({list_names(self._stated, none='there are none')})"
        )


def read(url: str) -> Place:
    """The host an address leads to, in small ASCII letters."""
    text = url.strip(" ")
    if _ODD.search(text):
        raise UnclearError("it holds spaces, backslashes or control characters")
    scheme = _SCHEME.match(text)
    if text.startswith("//") or "://" in text:
        pass
    elif scheme and not text[scheme.end() : scheme.end() + 1].isdigit():
        raise UnclearError("there is no // before its host")
    else:
        text = f"//{text}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UnclearError(str(error)) from None
    return Place(_plain(host), port)


def _plain(host: str) -> str:
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host))
        except ValueError:
            raise UnclearError("its host is no address") from None
    if not host.isascii():
        host = _in_ascii(host)
    host = host.removesuffix(".")
    if len(host) > LONGEST_HOST or not _HOST.fullmatch(host):
        raise UnclearError("its host holds characters that no host has" if host else "it names no host")
    return host


def _in_ascii(host: str) -> str:
    """A host of other letters as the name system has it."""
    import idna  # noqa: PLC0415 - only few hosts need its tables

    try:
        return idna.encode(host, uts46=True).decode()
    except idna.IDNAError:
        raise UnclearError("its host is no name") from None


def _entry(stated: str) -> tuple[Place, bool]:
    only_below = stated.startswith(("*.", "."))
    try:
        return read(stated.removeprefix("*").removeprefix(".")), only_below
    except UnclearError as error:
        raise InputError(
            f"allowed_domains has {stated!r}: {error}", remedy="give hosts: example.com, *.example.com, localhost:8080"
        ) from None


def _covers(entry: Place, only_below: bool, place: Place) -> bool:  # noqa: FBT001 - the two halves of an entry
    if entry.port is not None and entry.port != place.port:
        return False
    if place.host == entry.host:
        return not only_below
    # A number has no subdomains: 9.127.0.0.1 is not below 127.0.0.1.
    return place.host.endswith(f".{entry.host}") and not _ADDRESS.fullmatch(entry.host)
