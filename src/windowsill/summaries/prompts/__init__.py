"""The prompts for a model that writes: the texts beside this file, with the wishes of a brief put in.

A text has two parts, divided by a line of three dashes: what to write, which the user's own prompt replaces, and the
form of the answer, which stays, for the answer is read by code.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from windowsill.history.folds import Brief, Style
from windowsill.messages import Message
from windowsill.text import one_line

WORDS_PER_TOKEN = 0.7
"""Models count words better than tokens; in English prose ten tokens are about seven words."""

QUOTE = 60
"""Characters of a message that are enough to find it again."""


def instruction(brief: Brief, *, aim: int, state: dict[str, Any] | None = None) -> str:
    """Say what to write and in which form, within about `aim` tokens; `state` is the object so far."""
    task, form = _parts(brief.style)
    wishes = "".join(f"\n- {each}" for each in brief.directives)
    size = f"Write at most {aim:,} tokens, about {int(aim * WORDS_PER_TOKEN):,} words."
    if brief.style == "state":
        form = form.replace("{schema}", _json(brief.schema or {})).replace("{state}", _json(state or {}))
    task = (brief.instructions.strip() or task) + (f"\n{wishes}" if wishes else "")
    return "\n\n".join((task, _text("rules"), size, form))


def shared_head(messages: tuple[Message, ...]) -> str:
    """Begin a request that stands behind the whole conversation: it has to say which part is meant."""
    quoted_messages = [quoted for message in messages if (quoted := _opening(message))]
    first, last = (quoted_messages[0], quoted_messages[-1]) if quoted_messages else ("(the first)", "(the last)")
    return _text("shared").replace("{first}", first).replace("{last}", last)


def separate_role() -> str:
    """Say who the model is when it sees nothing but the part it writes about."""
    return _text("separate")


def conversation_head(mark: str) -> str:
    """Introduce that part; `mark` is how its messages begin."""
    return _text("conversation").replace("{mark}", mark)


def _opening(message: Message) -> str:
    """Identify a message by its first words, or by its first call."""
    if words := one_line(message.text[: 4 * QUOTE]):
        return f"of the {message.role} that begins with {_json(words[:QUOTE])}"
    if message.calls:
        return f"of the assistant that calls {_json(message.calls[0].name)} (call {_json(message.calls[0].id)})"
    return f"that brings the result of call {_json(message.results[0].tool_use_id)}" if message.results else ""


def _json(value: Any) -> str:
    """Write a value as JSON, so that a quotation cannot be taken for more than one."""
    return msgspec.json.encode(value).decode()


@cache
def _text(name: str) -> str:
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


def _parts(style: Style) -> tuple[str, str]:
    task, _, form = _text(style).partition("\n---\n")
    return task.strip(), form.strip()
