"""Take in the requests of a client that keeps its own list: find where it continues the session, add what is new."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from windowsill import providers
from windowsill.compose.composer import Composer, SentRequest
from windowsill.compose.payload import Payload
from windowsill.errors import NotFoundError
from windowsill.history.entries import ROOT, START, Entry, extend, of_message, pieces
from windowsill.history.folds import Proposal
from windowsill.history.head import Call, Draft, call_meta
from windowsill.history.proposals import gather, hide
from windowsill.history.view import message_meta, response_key, sum_weights
from windowsill.journal.writer import JournalWriter
from windowsill.messages import Message, Reasoning, Request, Text, Tool, Unknown
from windowsill.providers.streams import PARTIAL
from windowsill.session import branches
from windowsill.session.audit import prompt_of, rest_of
from windowsill.store import Place
from windowsill.text import common_start

if TYPE_CHECKING:
    from windowsill.session.session import Session

FEWEST_SHARED = 4
"""Messages at the end of the history that a list without its beginning must hold: whoever trims keeps the latest turns,
and fewer may be chance."""

MOST_ENDS = 4
"""Heads that a client left which are looked at when it sends a list without its beginning."""

PREVIOUS = "previous_response_id"
"""The field that puts the history on the provider's side in front; the whole of it is composed here instead."""

FARTHEST_CALL = 64
"""Entries before an answer in which the record of its request stands: it is written in the same commit."""

SCHEMAS = ("response_format", "text", "output_format", "output_config", "generationConfig")
"""Fields that may hold the schema of the answer."""

NEARBY = 16
"""Entries before one in which a recorded answer is looked for."""

MOST_NEW = 2
"""Messages of a question that a client may change when it is answered: its words, and a reminder behind them."""

BY_CLIENT = "the client put a summary of its own in the place of its messages"

COMPACTION = "compaction"
"""The type of a block in which a provider keeps its summary."""

SUMMARY_OPENINGS = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem",
    "[Memory Summary]",
)
"""The first words of the summaries with which clients go on: Claude Code's, Codex's, and ours."""

THREAD = "thread"
"""Anthropic's field for the same; see `PREVIOUS`."""


class ConversationIndex:
    """Finds where a session holds what a client sends, on whatever branch it is. The store has the index."""

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._raws: list[bytes | None] = []
        self._pieces: list[tuple[bytes, ...]] = []
        self._links: list[bytes] = []

    def links(self, messages: Sequence[Message], before: bytes = START) -> list[bytes]:
        """Return the fingerprint of the conversation after each message of a list."""
        found = self._pieces_of(messages)
        # Those of a whole list are kept: the next one begins with the same messages.
        links = self._links if before == START else []
        for message, its_pieces in zip(messages[len(links) :], found[len(links) :], strict=True):
            before = extend(links[-1] if links else before, message.role, its_pieces)
            links.append(before)
        return list(links)

    def find(self, links: Sequence[bytes], before: bytes = START, base: int = ROOT) -> tuple[int, int]:
        """Count the messages of a list that are known, and find the entry of the last; `(0, base)` when none is."""
        place = self._place(longest_first(links, before))
        return (links.index(place.key) + 1, place.seq) if place is not None else (0, base)

    def find_end(self, messages: Sequence[Message], version: int) -> tuple[int, int]:
        """Count the messages of a list that lead to the end at `version`, older ones dropped; find that end.

        Its last messages must be those that the history ends with. Before them may stand the first message of the
        history: some clients keep the task. A list with any other hole was edited, and must not be taken for trimmed.
        """
        fingerprints = [of_message(found) for found in self._pieces_of(messages)]
        spoken = [index for index, each in enumerate(fingerprints) if each]
        path = self._journal.path(version)
        tail = list(itertools.islice(_fingerprints(self._journal.walk_back(path, "message")), len(spoken)))
        start = next(_fingerprints(self._journal.walk(path, kinds=("message",))), (ROOT, b""))[1]
        for count in range(len(spoken), FEWEST_SHARED - 1, -1):
            shared = 0
            for index, (_, other) in zip(reversed(spoken[:count]), tail, strict=False):
                if fingerprints[index] != other:
                    break
                shared += 1
            before = [fingerprints[index] for index in spoken[: count - shared]]
            if shared >= FEWEST_SHARED and before in ([], [start]):
                return spoken[count - 1] + 1, tail[0][0]
        return 0, ROOT

    def response(self, id: str) -> int | None:
        """Return the entry where a provider's response with this id ends."""
        place = self._place([response_key(id)])
        return place.seq if place is not None else None

    def _place(self, keys: Iterable[bytes]) -> Place | None:
        """Return the place of the first key that this session knows."""
        for place in self._journal.store.places(keys, session=self._journal.session):
            if place.seq > self._journal.version:
                self._journal.refresh()
            # The index is derived: what it says counts only if the entry says the same.
            if place.key in message_meta(self._journal.entry(place.seq).meta).places:
                return place
        return None

    def conversation_at(self, seq: int) -> bytes:
        """Return the fingerprint of the conversation at a message."""
        return message_meta(self._journal.entry(seq).meta).conversation_hash

    def _pieces_of(self, messages: Sequence[Message]) -> list[tuple[bytes, ...]]:
        """Return the pieces of each message; those that came in the list before this one are not looked at again."""
        same = 0
        for message, raw in zip(messages, self._raws, strict=False):
            if message.raw is None or message.raw != raw:
                break
            same += 1
        self._pieces = [*self._pieces[:same], *map(pieces, messages[same:])]
        self._links = self._links[:same]
        self._raws = [message.raw for message in messages]
        return self._pieces


