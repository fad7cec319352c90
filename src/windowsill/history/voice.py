"""Tells a user's own words from text that tools and programs put under the user role."""

from __future__ import annotations

import re

from windowsill.messages import Message, Text

_INJECTED = re.compile(
    r"""\s*(?:
        <(?:system-reminder|command-name|command-message|command-args|local-command-\w+|environment_context
           |user-prompt-submit-hook|bash-\w+|task-notification|context|file|ide_\w+|tool_\w+|function_results)\b
        | \[Request\ interrupted\ by\ user
        | \[(?:Memory|Context)\ Summary\]
        | Caveat:\ The\ messages\ below
        | This\ session\ is\ being\ continued\ from\ a\ previous\ conversation
        | Your\ tool\ call\ was\ malformed
        | \[SYSTEM
    )""",
    re.VERBOSE | re.IGNORECASE,
)


def own_words(message: Message) -> str:
    """What the user typed in this message; empty when a program wrote all of it."""
    if message.role != "user" or any(True for _ in message.results):
        return ""
    return "\n".join(block.text.strip() for block in message.blocks if isinstance(block, Text) and is_own(block.text))


def is_own(text: str) -> bool:
    """Whether a text under the user role reads like the user's own."""
    return bool(text.strip()) and _INJECTED.match(text) is None
