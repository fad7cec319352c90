"""What a replay found: counted per session, added up in total."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence

import msgspec

from windowsill.cli.recordings import Broken, Foreign
from windowsill.cli.replay.economy import Bill
from windowsill.cli.replay.evidence import Kept
from windowsill.cli.replay.spending import SOURCES, Comparison, Spending
from windowsill.cli.replay.walking import Options, Turn

MOST_PROBLEMS = 5
"""Problems listed for one invalid request: the first says what broke, the rest usually follow from it."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one session, or of all. Shares are `null` where there was nothing to share."""

    calls: int
    peak_tokens: int
    tokens_sent: int
    cache_hit_share: float | None
    """Of all tokens sent, those that stood at the start of the request before."""
    cost_ratio: float | None
    """Against sending everything each time, at the prices of the model."""
    dollars: float | None
    """What it would have cost at list prices; `null` where a price is not known,"""
    dollars_everything: float | None
    """and what sending everything would have."""
    kept: float | None
    """Of the argument values seen before, those that still stood in the request."""
    kept_from_outputs: float | None
    """The same for values that only tool outputs had shown,"""
    kept_lines: float | None
    """and for the lines that edits quoted."""
    within_reach: float | None
    """Of the argument values seen before, those that stood in the request or that one search of the history shows."""
    values_needed: int
    values_needed_from_outputs: int
    lines_needed: int
    folds: int
    repairs: dict[str, int]
    invalid: int
    over: int
    """Requests above the window."""
    lost: int
    """Messages that could not be read back as they were added."""
    median_ms: float | None
    p95_ms: float | None


class Defect(msgspec.Struct, frozen=True):
    """A request that is invalid or too large."""

    turn: int
    tokens: int
    problems: tuple[str, ...]


class SessionReport(msgspec.Struct, frozen=True, kw_only=True):
    """One recording."""

    session: str
    model: str
    format: str
    messages: int
    figures: Figures
    recorded: Spending | None = None
    """What was really paid, where the recording says so: calls that no session before this one told of."""
    compared: Comparison | None = None
    """The same calls, as they were and with Windowsill."""
    defects: tuple[Defect, ...] = ()
    error: str | None = None
    """Why the replay of this session stopped early."""


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole replay."""

    options: Options
    total: dict[str, object]
    """The figures of all sessions together, how many sessions, unreadable lines and foreign files there were, what was
    recorded and how it compares."""
    sessions: tuple[SessionReport, ...]
    broken: tuple[Broken, ...]
    foreign: tuple[Foreign, ...] = ()
    """Files of a folder that hold no recording."""
    skipped: dict[str, int] = {}
    """What transcripts hold besides the conversation: kinds and counts."""
    sources: dict[str, str] = msgspec.field(default_factory=lambda: dict(SOURCES))
    """Where the numbers come from."""


class Tally:
    """Counts turns."""

    def __init__(self) -> None:
        self.kept = Kept()
        self.defects: list[Defect] = []
        self.lost = 0
        self._tokens: list[int] = []
        self._seconds: list[float] = []
        self._stable = self._folds = self._invalid = self._over = 0
        self._paid = self._everything = 0.0
        self._dollars: list[float] | None = [0.0, 0.0]
        self._repairs: Counter[str] = Counter()
        self._mended: set[tuple[str, str, str]] = set()

    def count(self, turn: Turn, bill: Bill, kept: Kept) -> None:
        """One more model call."""
        self.kept.add(kept)
        self._tokens.append(turn.tokens)
        self._seconds.append(turn.seconds)
        self._stable += turn.stable
        self._folds += len(turn.folds)
        self._paid += bill.sent
        self._everything += bill.everything
        self._pay(None if bill.unit is None else [bill.sent * bill.unit, bill.everything * bill.unit])
        self._note_defects(turn)
        for repair in turn.repairs:
            # A repair is made again in each request that shows the place: it is counted once.
            key = (repair.kind, repair.id, repair.what)
            if key not in self._mended:
                self._mended.add(key)
                self._repairs[repair.kind] += 1

    def _pay(self, dollars: list[float] | None) -> None:
        """A sum with one unknown price in it is unknown."""
        if self._dollars is None or dollars is None:
            self._dollars = None
        else:
            self._dollars = [one + other for one, other in zip(self._dollars, dollars, strict=True)]

    def _note_defects(self, turn: Turn) -> None:
        over = turn.tokens > turn.limit
        self._invalid += bool(turn.problems)
        self._over += over
        if turn.problems or over:
            told = tuple(map(str, turn.problems[:MOST_PROBLEMS]))
            excess = (f"{turn.tokens:,} tokens, and a request may have {turn.limit:,}",) if over else ()
            self.defects.append(Defect(turn.turn, turn.tokens, told + excess))

    def add(self, other: Tally) -> None:
        """Count another tally's turns too."""
        self.kept.add(other.kept)
        self.lost += other.lost
        self._tokens += other._tokens
        self._seconds += other._seconds
        self._stable += other._stable
        self._folds += other._folds
        self._invalid += other._invalid
        self._over += other._over
        self._paid += other._paid
        self._everything += other._everything
        self._pay(other._dollars)
        self._repairs += other._repairs

    def figures(self) -> Figures:
        """What was counted."""
        sent = sum(self._tokens)
        dollars = self._dollars if self._tokens else None
        milliseconds = sorted(seconds * 1000 for seconds in self._seconds)
        return Figures(
            calls=len(self._tokens),
            peak_tokens=max(self._tokens, default=0),
            tokens_sent=sent,
            cache_hit_share=share(self._stable, sent),
            cost_ratio=share(self._paid, self._everything),
            dollars=None if dollars is None else round(dollars[0], 6),
            dollars_everything=None if dollars is None else round(dollars[1], 6),
            kept=share(self.kept.kept, self.kept.needed),
            kept_from_outputs=share(self.kept.kept_from_outputs, self.kept.needed_from_outputs),
            kept_lines=share(self.kept.kept_lines, self.kept.needed_lines),
            within_reach=share(self.kept.kept + self.kept.reachable, self.kept.needed),
            values_needed=self.kept.needed,
            values_needed_from_outputs=self.kept.needed_from_outputs,
            lines_needed=self.kept.needed_lines,
            folds=self._folds,
            repairs=dict(sorted(self._repairs.items())),
            invalid=self._invalid,
            over=self._over,
            lost=self.lost,
            median_ms=round(statistics.median(milliseconds), 3) if milliseconds else None,
            p95_ms=round(percentile(milliseconds, 0.95), 3) if milliseconds else None,
        )


def share(part: float, whole: float) -> float | None:
    """A part of a whole; `None` where there is no whole."""
    return round(part / whole, 4) if whole else None


def percentile(ordered: Sequence[float], rank: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(rank * len(ordered)) - 1)]
