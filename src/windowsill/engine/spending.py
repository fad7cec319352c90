"""What a task has used: tokens, calls, dollars and time, and what its limits leave of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from windowsill.engine.models import Model
from windowsill.engine.result import Event
from windowsill.errors import UnknownModelError
from windowsill.messages import Reply
from windowsill.models import Prices, find, prices
from windowsill.session.session import Session
from windowsill.state.runtime import Resources
from windowsill.state.state import State


class Spending:
    """Counts for one run on top of what the task has used before."""

    def __init__(
        self,
        session: Session,
        model: Model,
        tell: Callable[[Event], None],
    ) -> None:
        self._session = session
        self._model = model
        self._tell = tell
        self._began = time.monotonic()
        self._before = 0.0
        self._price: Prices | None = None

    @property
    def seconds(self) -> float:
        """How long this run has taken."""
        return time.monotonic() - self._began

    def begin(self, state: State, *, before: float) -> None:
        """The task of this state has taken so many seconds `before`."""
        self._before = before
        limits = (state.system.constraints.max_cost, state.task.limits.max_cost)
        if any(limit is not None for limit in limits) and not self._prices.known:
            name = self._model.name or self._session.model.name
            self._tell(Event(kind="warning", text=f"nobody knows what {name!r} costs: the limit of cost does not hold"))

    def used(self, reply: Reply | None = None) -> Resources:
        """What the task has used by now, with this reply."""
        used = self._session.state.value.runtime.resources
        used = msgspec.structs.replace(used, seconds=self._before + self.seconds)
        if reply is None:
            return used
        used = msgspec.structs.replace(used, model_calls=used.model_calls + 1)
        if reply.usage is None:
            return used
        usage, price = reply.usage, self._prices
        return msgspec.structs.replace(
            used,
            input=used.input + usage.input + usage.cache_write,
            output=used.output + usage.output,
            cached=used.cached + usage.cache_read,
            cost=used.cost + (price.cost(usage) if price.known else 0.0),
        )

    @property
    def _prices(self) -> Prices:
        """Those of the model that is asked, which may be another than the session's."""
        if self._price is None:
            session, name = self._session.model, self._model.name
            try:
                asked = session if not name or name == self._session.settings.model else find(name)
            except UnknownModelError:
                asked = session
            self._price = prices(asked)
        return self._price
