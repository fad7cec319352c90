"""The archive: everything ever said in a session, and in those that belong to it, within reach of a question.

Its index is brought up to the end of the journals in batches that happen whole or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, get_args

import msgspec

from windowsill import providers, telemetry
from windowsill.errors import InputError, NotFoundError, SettingError
from windowsill.extras import extra
from windowsill.history.entries import on_path, path_to
from windowsill.history.view import message_meta
from windowsill.journal.reader import message_of
from windowsill.messages import Message, Role
from windowsill.search.embeddings import Embedder
from windowsill.search.passages import fold_passages, message_passages, split
from windowsill.search.query import index_words, query_terms, valid_text
from windowsill.search.rank import Found, Ranking, fill_answer, load_found, search
from windowsill.secrets import redact
from windowsill.store import SearchIndex, SessionInfo, Store
from windowsill.store.search_index import APART, Filters, IndexedSession, Passage, passage_number
from windowsill.tokens import counter

BATCH = 1_000
"""Entries indexed in one transaction: enough that its commit costs little, few enough that others wait only shortly."""

BATCH_BYTES = 4 << 20
"""And bytes of their messages, so that large outputs take no more memory than small ones; a larger message is alone."""

LOOK_BACK = 200
"""Entries before a batch in which the call of a result is looked for: it is nearly always the one before."""


def catch_up(store: Store, index: SearchIndex, sessions: Iterable[SessionInfo]) -> list[IndexedSession]:
    """Index what the journals hold beyond what is indexed; return how far each session is then."""
    known = {info.id: info for info in sessions}
    # A session that was deleted and made again in the meantime is another one.
    found = [each for each in index.sessions(known) if each.created == known[each.id].created]
    return [_catch_up(store, index, each, known[each.id].version) for each in found]


def passages_between(store: Store, session: str, first: int, last: int, *, redacted: bool = False) -> list[Passage]:
    """Return the passages of the entries from `first` to `last`; with `redacted` as another session may see them."""
    found: list[Passage] = []
    tools: dict[str, str] = {}
    looked_back = False
    for entry in store.read(session, first, last, kinds=("message", "fold")):
        if entry.kind == "fold":
            found += fold_passages(entry, redacted=redacted)
            continue
        message = message_of(entry, store, session)
        tools.update((call.id, call.name) for call in message.calls)
        if not looked_back and any(not each.name and each.tool_use_id not in tools for each in message.results):
            tools, looked_back = _tools_before(store, session, first) | tools, True
        found += message_passages(message, seq=entry.seq, tools=tools, redacted=redacted)
    return found


def _catch_up(store: Store, index: SearchIndex, now: IndexedSession, version: int) -> IndexedSession:
    if now.seq > version:
        # A store that lost its last entries: what is indexed is not what is there.
        index.forget(now.id, seq=0)
        now = _reload(store, index, now)
    while now.seq < version:
        last = _batch_end(store, now.id, now.seq + 1, min(now.seq + BATCH, version))
        passages = passages_between(store, now.id, now.seq + 1, last)
        after = index.add(now, last, passages, [index_words(passage.text) for passage in passages])
        # Another thread or process was faster: its work counts, and this one's was not written.
        now = after or _reload(store, index, now)
    return now


def _batch_end(store: Store, session: str, first: int, last: int) -> int:
    """Return the last entry up to which messages are small enough to be read at once."""
    if first == last:
        return last
    total = 0
    for entry in store.read(session, first, last, kinds=("message",), bodies=False):
        total += message_meta(entry.meta).weight.bytes
        if total > BATCH_BYTES and entry.seq > first:
            return entry.seq - 1
    return last


def _reload(store: Store, index: SearchIndex, old: IndexedSession) -> IndexedSession:
    """Read how far a session is indexed now; one that is gone has nothing more to index."""
    info = store.info(old.id)
    found = [each for each in index.sessions([old.id]) if info and each.created == info.created]
    return found[0] if found else IndexedSession(old.id, old.key, old.created, 1 << 62, 0, 0, old.epoch)


def _tools_before(store: Store, session: str, first: int) -> dict[str, str]:
    """Return the names of the tools called shortly before an entry, by the ids of the calls."""
    found: dict[str, str] = {}
    for entry in store.read(session, max(first - LOOK_BACK, 1), first - 1, kinds=("message",), bodies=False):
        meta = message_meta(entry.meta)
        for call, name in zip(meta.calls, meta.tools, strict=False):
            found.setdefault(call, name)
    return found


DEFAULT_K = 5
"""The number of passages when neither a number nor a budget is given."""

MOST = 1_000_000
"""Passages that are fetched at once, whatever is asked for."""

ROLES = (*get_args(Role), "tool")
"""The roles of passages; `tool` stands for results."""

SOURCE = "archive"
"""The name of the data source in spans."""

Scope: TypeAlias = Literal["session", "project", "user", "all"]
StoredSource: TypeAlias = Literal["stored", "fact", "summary"]
_APPROXIMATE = "bytes/4"


class Archive:
    """Search over everything a session ever held. Its index is made from the journal on demand, and can be remade.

    `scope` says which sessions are looked into: this one, those of the same `project` or `user`, or all of the store.
    `count` gives the tokens of a text, for budgets. With an `embedder`, passages are found by their meaning too.
    """

    def __init__(
        self,
        store: Store,
        session_id: str,
        *,
        scope: Scope = "session",
        embedder: Embedder | None = None,
        ranking: Ranking | None = None,
        count: Callable[[str], int] | None = None,
    ) -> None:
        if scope not in get_args(Scope):
            raise SettingError("scope", scope, "one of " + ", ".join(get_args(Scope)))
        self.session_id = session_id
        self.scope: Scope = scope
        self._store = store
        self._ranking = ranking or Ranking()
        self._count = count or counter(_APPROXIMATE).count
        self._index = store.search_index()
        self._similar = None
        if embedder is not None:
            with extra("embeddings", "search by meaning"):
                from windowsill.search.similarity import Similarity  # noqa: PLC0415 - brings numpy

            self._similar = Similarity(self._index, embedder)

    def store(
        self,
        messages: Iterable[Message | str | Mapping[str, Any]],
        *,
        source: StoredSource = "stored",
        sources: Sequence[str] = (),
        at: float | None = None,
    ) -> list[str]:
        """Keep what no journal holds: documents, facts, summaries; return the ids under which they are found.

        A message with an id replaces what was stored under it; others get the next free one. `sources` are the ids of
        what they were made from. Without `at`, and where a message has no time, it is that of the session's last entry.
        """
        info = self._store.info(self.session_id)
        if info is None:
            raise _missing(self.session_id)
        taken = sum(each.apart for each in self._index.sessions([info.id]))
        made = msgspec.json.encode(list(sources)).decode() if sources else None
        found: list[Passage] = []
        ids: list[str] = []
        given = [message for each in messages for message in providers.read_added(each).messages]
        for place, message in enumerate(given, 1):
            id = message.id or f"{source}-{taken + place}"
            when = at if at is not None else message.at or info.updated
            kept = msgspec.structs.replace(message, id=id, at=when)
            found += message_passages(kept, seq=None, tools={}, source=source, sources=made)
            ids.append(id)
        if not self._index.put(self.session_id, found, [index_words(passage.text) for passage in found]):
            raise _missing(self.session_id)
        return ids

    def retrieve(
        self,
        query: str,
        k: int | None = None,
        *,
        budget: int | None = None,
        roles: Sequence[str] | None = None,
        tools: Sequence[str] | None = None,
        after: float | None = None,
        before: float | None = None,
        sessions: Sequence[str] | None = None,
        within: Sequence[tuple[int, int]] | None = None,
        now: float | None = None,
        by_time: bool = False,
    ) -> list[Found]:
        """Find the passages that answer a question best, best first, or in the order they were said if `by_time`.

        At most `k` (5 unless there is a budget), and no more tokens than `budget`. `roles` may name `tool` for results;
        `within` are first and last entries of the journal. `now` is what "last week" counts from; without it, the time
        of the newest message. What other sessions said is returned without its secrets.
        """
        _check(k, budget, after=after, before=before, now=now)
        most = k or (DEFAULT_K if budget is None else None)
        filters = Filters(roles=_known_roles(roles), tools=_names(tools), after=after, before=before, within=within)
        with telemetry.retrieval(SOURCE, query, session=self.session_id, scope=self.scope) as span:
            scope = self._ready(_names(sessions))
            ranked = search(
                self._index, scope, query, filters=filters, ranking=self._ranking, similar=self._similar, now=now
            )
            alike = self._ranking.alike
            found = fill_answer(self._index, ranked, scope, most=most, budget=budget, count=self._count, alike=alike)
            found = self._with_branches(self._redacted(found, scope))
            found = found if budget is None else list(_fitting(found, budget, self._count))
            span.set(found=len(found))
        return sorted(found, key=lambda each: (each.at, each.session, each.seq or 0, each.lines)) if by_time else found

    def mentions(self, words: Iterable[str], k: int, *, within: Sequence[tuple[int, int]] | None = None) -> list[Found]:
        """Find the passages of the session's branch that hold most of these words, best first.

        Neither neighbours nor circumstances weigh. For a program that looks through them itself: it is several times
        faster than `retrieve`.
        """
        _check(k)
        asked = " ".join(words)
        with telemetry.retrieval(SOURCE, asked, session=self.session_id, scope=self.scope) as span:
            scope = self._ready([self.session_id])
            matched = self._index.match(query_terms(asked), scope, Filters(within=within), min(k, MOST))
            found = load_found(self._index, dict(matched), scope)
            found = [each for each in self._with_branches(found) if not each.abandoned]
            span.set(found=len(found))
        return found

    def catch_up(self) -> None:
        """Index what was added since the last time; every question does so by itself."""
        self._ready(None)

    def forget(self, session: str | None = None) -> None:
        """Remove what the archive holds of a session in scope; its journal stays, and what it adds later is found."""
        wanted = self.session_id if session is None else session
        info = next((info for info in self._visible() if info.id == wanted), None)
        if info is None:
            raise _missing(wanted)
        self._index.forget(wanted, seq=info.version)

    def rebuild(self) -> None:
        """Make the index of all sessions in scope anew from their journals; what was stored by hand stays.

        It mends an index that is damaged, too.
        """
        self._index.mend()
        for info in self._visible():
            self._index.restart(info.id, index_words)
        self.catch_up()

    def close(self) -> None:
        """Release the vectors held in memory; the store stays open. Closing twice is fine."""
        if self._similar:
            self._similar.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ready(self, sessions: Sequence[str] | None) -> list[IndexedSession]:
        """Bring the index up to date and return the sessions to search."""
        within = self._visible()
        if sessions is not None:
            within = [info for info in within if info.id in sessions]
        scope = catch_up(self._store, self._index, within)
        if self._similar:
            self._similar.catch_up(scope)
        return scope

    def _visible(self) -> list[SessionInfo]:
        """Return the sessions in scope; one that names no project or user shares with nobody."""
        own = self._store.info(self.session_id)
        if self.scope == "session":
            return [own] if own else []
        every = self._store.sessions()
        if self.scope == "all":
            return every
        wanted = setting_of(own, self.scope) if own else None
        return [
            info
            for info in every
            if info.id == self.session_id or (wanted is not None and setting_of(info, self.scope) == wanted)
        ]

    def _redacted(self, found: list[Found], scope: Sequence[IndexedSession]) -> list[Found]:
        """Return what other sessions said without its secrets; an archive of no session has no others."""
        whole: dict[tuple[str, int | None, str], list[Passage]] = {}
        clean: list[Found] = []
        for each in found:
            if not self.session_id or each.session == self.session_id:
                clean.append(each)
                continue
            place = (each.session, each.seq, each.message_id)
            if place not in whole:
                whole[place] = self._redacted_passages(each, scope)
            clean.append(_counterpart(each, whole[place]))
        # Several pieces of one secret have the same passage in their place.
        return list({(each.session, each.seq, each.message_id, each.lines, each.text): each for each in clean}.values())

    def _redacted_passages(self, found: Found, scope: Sequence[IndexedSession]) -> list[Passage]:
        """Return the passages of the message of a passage, its secrets taken out of the whole before it is cut."""
        if found.seq is not None:
            return passages_between(self._store, found.session, found.seq, found.seq, redacted=True)
        # What was stored by hand is only here, in pieces.
        session = next(each for each in scope if each.id == found.session)
        keys = [key for key in self._index.allowed(session, Filters()) if passage_number(key) >= APART]
        parts = [each for _, each in sorted(self._index.passages(keys).items()) if each.id == found.message_id]
        text = redact("\n".join(each.text for each in parts))
        return [
            msgspec.structs.replace(parts[0], first=first, last=last, text=part) for first, last, part in split(text)
        ]

    def _with_branches(self, found: list[Found]) -> list[Found]:
        """Mark passages that stand on a branch which their session has left."""
        paths = {}
        for session in {each.session for each in found}:
            info = self._store.info(session)
            paths[session] = path_to(info.version, self._store.jumps(session)) if info else []
        return [
            msgspec.structs.replace(each, abandoned=True)
            if each.seq is not None and not on_path(paths[each.session], each.seq)
            else each
            for each in found
        ]


def _counterpart(found: Found, clean: Sequence[Passage]) -> Found:
    """Return a passage as it stands in its message without secrets: itself, or the one that shares most words."""
    same = [each for each in clean if (each.role, each.tool) == (found.role, found.tool)]
    if any(each.text == found.text for each in same):
        return found
    words = set(found.text.split())
    best = max(same, key=lambda each: len(words.intersection(each.text.split())), default=None)
    if best is None:
        return msgspec.structs.replace(found, text=redact(found.text))
    return msgspec.structs.replace(found, text=best.text, lines=(best.first, best.last))


def _fitting(found: Iterable[Found], budget: int, count: Callable[[str], int]) -> Iterator[Found]:
    """Yield the passages that fit into a budget: a sign may be longer than its secret."""
    for each in found:
        weight = count(each.text)
        if weight <= budget:
            budget -= weight
            yield each


def setting_of(info: SessionInfo, name: str) -> str | None:
    """Return a text among the settings of a session; `None` where it has none."""
    try:
        settings: Any = msgspec.json.decode(info.settings)
    except msgspec.DecodeError:
        return None
    value = settings.get(name) if isinstance(settings, dict) else None
    return value if isinstance(value, str) and value else None


def _check(k: int | None, budget: int | None = None, **times: float | None) -> None:
    """Refuse a number of passages, a budget or a time that cannot be meant."""
    if k is not None and k < 1:
        raise InputError(f"k is {k}", remedy="ask for one passage or more")
    if budget is not None and budget < 0:
        raise InputError(f"budget is {budget}", remedy="give a number of tokens")
    for name, value in times.items():
        if isinstance(value, float) and math.isnan(value):
            raise InputError(f"{name} is {value}", remedy="give seconds since the epoch")


def _names(given: Sequence[str] | None) -> list[str] | None:
    """Return the names that a filter was given; a single one need not be in a list."""
    return None if given is None else [valid_text(name) for name in ([given] if isinstance(given, str) else given)]


def _known_roles(given: Sequence[str] | None) -> list[str] | None:
    roles = _names(given)
    for role in roles or ():
        if role not in ROLES:
            raise InputError(f"there is no role {role!r}", remedy=f"the roles are {', '.join(ROLES)}")
    return roles


def _missing(session: str) -> NotFoundError:
    return NotFoundError(
        f"the archive has no session {session!r} in its scope", remedy="add a message first, or widen the scope"
    )
