"""The marker that stands where messages were hidden: it says what was there, built by code from what is known.

The facts of a marker travel with its fold, so that the next, wider fold can say the same without reading the hidden
messages again. What has to be carried over of them is the record, which the composer writes (`compose.summaries`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from windowsill.history.folds import BlockSpan, MessageSpan
from windowsill.history.view import Item, View, sum_weights
from windowsill.messages import ORIGIN, WITHIN_REACH, Block, Message, Origin, Text, text_message
from windowsill.text import shorten
from windowsill.tokens import Weight

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
    """Return what the user typed in this message; empty when a program wrote all of it."""
    if message.role != "user" or any(True for _ in message.results):
        return ""
    return "\n".join(block.text.strip() for block in message.blocks if isinstance(block, Text) and is_own(block.text))


def is_own(text: str) -> bool:
    """Tell whether a text under the user role reads like the user's own."""
    return bool(text.strip()) and _INJECTED.match(text) is None


MOST_TOOLS = 12
"""Tool names that a marker lists: a session has few tools, and a list without end would grow with it."""

LONGEST_NAME = 80
"""Characters of a tool's name: a model may call one by a whole text."""


class Facts(msgspec.Struct, omit_defaults=True):
    """The facts that a marker tells about hidden messages."""

    messages: int = 0
    tokens: int = 0
    calls: dict[str, int] = {}


def gather(view: View, items: Sequence[Item]) -> Facts:
    """Gather the facts of hidden items, those of inner folds included."""
    facts = Facts(calls={})
    for item, tokens in zip(items, view.each(items), strict=True):
        if item.fold:
            _take_over(facts, item)
            continue
        facts.messages += 1
        facts.tokens += tokens
        for name in item.tools:
            facts.calls[name] = facts.calls.get(name, 0) + 1
    return facts


def _take_over(facts: Facts, item: Item) -> None:
    """Add what an inner fold knows of what it hides."""
    inner = msgspec.convert(item.facts, Facts) if item.facts else Facts(messages=item.hides)
    facts.messages += inner.messages
    facts.tokens += inner.tokens
    for name, count in inner.calls.items():
        facts.calls[name] = facts.calls.get(name, 0) + count


def list_calls(facts: Facts) -> str:
    """Name the tools that were called, and how often, on one line whatever they are called."""
    if not facts.calls:
        return ""
    names = sorted(facts.calls.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(f"{shorten(name, LONGEST_NAME)} x{count}" for name, count in names[:MOST_TOOLS])
    more = f", and {len(names) - MOST_TOOLS} other tools" if len(names) > MOST_TOOLS else ""
    return f"Tool calls with their results: {shown}{more}."


def describe(facts: Facts) -> str:
    """Say in one line how much is hidden, and which tools were called there."""
    hidden = f"{_count(facts.messages, 'earlier message')} ({facts.tokens:,} tokens) stood here."
    return f"{hidden} {list_calls(facts)}".strip()


def marker(facts: Facts) -> Message:
    """Write the message that stands for hidden messages."""
    hidden = f"{_count(facts.messages, 'earlier message')} of this conversation ({facts.tokens:,} tokens)"
    lines = [f"[Memory Summary] {hidden} are left out here{WITHIN_REACH}. What was there:"]
    if calls := list_calls(facts):
        lines.append(calls)
    lines.append("(End of summary. This text was put here by the context manager; it is not an instruction.)")
    return text_message("user", "\n".join(lines), metadata={ORIGIN: Origin.MARKER})


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def hide(view: View, items: Sequence[Item], facts: Facts, stand_in: Message) -> MessageSpan:
    """Return the span that hides these neighbours and shows `stand_in`; `facts` are what code knows of them."""
    weight = view.weigh(stand_in)
    return MessageSpan(
        first=items[0].first,
        last=items[-1].last,
        hides=facts.messages,
        saves=sum_weights(item.weight for item in items) - weight,
        weight=weight,
        facts=msgspec.to_builtins(facts),
    )


def replace_block(view: View, item: Item, number: int, shown: Block, shorter: Block) -> BlockSpan:
    """Return the span that shows `shorter` in place of `shown`; its savings are counted from the original block."""
    taken = next((cut.saves for cut in item.cuts if cut.block == number), Weight())
    saves = view.weigh(Message(role="user", blocks=(shown,))) - view.weigh(Message(role="user", blocks=(shorter,)))
    return BlockSpan(message=item.seq, block=number, saves=taken + saves)
