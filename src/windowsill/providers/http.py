"""Ask a model over HTTP: address and key, time-outs, retries, rate limits. Whoever cancels leaves nothing running."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlsplit

import anyio
import msgspec

from windowsill import providers
from windowsill.errors import InputError, NotFoundError, SettingError
from windowsill.extras import extra
from windowsill.providers.faults import HIDDEN, OK, ModelError, from_response, hide_keys

if TYPE_CHECKING:
    import ssl

    import httpx2


T = TypeVar("T")

LARGEST_ANSWER = 4 * 1024 * 1024
"""Bytes: no summary is so long, and what has no end must not fill the memory."""

MINUTE = 60.0

SHORTEST_KEY = 7
"""Characters of a key that is hidden: servers on the own machine take any word for one, such as `none` or `ollama`."""

OWN_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})

_LOOKS_LIKE_KEY = re.compile(r"sk-(?=\S*\d)\S{16,}|AIza\S{20,}")


PROVIDERS = {spec.name: spec for spec in providers.specs() if spec.api is not None}


# Endpoints: a key is never shown


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
        if self.key is not None and len(self.key.reveal()) >= SHORTEST_KEY:
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
            provider=hide_keys(name[:40]),
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


# Requests


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time limits, retries and rate of the requests to a model. All times are in seconds."""

    connect: float = 10.0
    """For a connection to be made."""
    timeout: float = 60.0
    """For one request from its first byte to the last of its answer."""
    patience: float = 150.0
    """For a summary all in all: both ways to ask, all retries, all waiting."""
    retries: int = 2
    """The most times a request is sent again after a fault that may pass."""
    backoff: float = 1.0
    """Before the first retry, give or take; twice as long before each one more."""
    longest_wait: float = 30.0
    """The longest pause; a provider that wants a longer one is not asked again."""
    longest_asked: float | None = None
    """The longest pause that a provider may ask for, where that is not `longest_wait`."""
    per_minute: int = 0
    """The most requests in a minute; 0 is no limit."""

    def __post_init__(self) -> None:
        for name in ("connect", "timeout", "patience"):
            if not getattr(self, name) > 0:
                raise SettingError(name, getattr(self, name), "seconds above 0")
        for name in ("retries", "backoff", "longest_wait", "per_minute"):
            if not getattr(self, name) >= 0:
                raise SettingError(name, getattr(self, name), "a number from 0 on")

    def pause(self, attempt: int, asked: float | None, random: Callable[[], float]) -> float | None:
        """Return the seconds to wait before trying once more; `None` when it is not worth it.

        `attempt` counts the retries so far, `asked` are the seconds that the provider asks to be left alone.
        """
        # Beyond any pause that is ever made the power need not be computed.
        whole = min(self.backoff * 2 ** min(attempt, 64), self.longest_wait)
        # From half to the whole of it: many who failed together do not come back together.
        pause = whole * (0.5 + random() / 2) if asked is None else asked
        longest = self.longest_wait if asked is None or self.longest_asked is None else self.longest_asked
        return None if attempt >= self.retries or pause > longest else pause


class Post(msgspec.Struct, frozen=True):
    """One request. `hide_keys` takes keys out of what is told of it."""

    url: str
    headers: dict[str, str]
    body: bytes
    hide_keys: Callable[[str], str]

    def __repr__(self) -> str:
        return f"Post({len(self.body):,} bytes)"


class TooLargeError(ModelError):
    """An answer without end: what came of it is not used."""


class BrokenOffError(ModelError):
    """A streamed answer ended in the middle: what came of it was given already, and it is not asked for again."""


class RateLimiter:
    """Lets at most `most` calls begin in any minute; 0 is no limit. Safe to share between threads and event loops."""

    def __init__(self, most: int, *, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]]) -> None:
        self._clock = clock
        self._sleep = sleep
        self._begun: deque[float] = deque(maxlen=most)
        self._lock = Lock()

    async def turn(self) -> None:
        """Wait until one more call may begin. Whoever is cancelled while waiting has used the place all the same."""
        if not self._begun.maxlen:
            return
        with self._lock:
            now = self._clock()
            full = len(self._begun) == self._begun.maxlen
            start = max(now, self._begun[0] + MINUTE) if full else now
            self._begun.append(start)
        if start > now:
            await self._sleep(start - now)


