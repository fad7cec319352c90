"""The sessions behind a wrapped client: which conversation a request belongs to.

A call of a provider's SDK is complete in itself: its list of messages is the conversation. So the list decides, unless
the program names the conversation.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import msgspec

from windowsill.config.load import Loaded
from windowsill.errors import InputError, StoreError, log
from windowsill.messages import Request
from windowsill.session import Session
from windowsill.session.client_history import Resumed, client_history, list_keys
from windowsill.store import Store, open_store
from windowsill.store.base import check_name

Chooser: TypeAlias = Callable[[dict[str, Any]], str | None]
"""Names the session of a request, given its body; `None` leaves it to the list."""

ByModel: TypeAlias = Callable[[str | None], Mapping[str, Any]]
Options: TypeAlias = Mapping[str, Any] | ByModel
"""Settings of the sessions that are opened: the same for all, or by the model of the request."""

MOST_OPEN = 64
"""Sessions that are kept open; the one that was not used for longest is closed first, and opened again when needed."""

MOST_REOPENED = 8
"""Sessions of an earlier run of the program in which a question is looked for that lost its reminder."""

LONGEST_ID = 400
"""Characters of a session's id that stand in those of the sessions beside it."""

_current: ContextVar[str | None] = ContextVar("windowsill_conversation", default=None)


@contextmanager
def conversation(id: str) -> Iterator[None]:
    """Name the session of the wrapped calls inside this block, for the thread or the task that runs it.

    A call inside it whose list does not continue that session, such as one that asks for a title, is recorded apart.
    """
    check_name("session's name", id)
    token = _current.set(id)
    try:
        yield
    finally:
        _current.reset(token)


def by_model(options: Options | None) -> ByModel:
    """Return the function that gives the settings of a session by its model."""
    return options if callable(options) else lambda _: options or {}


