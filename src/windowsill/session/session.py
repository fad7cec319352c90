"""The session: the object a user holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from anyio import get_cancelled_exc_class, to_thread

from windowsill import formats, strategies
from windowsill.budget import Size
from windowsill.compose.payload import Payload, Statistics
from windowsill.config import Loaded, Settings, changed, load, read_settings, tuned
from windowsill.errors import InputError
from windowsill.messages import Request
from windowsill.session.composing import Composer
from windowsill.session.desk import Desk, Source
from windowsill.session.ledger import Ledger
from windowsill.session.lens import Lens
from windowsill.session.resuming import Resumed, Resumption, without_system
from windowsill.session.taking import Taking
from windowsill.store import Store, open_store
from windowsill.strategies import Strategy

if TYPE_CHECKING:
    from windowsill.session.tools import Toolbox

Config: TypeAlias = Loaded | Path | str | bool

NAME_LIMIT = 500


class Session(Taking):
    """A conversation that is kept whole, and what a model sees of it.

    Made with `Session.open`. Threads may share it; processes may open the same session at the same time.
    """

    def __init__(self, id: str, *, store: Store, settings: Settings, clock: Callable[[], float], owned: bool) -> None:
        self.id = id
        self.settings = settings
        self._store = store
        self._owned = owned
        self._clock = clock
        if settings.format is not None:
            formats.get(settings.format)
        fitted = tuned(settings)
        self._strategy = strategies.get(fitted.strategy)
        lens = Lens(fitted, store)
        self._ledger = Ledger(store, id, lens.scale, clock)
        desk = Desk(fitted.writer, load=self._ledger.journal.load_items, wait=fitted.wait)
        self._composer = Composer(self._ledger, lens, settings, self._strategy, desk)
        self._resumption = Resumption(self._ledger, self._composer)
        if settings.recall is not None:
            from windowsill.session.recalling import Recalling  # noqa: PLC0415 - most sessions bring nothing back

            self._composer.bringing.recalling = Recalling(lambda: self.archive)
        self._composer.bringing.layering = lambda: self.layering
        self._ledger.phase = lambda: self.state.value.runtime.phase
        self._ledger.dress(self._ledger.view)

    @classmethod
    def open(
        cls,
        id: str,
        *,
        model: str | None = None,
        window: int | None = None,
        budget: Size | None = None,
        high: Size | None = None,
        low: Size | None = None,
        strategy: str | Strategy | None = None,
        writer: Source | None = None,
        store: Store | str | Path | None = None,
        clock: Callable[[], float] = time.time,
        config: Config | None = None,
        **settings: Any,
    ) -> Session:
        """Open a session, or begin one. What is stated here is kept with it and need not be stated again.

        `config` is a settings file, `True` for the nearest one and the environment, or what `config.load` gave; what is
        stated beside it wins. Without it no file is read.

        `store` is a folder, a database file, `":memory:"`, or a store; without it sessions are kept in `.windowsill/`
        of the current folder if there is one, else in the user's data folder.
        """
        if not id or len(id) > NAME_LIMIT:
            raise InputError(f"a session's name has {len(id)} characters", remedy=f"give 1 to {NAME_LIMIT}")
        plug_in = strategy if strategy is not None and not isinstance(strategy, str) else None
        stated = {
            "model": model,
            "window": window,
            "budget": budget,
            "high": high,
            "low": low,
            "strategy": strategy if isinstance(strategy, str) else None,
            "writer": writer if isinstance(writer, str) else None,
            **settings,
        }
        if config:
            stated = {**_opening(config), **{name: value for name, value in stated.items() if value is not None}}
        owned = not isinstance(store, Store)
        place = store if isinstance(store, Store) else open_store(store)
        try:
            return cls._opened(id, place, stated, (plug_in, writer), clock, owned=owned)
        except BaseException:
            if owned:
                place.close()
            raise

    @classmethod
    def _opened(
        cls,
        id: str,
        store: Store,
        stated: dict[str, Any],
        plug_ins: tuple[Strategy | None, Source | None],
        clock: Callable[[], float],
        *,
        owned: bool,
    ) -> Session:
        known = store.info(id)
        before = read_settings(known.settings, id) if known else Settings()
        after = changed(before, stated)
        # An unknown model, strategy or format is refused here, before anything is written.
        session = cls(id, store=store, settings=after, clock=clock, owned=owned)
        if known is None:
            store.create(id, at=clock(), settings=msgspec.json.encode(after))
        elif after != before:
            store.set_settings(id, msgspec.json.encode(after))
        strategy, writer = plug_ins
        if strategy is not None:
            session._strategy = session._composer.strategy = strategy
        if writer is not None and not isinstance(writer, str):
            session._composer.fitting.desk.use(writer)
        return session

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what is pending and release the store, if this session opened it."""
        # Before the lock too: a request of another thread may hold it while it waits for a summary.
        self._composer.fitting.desk.close()
        with self._ledger.lock:
            self._composer.fitting.desk.close()
            self._ledger.flush()
            self._lens.save()
            if self._owned:
                self._store.close()

    # Composing

    async def compose(
        self,
        *,
        system: Any = None,
        tools: Sequence[Any] = (),
        dynamic: str | None = None,
        max_output: int | None = None,
        format: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Payload:
        """The request to send now: valid for its provider and within the budget.

        `dynamic` is context for this step (a goal, retrieved knowledge). It is recorded at the end of the history,
        where it leaves the cached prefix whole. `params` are further fields of the request body.
        """
        compose = partial(
            self.compose_sync,
            system=system,
            tools=tools,
            dynamic=dynamic,
            max_output=max_output,
            format=format,
            params=params,
        )
        if not self._composer.fitting.desk.asks:
            # Only a model may be waited for; without one a thread would cost more than it saves.
            return compose()
        try:
            return await to_thread.run_sync(compose, abandon_on_cancel=True)
        except get_cancelled_exc_class():
            # Whoever gives up a turn does not wait for its summary; what is being composed ends in its thread.
            self._composer.fitting.desk.close()
            raise

    def compose_sync(
        self,
        *,
        system: Any = None,
        tools: Sequence[Any] = (),
        dynamic: str | None = None,
        max_output: int | None = None,
        format: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Payload:
        """`compose` for code without an event loop, or inside one."""
        with self._ledger.lock:
            self._ledger.refresh()
            if dynamic:
                self._add_dynamic(dynamic)
            name = formats.get(format or self.format).name
            fixed = self._composer.fix(system, tools, params or {}, name)
            return self._composer.compose(fixed, format=name, max_output=max_output, model_name=self.settings.model)

    def resume(self, request: Request, *, model: str | None = None, resends: bool | None = None) -> Resumed:
        """Take in the request of a client that keeps its own list, and compose the one to send in its place.

        The session goes to where the list continues it, on whatever branch that is, and adds what is new; an edited
        list becomes a branch. `resends` says whether the client sends its whole list each time or only what is new;
        without it that is told from the list. `model` is named where the request does not name it.
        """
        with self._ledger.lock:
            return self._resumption.resume(request, model=model, resends=resends)

    def reduce(
        self, *, system: Any = None, tools: Sequence[Any] = (), format: str | None = None, to: Size | None = None
    ) -> Statistics:
        """Reduce now what is too large for a request with these parts, and say what that did.

        With `to`, tokens or a share of what a request may have, reduce to that, or as far as possible.
        """
        with self._ledger.lock:
            self._ledger.refresh()
            name = formats.get(format or self.format).name
            return self._composer.reduce(self._composer.fix(system, tools, {}, name), name, to)

    def follow(self, request: Request, *, resends: bool = True) -> None:
        """Take in what is new in a client's list, and let summaries that will soon be needed be written meanwhile."""
        with self._ledger.lock:
            system, messages = without_system(request)
            self._resumption.take(messages, resends=resends)
            if self._ledger.view.items:
                fixed = self._composer.fix(system, request.tools, request.rest, request.format)
                self._composer.prepare(fixed, request.format)

    def compose_once(
        self, *, system: Any, tools: Sequence[Any], params: Mapping[str, Any], max_output: int | None, model: str | None
    ) -> Payload:
        """Compose for a caller who keeps no session: what is hidden grows in steps counted from the start."""
        with self._ledger.lock:
            name = self.format
            fixed = self._composer.fix(system, tools, params, name)
            return self._composer.compose(fixed, format=name, max_output=max_output, model_name=model, anchored=True)

    def _add_dynamic(self, text: str) -> None:
        view = self._ledger.view
        for item in reversed(view.items):
            shown = view.read(item)
            # What was recalled for the step stands behind its context.
            if shown.metadata.get("windowsill") != "recalled":
                if shown.text == text and shown.metadata.get("windowsill") == "dynamic":
                    return
                break
        self.add(text, metadata={"windowsill": "dynamic"})

    @cached_property
    def tools(self) -> Toolbox:
        """Tools with which the model reads and searches what left its window."""
        from windowsill.session.tools import Toolbox  # noqa: PLC0415 - most sessions offer none

        return Toolbox(self)


def _opening(config: Config) -> dict[str, Any]:
    """What a configuration states for a session."""
    if isinstance(config, Loaded):
        return config.opening()
    return load(file=None if isinstance(config, bool) else config).opening()
