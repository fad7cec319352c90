"""Where in a session's tree a conversation stands that a client sends again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from windowsill.history.chain import START, follow, gist, said
from windowsill.history.entries import ROOT
from windowsill.history.view import message_meta
from windowsill.messages import ORIGIN, Message
from windowsill.session.ledger import Ledger

RESPONSE = "response"
"""The key under which a message keeps the id of the response it came in, where requests may refer to it."""

FEWEST_SHARED = 4
"""Messages at the end of the history that a list without its beginning must hold: whoever trims keeps the latest turns,
and fewer may be chance."""


class Threads:
    """The fingerprint of the conversation at every message of a session, on whatever branch it is.

    The metadata of the journal is read once; from then on only what is new.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._places: dict[bytes, int] = {}
        self._gists: dict[int, bytes] = {}
        self._responses: dict[str, int] = {}
        self._read = ROOT
        self._raws: list[bytes | None] = []
        self._pieces: list[tuple[bytes, ...]] = []

    def refresh(self) -> None:
        """Take in what was written since."""
        version = self._ledger.version
        if self._read == version:
            return
        for entry in self._ledger.walk([(self._read + 1, version)], kinds=("message",)):
            meta = message_meta(entry.meta)
            if meta.leads or ORIGIN in meta.metadata:
                # It says nothing a client must send again: the conversation stands at the message before it.
                continue
            self._places[meta.thread] = entry.seq
            self._gists[entry.seq] = meta.gist
            if RESPONSE in meta.metadata:
                self._responses[str(meta.metadata[RESPONSE])] = entry.seq
        self._read = version

    def links(self, messages: Sequence[Message], before: bytes = START) -> list[bytes]:
        """The fingerprint of the conversation after each message of a list."""
        links: list[bytes] = []
        for message, pieces in zip(messages, self._said(messages), strict=True):
            before = follow(before, message.role, pieces)
            links.append(before)
        return links

    def find(self, links: Sequence[bytes], before: bytes = START, base: int = ROOT) -> tuple[int, int]:
        """How many messages of a list are known, and the entry of the last of them; `(0, base)` when none is."""
        for count in range(len(links), 0, -1):
            earlier = links[count - 2] if count > 1 else before
            if links[count - 1] != earlier and links[count - 1] in self._places:
                return count, self._places[links[count - 1]]
        return 0, base

    def find_end(self, messages: Sequence[Message], version: int) -> tuple[int, int]:
        """How many messages of a list lead to the end at `version`, when its client dropped older ones, and that end.

        Its last messages must be those that the history ends with. Before them may stand the first message of the
        history: some clients keep the task. A list with any other hole was edited, and must not be taken for trimmed.
        """
        gists = [gist(pieces) for pieces in self._said(messages)]
        spoken = [index for index, each in enumerate(gists) if each]
        tail = self._tail(version, len(spoken))
        for count in range(len(spoken), FEWEST_SHARED - 1, -1):
            shared = 0
            for index, (_, other) in zip(reversed(spoken[:count]), tail, strict=False):
                if gists[index] != other:
                    break
                shared += 1
            before = [gists[index] for index in spoken[: count - shared]]
            if shared >= FEWEST_SHARED and (not before or before == [self._first(version)]):
                return spoken[count - 1] + 1, tail[0][0]
        return 0, ROOT

    def response(self, id: str) -> int | None:
        """The entry where a provider's response with this id ends."""
        return self._responses.get(id)

    def _said(self, messages: Sequence[Message]) -> list[tuple[bytes, ...]]:
        """What each message says. Those that came in the list before this one are not looked at again."""
        same = 0
        for message, raw in zip(messages, self._raws, strict=False):
            if message.raw is None or message.raw != raw:
                break
            same += 1
        self._pieces = [*self._pieces[:same], *map(said, messages[same:])]
        self._raws = [message.raw for message in messages]
        return self._pieces

    def _tail(self, version: int, most: int) -> list[tuple[int, bytes]]:
        """The last messages of a path, the last first: where each stands, and what it says."""
        return list(itertools.islice(self._backwards(version), most))

    def _backwards(self, version: int) -> Iterator[tuple[int, bytes]]:
        for first, last in reversed(self._ledger.path(version)):
            for seq in range(last, first - 1, -1):
                if found := self._gists.get(seq):
                    yield seq, found

    def _first(self, version: int) -> bytes | None:
        """What the first message of a path says."""
        return next(
            (
                found
                for first, last in self._ledger.path(version)
                for seq in range(first, last + 1)
                if (found := self._gists.get(seq))
            ),
            None,
        )
