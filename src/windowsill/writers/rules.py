"""What the user's own words bind the agent to: rules, decisions and requests, word for word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from windowsill.writers.ledger import Quote
from windowsill.writers.sentences import quotes

LONGEST_REQUEST = 6_000
"""Characters of one request that a ledger keeps; a longer one is mostly something pasted in."""

_ASKING = re.compile(
    r"^(?:why|what|how|when|where|which|who|is|are|does|do|did|was|were|has|have|would|should|shouldn.t|don.t|isn.t|so|but)"
    r"\b.*\?\W*$|か[?\uff1f。]?$",
    re.IGNORECASE,
)


def rules(spoken: Sequence[str], id: str) -> list[Quote]:
    """Sentences of the user that bind. A plain question binds nothing."""
    return [quote for quote in quotes(spoken, "rules", id) if not _ASKING.search(quote.text)]


def decisions(spoken: Sequence[str], id: str) -> list[Quote]:
    """Sentences that settle something."""
    return [quote for quote in quotes(spoken, "decisions", id) if not quote.text.endswith(("?", "\uff1f"))]


def request(words: str, id: str) -> Quote:
    """What the user asked for; the middle of something very long is left out."""
    if len(words) > LONGEST_REQUEST:
        half = LONGEST_REQUEST // 2
        words = f"{words[:half]} [...] {words[-half:]}"
    return Quote(text=words, id=id)