class HttpClient:
    """Sends requests as `policy` says."""

    def __init__(
        self,
        policy: RetryPolicy,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> None:
        self.policy = policy
        self._sleep = sleep
        self._random = random
        self._limiter = RateLimiter(policy.per_minute, clock=clock, sleep=sleep)
        self._trust: dict[bool, ssl.SSLContext] = {}
        """The certificates, which take longer to read than most requests to send."""

    async def turn(self) -> None:
        """Wait until one more call may begin."""
        await self._limiter.turn()

    def client(self, *, own_machine: bool = False) -> httpx2.AsyncClient:
        """Return a client for the requests of one summary or one run, to be used in an `async with`.

        For a server on this machine no proxy is used: it would carry conversation and key into the network and back.
        Raise `ModelError` when the environment's settings for proxies or certificates cannot be used.
        """
        with extra("http", "calling a model"):
            import httpx2  # noqa: PLC0415  heavy, and most sessions never ask a model

        times = httpx2.Timeout(self.policy.timeout, connect=self.policy.connect)
        try:
            if own_machine not in self._trust:
                self._trust[own_machine] = httpx2.create_ssl_context(trust_env=not own_machine)
            return httpx2.AsyncClient(
                timeout=times, follow_redirects=False, trust_env=not own_machine, verify=self._trust[own_machine]
            )
        except Exception as error:  # noqa: BLE001 whatever an address of a proxy or a file of certificates may cause
            what = f"no connection can be set up ({type(error).__name__})"
            remedy = "check HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"
            raise ModelError("unreachable", what, remedy=remedy) from None

    async def send(self, client: httpx2.AsyncClient, post: Post, *, limit: int = LARGEST_ANSWER) -> bytes:
        """Return the answer to a request, of at most `limit` bytes; raise `ModelError` when there is none."""

        async def attempt() -> bytes:
            pieces: list[bytes] = []
            await self._once(client, post, pieces.append, limit)
            return b"".join(pieces)

        return await self._retry(attempt)

    async def stream(
        self, client: httpx2.AsyncClient, post: Post, take: Callable[[bytes], object], *, limit: int
    ) -> None:
        """Give the answer to `take` as it comes, until that returns true.

        Raise `BrokenOffError` when the answer begins and does not end.
        """
        begun = False

        def take_piece(piece: bytes) -> object:
            nonlocal begun
            begun = True
            return take(piece)

        async def attempt() -> None:
            try:
                await self._once(client, post, take_piece, limit)
            except TooLargeError:
                raise
            except ModelError as error:
                raise BrokenOffError(error.kind, error.what, remedy=error.remedy) if begun else error from None

        await self._retry(attempt)

    async def _retry(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return what an attempt gives; try again after a pause where the fault may pass."""
        retries = 0
        while True:
            await self._limiter.turn()
            try:
                return await attempt()
            except BrokenOffError:
                raise
            except ModelError as error:
                pause = self.policy.pause(retries, error.retry_after, self._random)
                # A request that took all its time is not sent again: it would take as long once more.
                if pause is None or not error.passing or error.kind == "timeout":
                    raise
            retries += 1
            await self._sleep(pause)

    async def _once(self, client: httpx2.AsyncClient, post: Post, take: Callable[[bytes], object], limit: int) -> None:
        import httpx2  # noqa: PLC0415  see above

        refusal: list[bytes] = []
        try:
            with anyio.fail_after(self.policy.timeout):
                async with client.stream("POST", post.url, headers=post.headers, content=post.body) as response:
                    await _read(response, take if response.status_code == OK else refusal.append, limit)
        except httpx2.ConnectTimeout:
            raise ModelError(
                "unreachable", "no connection in time", remedy="check the address, or raise connect="
            ) from None
        except (TimeoutError, httpx2.TimeoutException):
            raise ModelError("timeout", "the model did not answer in time", remedy="raise timeout=") from None
        except httpx2.TransportError as error:
            what = f"no connection ({type(error).__name__})"
            raise ModelError("unreachable", what, remedy="check the address and the network") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ModelError("malformed", f"the answer cannot be read ({type(error).__name__})") from None
        if response.status_code != OK:
            raise from_response(response.status_code, response.headers, b"".join(refusal), post.hide_keys)


async def _read(response: httpx2.Response, take: Callable[[bytes], object], limit: int) -> None:
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > limit:
            raise TooLargeError("malformed", f"the answer is larger than {limit:,} bytes", remedy="ask for less")
        if piece and take(piece):
            return
