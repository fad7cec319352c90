"""The marker that stands where messages were hidden: it says what was there, built by code from what is known.

The facts of a marker travel with its fold, so that the next, wider fold can say the same without reading the hidden
messages again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from windowsill.history.folds import BlockSpan, MessageSpan
from windowsill.history.view import Item, View, sum_weights
from windowsill.messages import ORIGIN, WITHIN_REACH, Block, Message, Origin, Text, text_message
from windowsill.secrets import redact
from windowsill.text import cut_middle
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

SHORTEST_QUOTE = 40
"""Characters below which a quotation is not worth cutting further: it would say nothing."""


QUOTE_FRAME = 32
"""Characters that the line around a quotation is worth: its number and its signs are eight tokens."""


class Facts(msgspec.Struct, omit_defaults=True):
    """The facts that a marker tells about hidden messages."""

    messages: int = 0
    tokens: int = 0
    calls: dict[str, int] = {}
    said: list[tuple[str, str]] = []
    """`(message id, words)` of the user, oldest first."""
    unquoted: int = 0
    """The number of the user's messages that there was no room to quote."""


def gather(view: View, items: Sequence[Item], room: int) -> Facts:
    """Gather the facts of hidden items, the user's words quoted within `room` characters: first and last come first."""
    facts = Facts(calls={}, said=[])
    for item, tokens in zip(items, view.each(items), strict=True):
        if item.fold:
            _take_over(facts, item)
            continue
        facts.messages += 1
        facts.tokens += tokens
        for name in item.tools:
            facts.calls[name] = facts.calls.get(name, 0) + 1
        # Redacted before they are cut: half a key would not be recognised as one.
        if item.own and (words := redact(own_words(view.read(item)))):
            facts.said.append((item.id, words))
    facts.said, left_out = _fit(facts.said, room)
    facts.unquoted += left_out
    return facts


def _take_over(facts: Facts, item: Item) -> None:
    """Add what an inner fold knows of what it hides."""
    inner = msgspec.convert(item.facts, Facts) if item.facts else Facts(messages=item.hides)
    facts.messages += inner.messages
    facts.tokens += inner.tokens
    facts.unquoted += inner.unquoted
    facts.said.extend(inner.said)
    for name, count in inner.calls.items():
        facts.calls[name] = facts.calls.get(name, 0) + count


def _fit(said: list[tuple[str, str]], room: int) -> tuple[list[tuple[str, str]], int]:
    """Choose quotations within `room` characters: head and tail of the list first, long ones cut in the middle."""
    kept: dict[int, tuple[str, str]] = {}
    for place, index in enumerate(_from_both_ends(len(said))):
        room -= QUOTE_FRAME
        if room <= 0:
            break
        share = max(SHORTEST_QUOTE, room // min(len(said) - place, 4))
        id, words = said[index]
        # Bytes follow the tokens of a text better than characters do, whatever its language.
        quote = cut_middle(words, min(share, room) * len(words) // len(words.encode()))
        size = len(quote.encode())
        if size > room or (len(words) > len(quote) and len(quote) < SHORTEST_QUOTE):
            room += QUOTE_FRAME
            continue
        kept[index] = (id, quote)
        room -= size
    return [kept[index] for index in sorted(kept)], len(said) - len(kept)


def _from_both_ends(count: int) -> Iterator[int]:
    """Yield the last, the first, the last but one, the second, and so on to the middle."""
    for index in range((count + 1) // 2):
        yield count - 1 - index
        if index != count - 1 - index:
            yield index


def marker(facts: Facts) -> Message:
    """Write the message that stands for hidden messages."""
    hidden = f"{_count(facts.messages, 'earlier message')} of this conversation ({facts.tokens:,} tokens)"
    lines = [f"[Memory Summary] {hidden} are left out here{WITHIN_REACH}. What was there:"]
    if facts.calls:
        names = sorted(facts.calls.items(), key=lambda pair: (-pair[1], pair[0]))
        shown = ", ".join(f"{name} x{count}" for name, count in names[:MOST_TOOLS])
        more = f", and {len(names) - MOST_TOOLS} other tools" if len(names) > MOST_TOOLS else ""
        lines.append(f"- tool calls with their results: {shown}{more}")
    if facts.said:
        lines.append("- the user wrote, in order, quoted word for word:")
        lines.extend(f"  > ({id}) " + words.replace("\n", "\n  > ") for id, words in facts.said)
    if facts.unquoted:
        lines.append(f"- {_count(facts.unquoted, 'more message')} from the user")
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
