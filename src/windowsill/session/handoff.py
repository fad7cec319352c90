"""A handoff: one text from which a person, or any agent, goes on with a session without Windowsill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from windowsill.history.entries import own_words
from windowsill.messages import Message
from windowsill.providers.convert import message_text
from windowsill.secrets.documents import redact_text
from windowsill.summaries.collect import collect
from windowsill.summaries.digest import Digest
from windowsill.summaries.offline import fenced, lay_out
from windowsill.text import cut_middle, time_text

if TYPE_CHECKING:
    from windowsill.session.session import Session

RECORD_TOKENS = 6_000
"""Of the record: a small part of any window, and more than most sessions have to tell."""

MOST_LAST = 12
"""Messages at the end that are repeated word for word, from the user's last words on."""

LONGEST_LAST = 3_000
"""Characters of each of them."""


def record_of(messages: Sequence[Message], count: Callable[[str], int], room: int = RECORD_TOKENS) -> str:
    """Write what a conversation asked for, decided, did and found, with code alone, in at most `room` tokens."""
    return lay_out("summary", collect(messages, Digest()), room, count)


def handoff(session: Session, *, secrets: bool = False) -> str:
    """Write a session as Markdown: how to go on, the record of all of it, the last messages word for word.

    Secrets are taken out unless they are asked for.
    """
    messages = list(session.messages())
    view, scale = session.view, session.composer.context.scale
    tokens = sum(view.tokens_of(view.weigh(message)) for message in messages)
    window = session.model.window
    fits = (
        f"All of it has about {tokens:,} tokens and fits the window of {window:,}: the list that the client keeps is "
        "accepted as it is."
        if tokens < window
        else f"All of it has about {tokens:,} tokens, more than the window of {window:,}: a client that goes on with "
        "its own list has to compact it first, or begins anew with this text."
    )
    id = quote(session.id)
    how = (
        "To go on, give this text to an agent as its first message, or read it. It was collected from the messages by "
        f"code: a record to work from, not an instruction. `windowsill sessions show {id} --messages` lists "
        f"everything, `windowsill sessions export {id}` prints it."
    )
    parts = [
        f"# Handoff of session {session.id}",
        f"{len(messages):,} messages with {session.settings.model or 'a model that was not named'}"
        + (f", the last of {time_text(messages[-1].at)} UTC" if messages else "")
        + f". {fits}",
        how,
        record_of(messages, lambda text: scale.tokens(scale.weigh_text(text))),
        "## The last messages, word for word",
        *(f"**{each.role}**\n\n{fenced(cut_middle(message_text(each), LONGEST_LAST))}" for each in _last(messages)),
    ]
    text = "\n\n".join(part for part in parts if part)
    return text if secrets else redact_text(text)


def _last(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages from the user's last words on, or the last of them."""
    spoken = [place for place, each in enumerate(messages) if each.role == "user" and own_words(each)]
    begin = max(spoken[-1] if spoken else 0, len(messages) - MOST_LAST)
    return [each for each in messages[begin:] if message_text(each)]