def _fingerprints(entries: Iterable[Entry]) -> Iterator[tuple[int, bytes]]:
    """Return the number and the fingerprint of each message that a client may send again."""
    for entry in entries:
        meta = message_meta(entry.meta)
        if meta.places and meta.fingerprint:
            yield entry.seq, meta.fingerprint


def list_keys(request: Request) -> Iterator[bytes]:
    """Return the keys of the places that a client's list may continue, the best first."""
    if (after := response_before(request)) is not None:
        yield response_key(after)
        return
    before, links = START, []
    for message in without_system(request)[1]:
        before = extend(before, message.role, pieces(message))
        links.append(before)
    yield from longest_first(links)


def longest_first(links: Sequence[bytes], before: bytes = START) -> Iterator[bytes]:
    """Return the fingerprints of a conversation after each message that says something, the last one first."""
    for count in range(len(links), 0, -1):
        if links[count - 1] != (links[count - 2] if count > 1 else before):
            yield links[count - 1]


class Resumed(msgspec.Struct, frozen=True):
    """The request to send in place of a client's, and the message that its answer follows."""

    payload: Payload
    last: str
    sent: SentRequest | None = None
    """The usage and errors that the provider reports are compared with this."""


class ClientHistory:
    """The way of one client through the branches of a session."""

    def __init__(self, journal: JournalWriter, composer: Composer) -> None:
        self._journal = journal
        self._composer = composer
        self._index = ConversationIndex(journal)
        self._left: list[int] = []
        """Heads that it left, the last first."""

    def resume(self, request: Request, *, model: str | None = None, resends: bool = True) -> Resumed:
        """Take in a request, and compose the one to send in its place.

        The session goes to where the list continues it, on whatever branch that is, and adds what is new; an edited
        list becomes a branch. `resends` says whether the client sends its whole list each time or only what is new.
        `model` is named where the request does not name it.
        """
        composer = self._composer
        with self._journal.lock:
            composer.use_model(model or request.model)
            system, messages = without_system(request)
            rest = {name: value for name, value in request.rest.items() if name not in (PREVIOUS, THREAD)}
            self.take(messages, resends=resends, after=response_before(request))
            tools: Sequence[Tool] = request.tools
            if (thread := _thread(request)) is not None:
                # The provider would take both from the request that began its thread, and refuses them in a later one.
                call = self._call_before(self._index.response(thread) or ROOT)
                system, tools = prompt_of(self._journal, call) if call is not None else (None, ())
            payload = composer.compose(
                composer.parts(system, tools, rest, request.format), format=request.format, model_name=request.model
            )
            return Resumed(payload, self._journal.view.items[-1].id, composer.last)

    def count(self, request: Request) -> int | None:
        """Count the tokens of what would be sent for a client's list, without taking it in.

        `None` where nothing of it is folded, or it does not continue this session: then its own size is the answer.
        """
        with self._journal.lock:
            self._journal.refresh()
            view = self._journal.view
            system, messages = without_system(request)
            count, place = self._index.find(self._index.links(messages))
            if not view.items or place != view.items[-1].last or not any(item.fold for item in view.items):
                return None
            parts = self._composer.parts(system, request.tools, request.rest, request.format)
            new = sum_weights(map(view.weigh, messages[count:]))
            context = self._composer.context
            fixed = context.scale.tokens(parts.system_weight + parts.tools_weight + parts.schema_weight)
            return fixed + self._composer.settings.overhead + context.unseen + view.tokens_of(view.weight + new)

    def follow(self, request: Request, *, resends: bool = True) -> None:
        """Take in what is new in a client's list, and have summaries that will soon be needed written meanwhile."""
        with self._journal.lock:
            system, messages = without_system(request)
            self.take(messages, resends=resends)
            if self._journal.view.items:
                parts = self._composer.parts(system, request.tools, request.rest, request.format)
                self._composer.prepare(parts, request.format)

    def _call_before(self, end: int) -> Call | None:
        """Return the last request that was recorded shortly before an entry."""
        call = self._journal.last([(max(1, end - FARTHEST_CALL), end)], "call")
        return call_meta(call.meta) if call is not None else None

    def continued_by(self, request: Request) -> bool:
        """Tell whether a client's whole list goes on with this session, or is a conversation of its own.

        It goes on with it where the session is empty, and where the two have an answer in common. A list that shares
        only questions asks them again, unless its system prompt, tools or answer schema are others.
        """
        with self._journal.lock:
            self._journal.refresh()
            if (after := response_before(request)) is not None:
                return self._index.response(after) is not None
            if self._journal.view.conversation_hash == START:
                return True
            _, messages = without_system(request)
            count, place = self._index.find(self._index.links(messages))
            here = self._journal.view.items[-1].last
            return count > 0 and (place == here or self.has_answer(place) or self._asks_as_before(request))

    def replaced_by(self, request: Request) -> bool:
        """Tell whether a client goes on with this session, but has put a summary of its own in the place of its list.

        The summary says so where the list begins as before; else nothing of it is known here, while system prompt,
        tools and answer schema are those of the last request.
        """
        with self._journal.lock:
            self._journal.refresh()
            if self._journal.view.conversation_hash == START or response_before(request) is not None:
                return False
            _, messages = without_system(request)
            known, place = self._index.find(self._index.links(messages))
            if known:
                return place != self._journal.view.items[-1].last and any(map(_is_summary, messages[known:]))
            return bool(messages) and self._asks_as_before(request)

    def replace(self, request: Request) -> None:
        """Take in a list that holds the client's own summary: what it stands for is folded, by the client."""
        with self._journal.lock:
            view = self._journal.view
            _, messages = without_system(request)
            links = self._index.links(messages)
            known, place = self._index.find(links)
            kept = sum(1 for item in view.items if item.last <= place) if known else 0
            if kept and view.items[kept - 1].last != place:
                # A fold of ours reaches over the end of what the client kept: then all of it is said again.
                kept = 0
            items = list(view.items[kept:])
            known = known if kept else 0
            span = hide(view, items, gather(view, items), None)
            fold = Proposal(kind="condense", reason=BY_CLIENT, strategy="client", spans=(span,), stand_ins=(None,))
            before, after = view.tokens(), view.tokens_of(view.after(fold.spans))

            def note(draft: Draft, _: list[Entry]) -> None:
                draft.fold(fold, before, after)

            self._journal.add(
                self._alone(messages[known:]),
                conversation=view.conversation_hash,
                also=note,
                after=links[known - 1] if known else START,
            )

    def ends_with(self, request: Request) -> bool:
        """Tell whether a client's list is the end of this session without its beginning, which it dropped."""
        with self._journal.lock:
            _, messages = without_system(request)
            return any(self._index.find_end(messages, version)[0] for version in self._heads)

    def ends_at(self, conversation: bytes) -> bool:
        """Tell whether the session stands at this fingerprint of a conversation."""
        with self._journal.lock:
            self._journal.refresh()
            return self._journal.view.conversation_hash == conversation

    def shortened_by(self, request: Request) -> bool:
        """Tell whether a client goes on with this session, but took words off the end of its last question.

        Some put a reminder there for the model, or a system message behind it, and send neither again.
        """
        _, messages = without_system(request)
        last = next((n for n in reversed(range(len(messages))) if messages[n].role == "assistant"), 0)
        # A session in which a request is being composed is not the one that asks now.
        if not last or not self._journal.lock.acquire(blocking=False):
            return False
        try:
            items, read = self._journal.view.items, self._journal.view.read
            if not items or (_said(messages[last]) or None) != _said(read(items[-1])):
                return False
            known, place = self._index.find(self._index.links(messages))
            start = sum(1 for item in items if item.last <= place)
            new = [read(item) for item in items[start:-1][: MOST_NEW + 1]]
            if len(new) > MOST_NEW or place != (items[start - 1].last if start else ROOT):
                return False
            asked = messages[known:last]
            if asked and new and asked[0].text and f"{new[0].text}\n".startswith(f"{asked[0].text}\n"):
                # Whole lines are taken off: "Hi" is not the question "Hi, I am Ann" of somebody else.
                asked, new = asked[1:], new[1:]
            return not asked and all(each.role == "system" for each in new) and self._asks_as_before(request)
        finally:
            self._journal.lock.release()

    def has_answer(self, seq: int) -> bool:
        """Tell whether an answer that was recorded here stands at an entry, or shortly before it."""
        near = self._journal.walk([(max(1, seq - NEARBY), seq)], kinds=("message",))
        return any(meta.sent and meta.role == "assistant" for meta in (message_meta(entry.meta) for entry in near))

    def _asks_as_before(self, request: Request) -> bool:
        """Tell whether a request has the system prompt, tools and answer schema of the last one, or nearly so."""
        self._journal.flush()
        call = self._call_before(self._journal.version)
        if call is None:
            return True
        (system, tools), rest = prompt_of(self._journal, call), rest_of(self._journal, call)
        return (
            _alike(system, without_system(request)[0])
            and {tool.name for tool in tools} == {tool.name for tool in request.tools}
            and all(bytes(rest.get(name, b"")) == bytes(request.rest.get(name, b"")) for name in SCHEMAS)
        )

    @property
    def _heads(self) -> tuple[int, ...]:
        return (self._journal.version, *self._left)

    def take(self, messages: Sequence[Message], *, resends: bool = True, after: str | None = None) -> None:
        """Go to where these messages continue, and add those that are new.

        `resends` says whether a client sends its whole list each time or only what is new. `after` is the id of the
        provider's response that they follow.
        """
        self._journal.retry(lambda: self._take(messages, resends=resends, after=after))

    def _take(self, messages: Sequence[Message], *, resends: bool, after: str | None) -> None:
        self._journal.refresh()
        if after is not None:
            base = self._index.response(after)
            if base is None:
                raise NotFoundError(
                    f"session {self._journal.session!r} holds no response {after!r}",
                    remedy="send the whole conversation once, without the id of a response",
                )
            self._follow(messages, self._index.conversation_at(base), base)
        elif resends:
            self._follow(messages, START, ROOT)
        else:
            self._go_on(messages)

    def _follow(self, messages: Sequence[Message], thread: bytes, base: int) -> None:
        """Go as far as the messages are known behind `base`, and add the others there."""
        links = self._index.links(messages, thread)
        count, place = self._index.find(links, thread, base)
        here = links[count - 1] if count else thread
        if self._journal.view.conversation_hash != here:
            # A list without its beginning may lead to the head, or to one that a client left.
            heads = self._heads if base == ROOT else ()
            ends = (self._index.find_end(messages, version) for version in heads)
            held, end = next((found for found in ends if found[0]), (0, ROOT))
            if held > count:
                # The client dropped older messages to save room; here they are all kept, and it goes on at the end.
                count, place = held, end
            items = self._journal.view.items
            if place != (items[-1].last if items else ROOT):
                self._left = [self._journal.version, *self._left][:MOST_ENDS]
                branches.move(self._journal, place, "a client went on from here", carry=True)
        while count < len(messages) and _is_wordless(messages[count]):
            if any(isinstance(block, Reasoning) for block in messages[count].blocks) and not self._ends_wordless():
                # Reasoning of an answer that was not recorded: only the client has it.
                break
            # An answer without words is given back too; there is nothing to recognise it by, and nothing to add.
            count += 1
        self._add(messages[count:])

    def _ends_wordless(self) -> bool:
        view = self._journal.view
        return bool(view.items) and _is_wordless(view.read(view.items[-1]))

    def _go_on(self, messages: Sequence[Message]) -> None:
        """Add messages at the end, unless they are there already because the same call is made again."""
        thread, base = self._before_the_question()
        count, _ = self._index.find(self._index.links(messages, thread), thread, base)
        if count == len(messages):
            self._follow(messages, thread, base)
        else:
            self._add(messages)

    def _before_the_question(self) -> tuple[bytes, int]:
        """Return where the conversation stood before the user's last words; an answer that broke off does not count."""
        view = self._journal.view
        items = view.items
        index = len(items)
        while index and not items[index - 1].fold and view.read(items[index - 1]).metadata.get(PARTIAL):
            index -= 1
        while index and items[index - 1].role == "user" and not items[index - 1].fold:
            index -= 1
        if index == 0:
            return START, ROOT
        base = items[index - 1].last
        return self._index.conversation_at(base), base

    def _add(self, messages: Sequence[Message]) -> None:
        self._journal.add(self._alone(messages), conversation=self._journal.view.conversation_hash)

    @staticmethod
    def _alone(messages: Sequence[Message]) -> list[Message]:
        """Return messages as they are without their list: ids that a format makes up depend on the whole of it."""
        return [
            message if message.raw is None else providers.get(message.format).read_message(message.raw, "")
            for message in messages
        ]


