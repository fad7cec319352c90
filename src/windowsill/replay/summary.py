"""The report of a replay in words: what it would have saved, what was kept, what was not, what the figures mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from windowsill.config.settings import DEFAULT_STRATEGY
from windowsill.replay.costs import CostComparison, RecordedCost
from windowsill.replay.evidence import Loss
from windowsill.replay.report import Figures, ReplayReport, Totals
from windowsill.replay.walk import ReplayOptions
from windowsill.text import count_of

LEGEND = {
    "window": "the most tokens a request may have; without one, as many as its model takes",
    "calls": "model calls that were replayed",
    "peak": "tokens of the largest request",
    "sent": "tokens of all requests together",
    "cached": "share of the tokens sent with which the request before began, so that a prompt cache serves them",
    "cost": "cost against sending everything each time (1 is the same), at the prices of the model, with a cache that "
    "is cold after a longer recorded pause than it lives",
    "kept": "share of the values in tool calls, seen before, that were still in the request",
    "outputs": "the same for values that only tool outputs had shown",
    "lines": "the same for lines that edits quote from files",
    "folds": "reductions that were made; each can be undone",
    "repairs": "places of the recording that a provider would refuse, mended in the request",
    "invalid": "requests that the provider would refuse",
    "over": "requests above the window",
    "lost": "messages that can no longer be read as they were recorded",
    "failed": "sessions whose replay stopped early",
    "paid": "dollars by the usage that the provider reported, at today's list prices",
    "would pay": "dollars for the same calls, each with the share of the recorded request that is left",
}
"""The columns of the tables, and what they mean."""

SMALLEST_CENTS = 0.1
"""Dollars below which a sum is shown with four digits: two would often be none."""


def headline(report: ReplayReport) -> list[str]:
    """Say in a few sentences what was saved, what was kept, what was not, and whether anything went wrong."""
    total = report.total
    return [
        _saved(total, report.options),
        *_kept(total),
        *_missed(report),
        f"{count_of(total.folds, 'fold')}; {_safety(total)}.",
    ]


def compare_headlines(reports: Mapping[str, ReplayReport]) -> list[str]:
    """Say which of several variants costs least, which keeps most, and whether anything went wrong."""
    found = {name: report.total for name, report in reports.items()}
    cheapest = min(found, key=lambda name: (_cost(found[name]), -_share_kept(found[name])))
    fullest = max(found, key=lambda name: (_share_kept(found[name]), -_cost(found[name])))
    if len({(_cost(total), _share_kept(total)) for total in found.values()}) == 1:
        words = [f"All of them cost and keep the same: {_verdict(found[cheapest])}."]
    elif cheapest == fullest:
        words = [f"{cheapest} costs least and keeps most: {_verdict(found[cheapest])}."]
    else:
        words = [f"{cheapest} costs least: {_verdict(found[cheapest])}."]
        words.append(f"{fullest} keeps most: {_verdict(found[fullest])}.")
    safety = {name: _safety(total) for name, total in found.items()}
    if len(set(safety.values())) == 1:
        return [*words, f"In each of them: {safety[cheapest]}."]
    return [*words, *(f"{name}: {each}." for name, each in safety.items())]


def cells(figures: Figures, recorded: RecordedCost | None, compared: CostComparison | None) -> dict[str, object]:
    """Return a row of a table, by the titles that `LEGEND` explains."""
    return {
        "calls": figures.calls,
        "peak": figures.peak_tokens,
        "sent": figures.tokens_sent,
        "cached": figures.cache_hit_share,
        "cost": figures.cost_ratio,
        "kept": figures.kept,
        "outputs": figures.kept_from_outputs,
        "lines": figures.kept_lines,
        "folds": figures.folds,
        "repairs": sum(figures.repairs.values()),
        "invalid": figures.invalid,
        "over": figures.over,
        "lost": figures.lost,
        # A branch repeats calls that another session has paid for.
        "paid": None if recorded is None or recorded.dollars is None else money(recorded.dollars),
        "would pay": None if compared is None or compared.dollars is None else money(compared.dollars),
    }


def describe_loss(loss: Loss) -> str:
    """Say what was not in view, where it stood and where it was needed."""
    place = "the system prompt" if loss.stood_in is None else f"message {loss.stood_in:,}, {loss.stood_as}"
    reach = "a search finds it" if loss.reachable else "a search does not find it"
    needed = f"needed by {loss.needed_by} in message {loss.needed_in:,}"
    return f"{loss.kind} {loss.text!r}: stood in {place}; {needed}; {reach}"


def money(dollars: float) -> str:
    """Return a sum for people."""
    return f"${dollars:,.2f}" if dollars >= SMALLEST_CENTS or dollars == 0 else f"${dollars:.4f}"


def percent(share: float) -> str:
    """Return a share as a percentage that is 100% only if nothing is missing."""
    return "100%" if share == 1 else f"{min(share, 0.999):.1%}"


def _saved(total: Totals, options: ReplayOptions) -> str:
    window = "each model's own window" if options.window is None else f"{options.window:,} tokens"
    compared = total.compared
    start = f"With {options.strategy or DEFAULT_STRATEGY} at {window}"
    if compared is not None and compared.dollars is not None and compared.recorded_dollars is not None:
        calls = f"your {count_of(compared.priced, 'call')}"
        return f"{start}, {calls} would have cost {_against(compared.dollars, compared.recorded_dollars)}."
    calls = count_of(total.calls, "call")
    if total.dollars is not None and total.dollars_everything is not None:
        end = _against(total.dollars, total.dollars_everything, " sending everything each time")
        return f"{start}, {calls} would cost {end}."
    if total.cost_ratio is None:
        return f"{start}, there was no call to replay."
    share = _difference(total.cost_ratio)
    return (
        f"{start}, {calls} would cost {share or 'the same as'}{' than' if share else ''} sending everything each time."
    )


def _against(dollars: float, before: float, what: str = "") -> str:
    share = _difference(dollars / before) if before else ""
    if not share:
        return f"the same{f' as{what}' if what else ''}, {money(before)}"
    return f"{money(dollars)} instead of {money(before)}{f' for{what}' if what else ''} ({share})"


def _difference(ratio: float) -> str:
    """Say how much less or more a cost is; nothing where it is the same."""
    change = abs(1 - ratio)
    if change < 0.0005:  # noqa: PLR2004 - half of the last digit that is shown
        return ""
    return f"{change:.1%} {'less' if ratio < 1 else 'more'}"


def _kept(total: Totals) -> Iterator[str]:
    parts: list[str] = []
    if total.kept is not None:
        outputs = total.kept_from_outputs
        apart = f"{percent(outputs or 0)} of the {total.values_needed_from_outputs:,} that only tool outputs had shown"
        values = count_of(total.values_needed, "value")
        parts.append(f"{percent(total.kept)} of {values}{'' if outputs in {None, 1} else f' ({apart})'}")
    if total.kept_lines is not None:
        parts.append(f"{percent(total.kept_lines)} of {count_of(total.lines_needed, 'quoted line')}")
    if parts:
        yield f"Of what later calls needed, the requests still had {' and '.join(parts)}."
    else:
        yield "No later call needed a value or a line from before."


def _missed(report: ReplayReport) -> Iterator[str]:
    losses = [loss for session in report.sessions for loss in session.losses]
    kinds = Counter(loss.kind for loss in losses)
    if losses:
        what = " and ".join(count_of(kinds[kind], kind) for kind in ("value", "line") if kinds[kind])
        reachable = sum(loss.reachable for loss in losses)
        every = "all of them" if reachable == len(losses) else f"{reachable:,} of them"
        yield f"Not in view when needed: {what}; one search of the history finds {every}."


def _safety(total: Totals) -> str:
    failed = f", {total.failed:,} of {count_of(total.sessions, 'session')} not replayed to the end"
    requests = f"{count_of(total.invalid, 'request')} invalid, {total.over:,} above the window"
    return f"{requests}, {count_of(total.lost, 'message')} lost{failed if total.failed else ''}"


def _cost(total: Totals) -> float:
    paid = total.compared.dollars if total.compared is not None else None
    ratio = 1.0 if total.cost_ratio is None else total.cost_ratio
    return ratio if paid is None else paid


def _share_kept(total: Totals) -> float:
    """Return the share of the needed values and lines together that was kept."""
    needed = total.values_needed + total.lines_needed
    kept = (total.kept or 0) * total.values_needed + (total.kept_lines or 0) * total.lines_needed
    return kept / needed if needed else 1.0


def _verdict(total: Totals) -> str:
    shares = {"values": total.kept, "lines": total.kept_lines}
    kept = [f"{percent(share)} of {what}" for what, share in shares.items() if share is not None]
    compared = total.compared
    if compared is not None and compared.dollars is not None and compared.recorded_dollars is not None:
        cost = _against(compared.dollars, compared.recorded_dollars)
    else:
        cost = _difference(_cost(total)) or "the same as sending everything"
    return f"{cost}; it keeps {' and '.join(kept)}" if kept else cost
