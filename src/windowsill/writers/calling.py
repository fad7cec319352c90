"""Sends one request to a model: time-outs, retries and waiting. Whoever cancels it leaves nothing running."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

import anyio
import msgspec

from windowsill.errors import SettingError
from windowsill.models import is_overflow, learn_window
from windowsill.text import printable_line
from windowsill.writers.faults import UnusableError
from windowsill.writers.pace import Pace, backoff

if TYPE_CHECKING:
    import ssl

    import httpx2

T = TypeVar("T")

LARGEST_ANSWER = 4 * 1024 * 1024
"""Bytes: no summary is so long, and what has no end must not fill the memory."""

LONGEST_MESSAGE = 200
"""Characters of what a provider says to a request it does not take; some quote the whole request."""

LONGEST_READ = 65_536
"""Characters of it that are looked at: for a window it names, and for keys that must not be told."""

OK, BAD_REQUEST, SLOW, TOO_LARGE, TOO_MANY, SERVER = 200, 400, 408, 413, 429, 500
NO_ENTRY = frozenset({401, 403})


class Manners(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long and how often a model is asked. All times are in seconds."""

    connect: float = 10.0
    """For a connection to be made."""
    timeout: float = 60.0
    """For one request from its first byte to the last of its answer."""
    patience: float = 150.0
    """For a summary all in all: both ways to ask, all retries, all waiting."""
    retries: int = 2
    """How often a request that failed in passing is sent again."""
    backoff: float = 1.0
    """Before the first retry, give or take; twice as long before each one more."""
    longest_wait: float = 30.0
    """A provider that wants a longer pause is not asked again."""
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
        pause = backoff(self.backoff, attempt, self.longest_wait, random) if asked is None else asked
        return None if attempt >= self.retries or pause > self.longest_wait else pause


class Post(msgspec.Struct, frozen=True):
    """One request. `scrubbed` takes keys out of what is told of it."""

    url: str
    headers: dict[str, str]
    body: bytes
    scrubbed: Callable[[str], str]

    def __repr__(self) -> str:
        return f"Post({len(self.body):,} bytes)"


class BrokenOffError(UnusableError):
    """A streamed answer ended in the middle: what came of it was given already, and it is not asked for again."""


class _PassingError(Exception):
    """Something that may go better the next time."""

    def __init__(self, fault: UnusableError) -> None:
        self.fault = fault
        super().__init__(str(fault))