_histories: WeakKeyDictionary[Session, ClientHistory] = WeakKeyDictionary()


def client_history(session: Session) -> ClientHistory:
    """Return what takes in the requests of clients for a session, with what it knows of earlier ones."""
    found = _histories.get(session)
    return found or _histories.setdefault(session, ClientHistory(session.journal, session.composer))


def without_system(request: Request) -> tuple[Message | None, list[Message]]:
    """Divide a request into its system prompt, which may be its first messages, and the conversation."""
    messages = list(request.messages)
    systems = [request.system] if request.system is not None else []
    while messages and messages[0].role == "system":
        systems.append(messages.pop(0))
    if len(systems) <= 1:
        return (systems[0] if systems else None), messages
    blocks = tuple(block for system in systems for block in system.blocks)
    return Message(role="system", blocks=blocks, format=systems[0].format), messages


def _is_summary(message: Message) -> bool:
    """Tell whether a message stands for earlier ones, and was written by a client or its provider."""
    return any(
        (isinstance(block, Unknown) and block.type == COMPACTION)
        or (isinstance(block, Text) and message.role == "user" and block.text.startswith(SUMMARY_OPENINGS))
        for block in message.blocks
    )


def _said(message: Message) -> bytes:
    """Return the fingerprint of an answer; empty without words."""
    return of_message(pieces(message))


