"""Who a question asks about."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

from windowsill.archive.ranking import Facts

_ROLES = {
    "user": re.compile(r"\b(?:i|me|my|mine|we|our|user)\b|私|僕|俺|ユーザー"),
    "assistant": re.compile(r"\b(?:you|your|yours|assistant)\b|あなた|アシスタント"),
    "tool": re.compile(r"\b(?:tool|command|output|log)s?\b|ツール|コマンド|出力|ログ"),
}


def named_in(question: str, passages: Iterable[Facts]) -> Callable[[Facts], bool]:
    """Whether a passage was said by the one the question names; a question that names several names nobody."""
    text = unicodedata.normalize("NFKC", question).casefold()
    speakers = {about.speaker for about in passages if about.speaker}
    present = [speaker for speaker in speakers if _names(text, speaker)]
    if present:
        return lambda about: len(present) == 1 and about.speaker == present[0]
    roles = [role for role, words in _ROLES.items() if words.search(text)]
    return lambda about: about.speaker is None and roles == [about.role]


def _names(text: str, speaker: str) -> bool:
    name = unicodedata.normalize("NFKC", speaker).casefold()
    return name in text if not name.isascii() else bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))
