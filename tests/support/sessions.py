"""Sessions for tests: a clock that ticks, a task, turns of tool calls, and what came of them."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from support.conversations import result, text_block, use
from windowsill import Session, providers
from windowsill.history.view import Item, View, sum_weights
from windowsill.messages import Message
from windowsill.store.memory import MemoryStore
from windowsill.tokens import Scale, counter, framing, image_rule

TASK = "Mend the login page."


def opened(store: Any = None, id: str = "s", **settings: Any) -> Session:
    """A session with a small budget that counts with a public vocabulary."""
    ticks = itertools.count(1_000)
    return Session.open(
        id,
        store=store if store is not None else MemoryStore(),
        clock=lambda: float(next(ticks)),
        **{"model": "claude-sonnet-4-5", "budget": 1_500, "tokenizer": "o200k_base", **settings},
    )


def turn(number: int, words: int = 30, calls: int = 1) -> list[dict[str, Any]]:
    """One step of an agent: parallel calls and their results."""
    ids = [f"t{number}_{place}" for place in range(calls)]
    return [
        {"role": "assistant", "content": [text_block("looking"), *(use(id) for id in ids)]},
        {"role": "user", "content": [result(id, f"line {number} " + "word " * words) for id in ids]},
    ]


SCALE = Scale(counter("chars/4"), framing=framing("generic"), images=image_rule("generic"))


def unread(item: Item) -> Message:
    raise AssertionError(f"item {item.id} was read")


def plain_view(items: Any = (), read: Any = unread) -> View:
    """A view without a session: items that are weighed but, unless the test says how, not read."""
    return View(SCALE, read, list(items))


def talk(session: Session, turns: int, start: int = 0, words: int = 30) -> None:
    """A task, if there is none yet, and steps after it."""
    if not session.view.items:
        session.add({"role": "user", "content": TASK})
    for number in range(start, start + turns):
        for message in turn(number, words):
            session.add(message)


def fill(session: Session, tokens: int, start: int = 0) -> int:
    """Turns until the view has so many tokens; the number of the next one."""
    while session.view.tokens() < tokens:
        talk(session, 1, start=start)
        start += 1
    return start


def shown(session: Session) -> list[tuple[str, bytes]]:
    """Return what the model sees: ids and content."""
    return [(item.id, msgspec.json.encode(session.view.read(item))) for item in session.view.items]


def kept(session: Session) -> list[bytes | None]:
    """Every message as it was added."""
    return [message.raw for message in session.messages()]


def tokens_of(session: Session, body: bytes, format: str = "anthropic") -> int:
    """The tokens of a request counted from its own bytes."""
    request = providers.read_request(body, format=format)
    scale = session.composer.context.scale
    weights = [scale.weigh(message) for message in (*request.messages, request.system) if message is not None]
    return scale.tokens(sum_weights([*weights, scale.weigh_tools(request.tools), scale.frame]))


def problems(payload: Any, format: str = "anthropic") -> list[Any]:
    """Return what a provider would refuse in a request."""
    return providers.validate({"model": "m", "max_tokens": 5, **payload.to(format)}, format)
