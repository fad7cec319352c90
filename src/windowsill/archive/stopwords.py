"""Words that ask or bind and say nothing of what is looked for."""

from __future__ import annotations

# fmt: off
STOP_WORDS = frozenset({
    "a", "about", "after", "again", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been",
    "before", "being", "between", "both", "but", "by", "can", "could", "d", "did", "do", "does", "doing", "down",
    "during", "each", "few", "for", "from", "had", "has", "have", "having", "he", "her", "hers", "him", "his",
    "how", "i", "if", "in", "into", "is", "it", "its", "just", "ll", "m", "me", "more", "most", "my", "no", "nor",
    "not", "of", "on", "only", "or", "other", "our", "over", "own", "re", "s", "same", "she", "should", "so",
    "some", "such", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "to", "too", "under", "until", "up", "ve", "very", "was", "we", "were", "what", "when", "where", "which", "who",
    "whom", "whose", "why", "will", "with", "would", "you", "your",
})
# fmt: on

CJK_STOP_WORDS = frozenset("何誰私")
"""Single characters that only ask, or only say who asks."""
