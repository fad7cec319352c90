"""Where in a session's tree a conversation stands that a client sends again."""

from __future__ import annotations

from collections.abc import Sequence

from windowsill.history.chain import START, thread
from windowsill.history.entries import ROOT
from windowsill.history.view import message_meta
from windowsill.messages import Message
from windowsill.session.ledger import Ledger


class Threads:
    """The fingerprint of the conversation at every message of a session, on whatever branch it is.

    The metadata of the journal is read once; from then on only what is new.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._places: dict[bytes, int] = {}
        self._responses: dict[str, int] = {}
        self._read = ROOT
        self._before = START
        self._raws: list[bytes | None] = []
        self._links: list[bytes] = []

    def refresh(self) -> None:
        """Take in what was written since."""
        version = self._ledger.history.version
        if self._read == version:
            return
        for entry in self._ledger.journal.walk([(self._read + 1, version)], kinds=("message",)):
            meta = message_meta(entry.meta)
            if meta.leads or "windowsill" in meta.metadata:
                # It says nothing a client must send again: the conversation stands at the message before it.
                continue
            self._places[meta.thread] = entry.seq
            if RESPONSE in meta.metadata:
                self._responses[str(meta.metadata[RESPONSE])] = entry.seq
        self._read = version

    def links(self, messages: Sequence[Message], before: bytes = START) -> list[bytes]:
        """The fingerprint after each message. Those that came in the list before this one are not read again."""
        known = 0
        if before == self._before:
            for message, raw in zip(messages, self._raws, strict=False):
                if message.raw is None or message.raw != raw:
                    break
                known += 1
        links = self._links[:known]
        for message in messages[known:]:
            links.append(thread(links[-1] if links else before, message))
        self._before, self._raws, self._links = before, [message.raw for message in messages], links
        return links

    def find(self, links: Sequence[bytes], before: bytes = START, base: int = ROOT) -> tuple[int, int]:
        """How many messages of a list are known, and the entry of the last of them; `(0, base)` when none is."""
        for count in range(len(links), 0, -1):
            earlier = links[count - 2] if count > 1 else before
            if links[count - 1] != earlier and links[count - 1] in self._places:
                return count, self._places[links[count - 1]]
        return 0, base

    def response(self, id: str) -> int | None:
        """The entry where a provider's response with this id ends."""
        return self._responses.get(id)


RESPONSE = "response"
"""The key under which a message keeps the id of the response it came in, where requests may refer to it."""