class Caller:
    """Sends requests as `manners` says."""

    def __init__(
        self,
        manners: Manners,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> None:
        self.manners = manners
        self._sleep = sleep
        self._random = random
        self._pace = Pace(manners.per_minute, clock=clock, sleep=sleep)
        self._trust: dict[bool, ssl.SSLContext] = {}
        """The certificates, which take longer to read than most requests to send."""

    async def turn(self) -> None:
        """Wait until one more call may begin."""
        await self._pace.turn()

    def client(self, *, own_machine: bool = False) -> httpx2.AsyncClient:
        """A client for the requests of one summary or one run, to be used in an `async with`.

        For a server on this machine no proxy is used: it would carry conversation and key into the network and back.
        `UnusableError` when the environment's settings for proxies or certificates are none.
        """
        import httpx2  # noqa: PLC0415  heavy, and most sessions never ask a model

        times = httpx2.Timeout(self.manners.timeout, connect=self.manners.connect)
        try:
            if own_machine not in self._trust:
                self._trust[own_machine] = httpx2.create_ssl_context(trust_env=not own_machine)
            return httpx2.AsyncClient(
                timeout=times, follow_redirects=False, trust_env=not own_machine, verify=self._trust[own_machine]
            )
        except Exception as error:  # noqa: BLE001 whatever an address of a proxy or a file of certificates may cause
            what = f"no connection can be set up ({type(error).__name__})"
            remedy = "check HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"
            raise UnusableError("unreachable", what, remedy=remedy) from None

    async def send(self, client: httpx2.AsyncClient, post: Post, *, limit: int = LARGEST_ANSWER) -> bytes:
        """The answer to a request, of at most `limit` bytes; `UnusableError` when there is none."""

        async def whole() -> bytes:
            pieces: list[bytes] = []
            await self._once(client, post, pieces.append, limit)
            return b"".join(pieces)

        return await self._again(whole)

    async def stream(
        self, client: httpx2.AsyncClient, post: Post, take: Callable[[bytes], None], *, limit: int
    ) -> None:
        """Give the answer to `take` as it comes. `BrokenOffError` when it begins and does not end."""
        begun = False

        def first(piece: bytes) -> None:
            nonlocal begun
            begun = True
            take(piece)

        async def streamed() -> None:
            try:
                await self._once(client, post, first, limit)
            except _PassingError as passing:
                if not begun:
                    raise
                raise _broken_off(passing.fault) from None
            except UnusableError as fault:
                raise _broken_off(fault) if begun and fault.kind != "huge" else fault from None

        await self._again(streamed)

    async def _again(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """What an attempt gives; what fails in passing is tried again, after a pause."""
        tried = 0
        while True:
            await self._pace.turn()
            try:
                return await attempt()
            except _PassingError as passing:
                pause = self.manners.pause(tried, passing.fault.wait, self._random)
                if pause is None:
                    raise passing.fault from None
            tried += 1
            await self._sleep(pause)

    async def _once(self, client: httpx2.AsyncClient, post: Post, take: Callable[[bytes], None], limit: int) -> None:
        import httpx2  # noqa: PLC0415  see above

        refusal: list[bytes] = []
        try:
            with anyio.fail_after(self.manners.timeout):
                async with client.stream("POST", post.url, headers=post.headers, content=post.body) as response:
                    await _read(response, take if response.status_code == OK else refusal.append, limit)
        except (TimeoutError, httpx2.TimeoutException) as error:
            fault = UnusableError("timeout", "the model did not answer in time", remedy="raise timeout=")
            if isinstance(error, httpx2.ConnectTimeout):
                raise _PassingError(fault) from None
            raise fault from None
        except httpx2.TransportError as error:
            what = f"no connection ({type(error).__name__})"
            raise _PassingError(
                UnusableError("unreachable", what, remedy="check the address and the network")
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise UnusableError("unreadable", f"the answer cannot be read ({type(error).__name__})") from None
        if response.status_code != OK:
            raise _refused(response.status_code, response.headers, b"".join(refusal), post)


async def _read(response: httpx2.Response, take: Callable[[bytes], None], limit: int) -> None:
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > limit:
            raise UnusableError("huge", f"the answer is larger than {limit:,} bytes", remedy="ask for less")
        if piece:
            take(piece)


def _broken_off(fault: UnusableError) -> BrokenOffError:
    return BrokenOffError(fault.kind, fault.what, remedy=fault.remedy)


def _refused(status: int, headers: Mapping[str, str], answer: bytes, post: Post) -> Exception:
    if status in NO_ENTRY:
        # What is said here may quote the key.
        return UnusableError("no-key", f"the provider does not accept the key ({status})", remedy="check the key")
    said = _message(answer)
    told = post.scrubbed(said)
    what = f"{status}: {told[:LONGEST_MESSAGE]}"
    if status == TOO_MANY:
        wait = _pause_asked_for(headers, answer)
        remedy = "ask less often: per_minute="
        return _PassingError(UnusableError("rate-limited", what, remedy=remedy, said=told, wait=wait))
    if status == SLOW or status >= SERVER:
        wait = _pause_asked_for(headers, answer)
        return _PassingError(UnusableError("server-error", what, remedy="try later", said=told, wait=wait))
    if status == TOO_LARGE or (status == BAD_REQUEST and is_overflow(said)):
        remedy = "state the model's window"
        return UnusableError("too-long", what, remedy=remedy, window=learn_window(said), said=told)
    return UnusableError("rejected", what, remedy="check the model's name and the address", said=told)


def _pause_asked_for(headers: Mapping[str, str], answer: bytes) -> float | None:
    """The seconds a provider asks to wait: in its headers, or as Google does in the details of its error."""
    wait = retry_after(headers)
    if wait is not None:
        return wait
    try:
        details = msgspec.json.decode(answer, type=_Refusal).error.details
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    found = (_DURATION.fullmatch(each.delay) for each in details)
    return next((float(delay[1]) for delay in found if delay is not None), None)


class _Detail(msgspec.Struct):
    delay: str = msgspec.field(name="retryDelay", default="")


class _Reasons(msgspec.Struct):
    details: list[_Detail] = []


class _Refusal(msgspec.Struct):
    error: _Reasons


_DURATION = re.compile(r"(\d+(?:\.\d+)?)s")
"""How Google writes seconds."""


def _message(answer: bytes) -> str:
    """What an error says, in the form every provider here has, or as plain text."""
    try:
        match msgspec.json.decode(answer):
            case {"error": {"message": str(said)}} | {"error": str(said)} | {"message": str(said)}:
                return printable_line(said[:LONGEST_READ])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return printable_line(answer.decode("utf-8", "replace")[:LONGEST_READ])


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds a provider asks to wait: a number, or a time, which is held against the provider's own clock."""
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    try:
        until = parsedate_to_datetime(headers["retry-after"])
        return max(0.0, (until - parsedate_to_datetime(headers["date"])).total_seconds())
    except (KeyError, ValueError, TypeError):
        return None
