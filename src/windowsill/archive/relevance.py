"""How much texts have to do with a goal."""

from __future__ import annotations

from collections.abc import Sequence

from windowsill.archive.cjk import RUN, pairs
from windowsill.archive.embedders import Embedder
from windowsill.archive.words import content_words


def relevance(goal: str, texts: Sequence[str], embedder: Embedder | None = None) -> list[float]:
    """For each text a number from 0 to 1: likeness in meaning, or without an embedder the share of the goal's words."""
    if not texts:
        return []
    if embedder is not None:
        from windowsill.archive.vectors import unit  # noqa: PLC0415 - brings numpy, which is an extra

        rows = unit(embedder.embed([goal, *texts]))
        return [min(max(float(score), 0.0), 1.0) for score in rows[1:] @ rows[0]]
    wanted = _words(goal)
    return [len(wanted & _words(text)) / len(wanted) if wanted else 0.0 for text in texts]


def _words(text: str) -> frozenset[str]:
    runs = [run for run in RUN.findall(text) if len(run) > 1]
    return frozenset(
        [word.casefold() for word in content_words(RUN.sub(" ", text))]
        + [pair for run in runs for pair in pairs(run)[:-1]]
    )
