"""Send requests to a model: time-outs, retries, pauses and rate limits. Whoever cancels leaves nothing running."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import anyio
import msgspec

from windowsill.errors import SettingError
from windowsill.extras import extra
from windowsill.providers.faults import OK, ModelError, from_response

if TYPE_CHECKING:
    import ssl

    import httpx2


T = TypeVar("T")

LARGEST_ANSWER = 4 * 1024 * 1024
"""Bytes: no summary is so long, and what has no end must not fill the memory."""

MINUTE = 60.0


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
