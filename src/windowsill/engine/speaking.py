"""What the engine itself says in a session, and what was said there last."""

from __future__ import annotations

from collections.abc import Sequence

from windowsill.engine.phases import ENGINE
from windowsill.messages import Message, text_message
from windowsill.session.session import Session
from windowsill.state.changes import Change


def say(session: Session, text: str, changes: Sequence[Change] = ()) -> None:
    """Tell the model something, and change the state in the same commit."""
    session.add(text_message("user", text, metadata={"windowsill": ENGINE}), state=changes)


def last_of(session: Session) -> Message | None:
    """The last message of the view."""
    items = session.items()
    return session.view.read(items[-1]) if items else None
