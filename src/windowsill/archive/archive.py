"""The archive: everything ever said in a session, and in those that belong to it, within reach of a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import msgspec

from windowsill import formats, telemetry
from windowsill.archive.asked import MOST, check_limits, known_roles, names
from windowsill.archive.catching_up import catch_up
from windowsill.archive.embedders import Embedder
from windowsill.archive.filling import fill, found_at
from windowsill.archive.found import Filters, Found
from windowsill.archive.index import Index, Progress
from windowsill.archive.passages import Passage, of_message
from windowsill.archive.place import InMemory, place_of
from windowsill.archive.ranking import Ranking
from windowsill.archive.scope import Scope, check_scope, visible
from windowsill.archive.searching import search
from windowsill.archive.words import query
from windowsill.errors import NotFoundError
from windowsill.history.path import Range, on_path, path_to
from windowsill.messages import Message
from windowsill.store import SessionInfo, Store
from windowsill.tokens import counter

DEFAULT_K = 5
"""How many passages are found when neither a number nor a budget is given."""

SOURCE = "archive"
"""What spans call the place that is searched."""

Kept: TypeAlias = Literal["stored", "fact", "summary"]
_APPROXIMATE = "bytes/4"


class Archive:
    """Search over everything a session ever held. It is made from the journal when it is asked, and can be remade.

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
        check_scope(scope)
        self.session_id = session_id
        self.scope: Scope = scope
        self._store = store
        self._ranking = ranking or Ranking()
        self._count = count or counter(_APPROXIMATE).count
        place = place_of(store)
        self._index = Index(place, mirrors=isinstance(place, InMemory))
        self._similar = None
        if embedder is not None:
            from windowsill.archive.vectors import Similarity  # noqa: PLC0415 - brings numpy, which is an extra

            self._similar = Similarity(self._index, embedder)

    def store(
        self,
        messages: Iterable[Message | str | Mapping[str, Any]],
        *,
        source: Kept = "stored",
        sources: Sequence[str] = (),
        at: float | None = None,
    ) -> list[str]:
        """Keep what no journal holds: documents, facts, summaries; the ids under which they are found.

        A message with an id replaces what was stored under it; others get the next free one. `sources` are the ids of
        what they were made from. Without `at`, and where a message has no time, it is that of the session's last entry.
        """
        info = self._own()
        (now,) = self._index.progress([info]) or (None,)
        made = msgspec.json.encode(list(sources)).decode() if sources else None
        found: list[Passage] = []
        ids: list[str] = []
        for place, message in enumerate(_messages(messages), 1):
            id = message.id or f"{source}-{(now.apart if now else 0) + place}"
            when = at if at is not None else message.at or info.updated
            kept = msgspec.structs.replace(message, id=id, at=when)
            found += of_message(kept, seq=None, tool_of=lambda _: None, source=source, sources=made)
            ids.append(id)
        if not self._index.put(self.session_id, found):
            raise _gone(self.session_id)
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
        """The passages that answer a question best, best first, or in the order they were said if `by_time`.

        At most `k` (5 unless there is a budget), and no more tokens than `budget`. `roles` may name `tool` for results;
        `within` are first and last entries of the journal. `now` is what "last week" counts from; without it, the time
        of the newest message.
        """
        check_limits(k, budget, after=after, before=before, now=now)
        most = k or (DEFAULT_K if budget is None else None)
        filters = Filters(roles=known_roles(roles), tools=names(tools), after=after, before=before, within=within)
        with telemetry.retrieval(SOURCE, query, session=self.session_id, scope=self.scope) as span:
            scope = self._ready(names(sessions))
            ranked = search(
                self._index, scope, query, filters=filters, ranking=self._ranking, similar=self._similar, now=now
            )
            alike = self._ranking.alike
            found = fill(self._index, ranked, scope, most=most, budget=budget, count=self._count, alike=alike)
            found = self._placed(found)
            span.set(found=len(found))
        return sorted(found, key=lambda each: (each.at, each.session, each.seq or 0, each.lines)) if by_time else found

    def mentions(self, words: Iterable[str], k: int, *, within: Sequence[tuple[int, int]] | None = None) -> list[Found]:
        """The passages in which most of these words stand, best first; neither neighbours nor circumstances weigh.

        For a program that looks through them itself: it is several times faster than `retrieve`.
        """
        check_limits(k)
        asked = " ".join(words)
        with telemetry.retrieval(SOURCE, asked, session=self.session_id, scope=self.scope) as span:
            scope = self._ready(None)
            matched = self._index.match(query(asked), scope, Filters(within=within), min(k, MOST))
            found = found_at(self._index, dict(matched), scope)
            span.set(found=len(found))
        return found

    def catch_up(self) -> None:
        """Index what was added since the last time; every question does so by itself."""
        self._ready(None)

    def forget(self, session: str | None = None) -> None:
        """Remove what the archive holds of a session in scope; its journal stays, and what it adds later is found."""
        wanted = self.session_id if session is None else session
        found = [info for info in visible(self._store, self.session_id, self.scope) if info.id == wanted]
        if not self._index.progress(found):
            raise _gone(wanted)
        self._index.drop(wanted, seq=found[0].version, stored=True)

    def rebuild(self) -> None:
        """Make the index of all sessions in scope anew from their journals; what was stored by hand stays.

        It mends an index that is damaged, too.
        """
        self._index.remake_words()
        for each in self._index.progress(visible(self._store, self.session_id, self.scope)):
            self._index.drop(each.id, seq=0, stored=False)
        self.catch_up()

    def close(self) -> None:
        """Release the connections. Closing twice is fine."""
        self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _own(self) -> SessionInfo:
        info = self._store.info(self.session_id)
        if info is None:
            raise _gone(self.session_id)
        return info

    def _ready(self, sessions: Sequence[str] | None) -> list[Progress]:
        within = visible(self._store, self.session_id, self.scope)
        if sessions is not None:
            within = [info for info in within if info.id in sessions]
        scope = catch_up(self._store, self._index, within)
        if self._similar:
            self._similar.catch_up(scope)
        return scope

    def _placed(self, found: list[Found]) -> list[Found]:
        """Passages that say whether they stand on the branch their session is on now."""
        paths = {session: self._path(session) for session in {each.session for each in found}}
        return [
            msgspec.structs.replace(each, abandoned=True)
            if each.seq is not None and not on_path(paths[each.session], each.seq)
            else each
            for each in found
        ]

    def _path(self, session: str) -> list[Range]:
        info = self._store.info(session)
        return path_to(info.version, self._store.jumps(session)) if info else []


def _messages(given: Iterable[Message | str | Mapping[str, Any]]) -> list[Message]:
    return [message for each in given for message in formats.read_added(each).messages]


def _gone(session: str) -> NotFoundError:
    return NotFoundError(
        f"the archive has no session {session!r} in its scope", remedy="add a message first, or widen the scope"
    )
