"""Taking things into a session: messages, replies with their usage, and what providers say about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from windowsill import formats
from windowsill.errors import InputError
from windowsill.history.entries import Entry
from windowsill.history.history import Draft
from windowsill.messages import Cleared, Mark, Message, OutputRef, Usage
from windowsill.session import provider, undo
from windowsill.session.adding import again_after_conflicts, write
from windowsill.session.changing import Changing
from windowsill.session.composing import Sent
from windowsill.session.referring import referring
from windowsill.writers.metering import meter

if TYPE_CHECKING:
    from windowsill.state.changes import Change

TELLING = 20
"""How many items at the start are asked for the session's format."""


class Taking(Changing):
    """The part of a session that takes in what was said."""

    def add(
        self,
        value: Any,
        *,
        id: str = "",
        at: float | None = None,
        marks: Iterable[Mark] = (),
        metadata: Mapping[str, Any] | None = None,
        format: str | None = None,
        after: str | None = None,
        sent: Sent | None = None,
        outputs: Mapping[str, OutputRef] | None = None,
        state: Sequence[Change] = (),
    ) -> str:
        """Add a message, a provider's reply with its usage, an SDK object, or plain text from the user.

        The id of the message, of the last one where a reply is several; when it returns, it is on disk. `after` is the
        message it follows: the session goes there first when it has moved on. `sent` is the request it answers, where
        that is not the last one. `outputs` are, by call id, the refs of outputs that `session.outputs` keeps whole.
        `state` are changes of the layered state that are written together with it.
        """
        added = self._read(value, format)
        if not added.messages or (len(added.messages) > 1 and (id or isinstance(value, (list, tuple)))):
            raise InputError(f"this holds {len(added.messages)} messages", remedy="use `extend` for a list")
        # A reply may be several messages, where a provider gives reasoning, words and calls one by one.
        messages = [
            msgspec.structs.replace(
                message,
                id=id or message.id,
                at=at if at is not None else message.at,
                marks=message.marks | frozenset(marks),
                metadata={**message.metadata, **(metadata or {})},
            )
            for message in (referring(added.messages, outputs) if outputs else added.messages)
        ]
        with self._ledger.lock:
            if after is None:
                sent = sent or self._composer.last
                return self._write(messages, added.usage, added.cleared, sent, state=state)[-1]
            answered = sent or self._composer.sent_behind(after)
            return again_after_conflicts(lambda: self._add_behind(after, messages, added, answered, state))[-1]

    def _add_behind(
        self,
        after: str,
        messages: Sequence[Message],
        added: formats.Added,
        sent: Sent | None,
        state: Sequence[Change],
    ) -> list[str]:
        undo.go_to(self._ledger, after, "an answer belongs here")
        thread = self._ledger.view.thread
        return self._write(messages, added.usage, added.cleared, sent, steady=thread, state=state)

    def extend(self, values: Iterable[Any], *, format: str | None = None, at: Sequence[float | None] = ()) -> list[str]:
        """Add several messages as one: all of them or none. Their ids."""
        messages: list[Message] = []
        usage = None
        for index, value in enumerate(values):
            added = self._read(value, format)
            usage = added.usage or usage
            when = at[index] if index < len(at) else None
            messages += [
                msgspec.structs.replace(message, at=when) if when is not None else message for message in added.messages
            ]
        return self._write(messages, usage, sent=self._composer.last)

    def _read(self, value: Any, format: str | None) -> formats.Added:
        stated = format or self.settings.format
        return formats.read_added(value, format=stated, default=stated or self.format)

    def _write(
        self,
        messages: Sequence[Message],
        usage: Usage | None,
        cleared: Cleared | None = None,
        sent: Sent | None = None,
        *,
        steady: bytes | None = None,
        state: Sequence[Change] = (),
    ) -> list[str]:
        with self._ledger.lock:
            also = partial(self._draft_state, state) if state else None
            ids = write(self._ledger, messages, usage, steady=steady, also=also)
            meter(usage, (sent.lens if sent is not None else self._lens).model)
            if not provider.record(self._ledger, messages, cleared, sent.fields if sent is not None else {}):
                # What the provider counted after it cut the request itself says nothing about what was sent.
                self._learn(usage, sent)
            return ids

    def _draft_state(self, changes: Sequence[Change], draft: Draft, entries: Sequence[Entry]) -> None:
        del entries
        self.state.draft(draft, changes)

    def _learn(self, usage: Usage | None, sent: Sent | None) -> None:
        if usage is not None and sent is not None:
            sent.lens.observe(sent.weight, usage, sent.shape)

    def observe(self, usage: Usage | Mapping[str, Any]) -> None:
        """Learn from the usage a provider reported for the last composed request, where `add` did not see it."""
        seen = usage if isinstance(usage, Usage) else formats.read_usage(usage)
        with self._ledger.lock:
            self._ledger.commit(lambda draft: draft.record("usage", seen))
            meter(seen, self._lens.model)
            self._learn(seen, self._composer.last)

    def overflowed(self, error: BaseException | str, *, sent: int | Sent | None = None) -> int | None:
        """Learn a lower window from a provider's overflow error; the window from now on, when the error says one.

        With `sent`, the refused request or the tokens it was counted as, the next one is smaller in any case.
        """
        if isinstance(sent, Sent):
            return sent.lens.overflowed(str(error), sent.tokens)
        return self._lens.overflowed(str(error), sent)

    @property
    def format(self) -> str:
        """The wire format of this session: the stated one, that of its messages, or that of its model."""
        if self.settings.format:
            return self.settings.format
        chat = formats.dialect(self._lens.model)
        with self._ledger.lock:
            for item in self._ledger.view.items[:TELLING]:
                found = self._ledger.view.read(item).format
                if found in formats.names():
                    return chat if found in formats.DIALECTS else found
        return {"anthropic": "anthropic", "google": "gemini"}.get(self._lens.model.provider, chat)
