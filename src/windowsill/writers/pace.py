"""How often a model is asked, and how long it is left alone after it failed."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from threading import Lock

MINUTE = 60.0


def backoff(first: float, tried: int, longest: float, random: Callable[[], float]) -> float:
    """From half to the whole of a time that doubles: many who failed together do not come back together."""
    whole: float = min(first * 2**tried, longest)
    return whole * (0.5 + random() / 2)


class Pace:
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