class Conversations:
    """Finds the session that a request continues, or begins one for it.

    `main` is the one conversation of this client, by itself or by its id, or a function that names that of a request;
    without it the list alone decides. Sessions that are not given are opened in `store`, with these `options`.
    """

    def __init__(
        self,
        main: Session | str | Chooser | None,
        *,
        store: Store | str | Path | None = None,
        options: Options | None = None,
        resends: bool = True,
        within: str = "",
    ) -> None:
        self._within = within
        """The part of an id that all sessions have which may be looked at: those of one owner."""
        self.resends = resends
        """The client sends its whole list each time, not only what is new."""
        self._main = main
        self._address = main.journal.store if isinstance(main, Session) else store
        self._options = by_model(options)
        self._opened: Store | None = None
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._reopened = False
        self._spare: Conversations | None = None
        """Conversations in memory, while the store fails."""
        self._lock = Lock()

    def resume(self, request: Request, body: bytes, model: str | None) -> tuple[Session, Resumed]:
        """Take in a request where it belongs, and compose the one to send in its place.

        While the store fails, one that stands alone is taken in in memory, so that what is sent still fits.
        """
        try:
            found = self._resume(request, body, model)
        except StoreError as error:
            if not self.resends:
                raise
            log.warning("a request was not recorded, and is kept in memory alone: %s", error)
            # Held here: another thread may find the store at work again meanwhile.
            spare = self._spare = self._spare or self._in_memory()
            return spare.resume(request, body, model)
        self._spare = None
        return found

    def _in_memory(self) -> Conversations:
        main = self._main
        if not isinstance(main, Session):
            return Conversations(None, store=":memory:", options=self._options)
        own = {"strategy": main.composer.own_strategy, "writer": main.composer.own_writer, "config": False}
        stated = Loaded(settings=main.settings).opening()
        return Conversations(
            None, store=":memory:", options=stated | {key: own[key] for key in own if own[key] is not None}
        )

    def _resume(self, request: Request, body: bytes, model: str | None) -> tuple[Session, Resumed]:
        model = model or request.model
        main = self._named(body, model)
        if main is None and not self.resends:
            raise InputError(
                "no session is named, and the client sends only what is new",
                remedy="name one: `wrap(client, session)`, or `with windowsill.conversation(id)` around the call",
            )
        if main is not None:
            # Two calls at once must not both find the session empty.
            with main.journal.lock:
                history = client_history(main)
                if self._within and history.replaced_by(request):
                    history.replace(request)
                    return main, history.resume(request, model=model)
                if not self.resends or history.continued_by(request):
                    return main, history.resume(request, model=model, resends=self.resends)
        found = self._find(request, main, model)
        if found is None and main is not None and client_history(main).ends_with(request):
            # Looked at last: what began elsewhere with these very words is no end of this session.
            found = main
        found = found or self._begin(main, model)
        return found, client_history(found).resume(request, model=model)

    def open(self, id: str) -> Session:
        """Open a session that exists, or return it when it is open."""
        return self._get(id, None)

    def close(self) -> None:
        """Close what was opened here."""
        with self._lock:
            sessions, self._sessions = list(self._sessions.values()), OrderedDict()
            opened, self._opened = self._opened, None
        for session in sessions:
            session.close()
        if opened is not None:
            opened.close()

    def _named(self, body: bytes, model: str | None) -> Session | None:
        """Return the session that the program names, if it does."""
        main, name = self._main, _current.get()
        if isinstance(main, Session):
            return main if name in (None, main.id) else self._get(str(name), model)
        if name is None:
            name = main(msgspec.json.decode(body)) if callable(main) else main
        return self._get(name, model) if name is not None else None

    def _find(self, request: Request, main: Session | None, model: str | None) -> Session | None:
        """Return the session whose conversation a list continues: at its end, or behind an answer that both have.

        Where the program names a session, only those that stand beside it are looked at: others belong to others.
        """
        shared = None
        for place in self._store().places(list_keys(request)):
            beside = main is None or place.session.startswith(_side(main))
            if not beside or self._within not in place.session:
                continue
            session = self._get(place.session, model)
            history = client_history(session)
            if history.ends_at(place.key):
                return session
            shared = shared or (session if history.has_answer(place.seq) else None)
        if shared is None and main is None and any(message.role == "assistant" for message in request.messages):
            recent = self._recent(model)
            shared = next((session for session in recent if client_history(session).shortened_by(request)), None)
        return shared

    def _recent(self, model: str | None) -> list[Session]:
        """Return the sessions that are open, the last used first; once, those of an earlier run are opened too."""
        if not self._reopened:
            self._reopened = True
            last = [info.id for info in self._store().sessions() if self._within in info.id][:MOST_REOPENED]
            for id in reversed([id for id in last if id not in self._sessions]):
                self._get(id, model)
        with self._lock:
            return list(reversed(self._sessions.values()))

    def _begin(self, main: Session | None, model: str | None) -> Session:
        name = uuid.uuid4().hex
        return self._get(name + self._within if main is None else _side(main) + name[:8], model)

    def _get(self, id: str, model: str | None) -> Session:
        """Return a session that is open, or open it; a new one is for this model, unless another is stated."""
        with self._lock:
            if id in self._sessions:
                self._sessions.move_to_end(id)
                return self._sessions[id]
        opened = self._open(id, model)
        with self._lock:
            session = self._sessions.setdefault(id, opened)
            oldest = self._sessions.popitem(last=False)[1] if len(self._sessions) > MOST_OPEN else None
        if oldest is not None:
            oldest.close()
        return session

    def _open(self, id: str, model: str | None) -> Session:
        if isinstance(self._main, Session):
            return _open_beside(self._main, id)
        store = self._store()
        stated = {} if store.info(id) is not None else {"model": model}
        return Session.open(id, store=store, **{**stated, **self._options(model)})

    def _store(self) -> Store:
        if isinstance(self._address, Store):
            return self._address
        with self._lock:
            if self._opened is None:
                self._opened = open_store(self._address)
            return self._opened


def _open_beside(main: Session, id: str) -> Session:
    """Open another session in the same store, or begin it, with the settings of this one."""
    store, clock = main.journal.store, main.journal.clock
    store.create(id, at=clock(), settings=msgspec.json.encode(main.settings))
    strategy, writer = main.composer.own_strategy, main.composer.own_writer
    return Session.open(id, store=store, clock=clock, strategy=strategy, writer=writer, config=False)


def _side(main: Session) -> str:
    """Return the beginning of the ids of sessions beside another; a very long id is cut, as no id may be longer."""
    return f"{main.id[:LONGEST_ID]}/"