def _is_wordless(message: Message) -> bool:
    """Tell whether a message is an answer by which no conversation can be recognised: nothing but reasoning."""
    return message.role == "assistant" and not pieces(message)


def _alike(one: Message | None, other: Message | None) -> bool:
    """Tell whether two system prompts are the same but for a part in the middle, such as the time of day."""
    first, second = (message.text if message is not None else "" for message in (one, other))
    head = common_start(first, second)
    tail = common_start(first[head:][::-1], second[head:][::-1])
    return 2 * (head + tail) >= max(len(first), len(second))


def response_before(request: Request) -> str | None:
    """Return the id of the provider's response that a request says it follows."""
    return _thread(request) or _response_id(request.rest.get(PREVIOUS))


class _Thread(msgspec.Struct):
    previous_message_id: str | None = None


def _thread(request: Request) -> str | None:
    try:
        thread = msgspec.json.decode(request.rest.get(THREAD, b"{}"), type=_Thread | None)
    except msgspec.ValidationError as error:
        raise NotFoundError(f"{THREAD} names no message: {error}", remedy="give the id of a response") from None
    return thread.previous_message_id if thread is not None else None


def _response_id(raw: msgspec.Raw | None) -> str | None:
    value = msgspec.json.decode(raw) if raw is not None else None
    if value is not None and not isinstance(value, str):
        raise NotFoundError(f"{PREVIOUS} is not an id", remedy="give the id of a response, or leave it out")
    return value
