"""The report of a replay: per session and in total, what was sent, what it cost, what was kept and what was not."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence

import msgspec

from windowsill.replay.costs import SOURCES, CallCost, CostComparison, RecordedCost
from windowsill.replay.evidence import KeptEvidence, Loss
from windowsill.replay.recordings import BrokenLine, ForeignFile
from windowsill.replay.walk import ModelCall, ReplayOptions

MOST_PROBLEMS = 5
"""Problems listed for one invalid request: the first says what broke, the rest usually follow from it."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one session, or of all. Shares are `null` where there was nothing to share."""

    calls: int
    peak_tokens: int
    tokens_sent: int
    cache_hit_share: float | None
    """Of all tokens sent, those that were at the start of the request before."""
    cost_ratio: float | None
    """Against sending everything each time, at the prices of the model."""
    dollars: float | None
    """The cost at list prices; `null` where a price is not known,"""
    dollars_everything: float | None
    """and the cost of sending everything."""
    kept: float | None
    """Of the argument values seen before, those that were still in the request."""
    kept_from_outputs: float | None
    """The same for values that only tool outputs had shown,"""
    kept_lines: float | None
    """and for the lines that edits quoted."""
    within_reach: float | None
    """Of the argument values seen before, those that were in the request or that one search of the history finds."""
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


class Totals(Figures, frozen=True, kw_only=True):
    """The figures of all sessions together."""

    sessions: int
    failed: int
    """Sessions whose replay stopped early."""
    broken: int
    """Lines that could not be read."""
    foreign: int
    """Files of a folder without a recording."""
    recorded: RecordedCost | None
    compared: CostComparison | None


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
    recorded: RecordedCost | None = None
    """The recorded price of the calls that no session before this one contains."""
    compared: CostComparison | None = None
    """The same calls, as they were and with Windowsill."""
    defects: tuple[Defect, ...] = ()
    losses: tuple[Loss, ...] = ()
    """The values and lines that a call needed and that were not in its request."""
    tokens: tuple[int, ...] = ()
    """The tokens of each request, in order,"""
    everything: tuple[int, ...] = ()
    """those it would have with nothing reduced,"""
    folded: tuple[int, ...] = ()
    """and which of the requests, counted from 0, were made smaller by a new fold."""
    error: str | None = None
    """The reason why the replay of this session stopped early."""


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole replay."""

    options: ReplayOptions
    total: Totals
    sessions: tuple[SessionReport, ...]
    broken: tuple[BrokenLine, ...]
    foreign: tuple[ForeignFile, ...] = ()
    """Files of a folder that hold no recording."""
    skipped: dict[str, int] = {}
    """Content of transcripts that is not part of the conversation: kinds and counts."""
    sources: dict[str, str] = msgspec.field(default_factory=lambda: dict(SOURCES))
    """The sources of the numbers."""


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one model call."""

    tokens: int
    everything: int
    stable: int
    seconds: float
    folds: int
    invalid: bool
    over: bool
    cost: CallCost
    evidence: KeptEvidence


class Tally:
    """The model calls of one session, or of all, and the figures they add up to."""

    def __init__(self) -> None:
        self.calls: list[CallResult] = []
        self.defects: list[Defect] = []
        self.repairs: Counter[str] = Counter()
        self.lost = 0
        self._repaired: set[tuple[str, str, str]] = set()

    def count(self, call: ModelCall, cost: CallCost, evidence: KeptEvidence) -> None:
        """Count one more model call."""
        report = call.report
        over = report.tokens > report.limit
        result = CallResult(
            tokens=report.tokens,
            everything=call.everything,
            stable=report.stable,
            seconds=call.seconds,
            folds=len(report.folds),
            invalid=bool(call.problems),
            over=over,
            cost=cost,
            evidence=evidence,
        )
        self.calls.append(result)
        if call.problems or over:
            problems = tuple(map(str, call.problems[:MOST_PROBLEMS]))
            excess = (f"{report.tokens:,} tokens, and a request may have {report.limit:,}",) if over else ()
            self.defects.append(Defect(call.turn, report.tokens, problems + excess))
        for repair in report.repairs:
            # A repair is made again in each request that shows the place: it is counted once.
            key = (repair.kind, repair.id, repair.what)
            self.repairs[repair.kind] += key not in self._repaired
            self._repaired.add(key)

    def add(self, other: Tally) -> None:
        """Count the calls of another session too."""
        self.calls += other.calls
        self.repairs += other.repairs
        self.lost += other.lost

    def figures(self) -> Figures:
        """Add everything up."""
        calls, costs = self.calls, [call.cost for call in self.calls]
        counts = (msgspec.structs.astuple(call.evidence) for call in calls)
        evidence = KeptEvidence(*map(sum, zip(*counts, strict=True)))
        sent = sum(call.tokens for call in calls)
        # A sum with one unknown price in it is unknown.
        priced = [(cost.sent * cost.unit, cost.everything * cost.unit) for cost in costs if cost.unit is not None]
        known = bool(calls) and len(priced) == len(calls)
        milliseconds = sorted(call.seconds * 1000 for call in calls)
        return Figures(
            calls=len(calls),
            peak_tokens=max((call.tokens for call in calls), default=0),
            tokens_sent=sent,
            cache_hit_share=share(sum(call.stable for call in calls), sent),
            cost_ratio=share(sum(cost.sent for cost in costs), sum(cost.everything for cost in costs)),
            dollars=round(sum(sent for sent, _ in priced), 6) if known else None,
            dollars_everything=round(sum(everything for _, everything in priced), 6) if known else None,
            kept=share(evidence.kept, evidence.needed),
            kept_from_outputs=share(evidence.kept_from_outputs, evidence.needed_from_outputs),
            kept_lines=share(evidence.kept_lines, evidence.needed_lines),
            within_reach=share(evidence.kept + evidence.reachable, evidence.needed),
            values_needed=evidence.needed,
            values_needed_from_outputs=evidence.needed_from_outputs,
            lines_needed=evidence.needed_lines,
            folds=sum(call.folds for call in calls),
            repairs=dict(sorted(self.repairs.items())),
            invalid=sum(call.invalid for call in calls),
            over=sum(call.over for call in calls),
            lost=self.lost,
            median_ms=round(statistics.median(milliseconds), 3) if milliseconds else None,
            p95_ms=round(percentile(milliseconds, 0.95), 3) if milliseconds else None,
        )


def share(part: float, whole: float) -> float | None:
    """Return a part of a whole, rounded; `None` where there is no whole."""
    return round(part / whole, 4) if whole else None


def percentile(ordered: Sequence[float], rank: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(rank * len(ordered)) - 1)]
