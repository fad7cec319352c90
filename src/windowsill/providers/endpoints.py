"""Endpoints of models: provider, address and key. A key is never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

import msgspec

from windowsill import providers
from windowsill.errors import InputError, NotFoundError
from windowsill.providers.faults import HIDDEN, ModelError, hide_keys

OWN_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})

_LOOKS_LIKE_KEY = re.compile(r"sk-(?=\S*\d)\S{16,}|AIza\S{20,}")


PROVIDERS = {spec.name: spec for spec in providers.specs() if spec.api is not None}


class Key:
    """A secret that nobody sees by accident: neither in a repr nor in a log nor in a pickle."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value.strip()

    def __repr__(self) -> str:
        return f"Key({HIDDEN})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a key is not written down")

    def reveal(self) -> str:
        """Return the key itself, for the one header it belongs in."""
        return self._value


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A provider at an address, and the model there; an empty model is that of the conversation."""

    provider: providers.ProviderSpec
    model: str
    url: str
    key: Key | None = None

    @property
    def on_this_machine(self) -> bool:
        """True where requests stay on this machine."""
        return urlsplit(self.url).hostname in OWN_MACHINE

    @property
    def is_official(self) -> bool:
        """True for the provider's own address, false for a server that imitates its API."""
        return self.url == self._api.url

    @property
    def _api(self) -> providers.Api:
        assert self.provider.api is not None
        return self.provider.api

    def name(self, model: str = "") -> str:
        """Return the name of the model with its provider, without the address."""
        return f"{self.provider.name}:{model or self.model}".rstrip(":")

    @property
    def limit_field(self) -> str:
        """The field that states the most tokens of an answer."""
        return self.provider.limit_field(newest=self.is_official)

    def address(self, model: str, *, stream: bool = False) -> str:
        """Return the address to ask this model at."""
        path = (self._api.stream_path if stream else "") or self._api.path
        return self.url + path.replace("{model}", quote(model.removeprefix("models/"), safe=""))

    def headers(self) -> dict[str, str]:
        """Return the headers of a request with the key; raise `ModelError` where there must be one and is not."""
        if self.key is None and self.is_official:
            names = " or ".join(self._api.key_variables)
            raise ModelError("no-key", f"there is no key for {self.provider.name}", remedy=f"set {names}")
        key = "" if self.key is None else self.key.reveal()
        if not (key.isascii() and key.isprintable()) or " " in key:
            # What copying adds to a key would otherwise end in an error that shows it.
            what = f"the key for {self.provider.name} holds characters that no key has"
            raise ModelError("no-key", what, remedy="copy it again, without quotes and line breaks")
        known = {} if self.key is None else {self._api.key_header: self._api.key_prefix + key}
        return {"content-type": "application/json", **self._api.headers, **known}

    def hide_keys(self, text: str) -> str:
        """Hide the key in a text, and everything that looks like one."""
        if self.key is not None and self.key.reveal():
            text = text.replace(self.key.reveal(), HIDDEN)
        return hide_keys(text)


def endpoint(spec: str, *, environment: Mapping[str, str], base_url: str = "", key: str = "") -> Endpoint:
    """Return the endpoint that `provider:model` or `provider:model@http://address` names.

    The key is looked for in `environment` where none is given.
    """
    name, _, rest = spec.strip().partition(":")
    provider = PROVIDERS.get(providers.ALIASES.get(name, name))
    if provider is None or provider.api is None:
        raise NotFoundError(
            f"no provider {hide_keys(name[:40])!r} for a model",
            remedy=f"begin with one of {', '.join(PROVIDERS)}: anthropic:claude-haiku-4-5",
        )
    model, at, address = rest.partition("@http")
    if _LOOKS_LIKE_KEY.match(model.strip()):
        # It would be kept with the session, and stand in every report.
        remedy = f"set {' or '.join(provider.api.key_variables)}, and name a model"
        raise InputError(f"the model of provider {name!r} looks like a key", remedy=remedy)
    named = base_url or (f"http{address}" if at else "")
    url = _check_url(named or environment.get(provider.api.url_variable, "").strip() or provider.api.url)
    found = key or next(
        (environment[each] for each in provider.api.key_variables if environment.get(each, "").strip()), ""
    )
    parts = urlsplit(url)
    if not key and parts.scheme != "https" and parts.hostname not in OWN_MACHINE:
        # A key that was not given for this address does not cross a network in the clear.
        found = ""
    return Endpoint(provider=provider, model=model.strip(), url=url, key=Key(found) if found else None)


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not host:
        raise InputError("the address of a model is not a web address", remedy="give one like http://127.0.0.1:8080/v1")
    if parts.username is not None or parts.query or parts.fragment:
        raise InputError(
            f"the address of a model at {host} holds more than host and path",
            remedy="leave user, password and query out; give a key with key=",
        )
    return url.rstrip("/")
