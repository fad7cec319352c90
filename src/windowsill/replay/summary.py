"""The report of a replay in words: what it would have saved, what was kept, what was not, what the figures mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from windowsill.replay.evidence import Loss
from windowsill.replay.report import ReplayReport, Totals
from windowsill.replay.walk import ReplayOptions
from windowsill.strategies.registry import DEFAULT

LEGEND = {
    "calls": "model calls that were replayed",
    "peak": "tokens of the largest request",
    "sent": "tokens of all requests together",
    "cached": "share of these tokens with which the request before began, so that a prompt cache serves them",
    "cost": "cost against sending everything each time (1 is the same), at the prices of the model, with a cache that "
    "is cold after a recorded pause longer than it lives",
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
    "would pay": "dollars for the same calls: what is counted here says which share of each recorded request is left",
}
"""The columns of the tables, and what they mean."""

SMALLEST_CENTS = 0.1
"""Dollars below which a sum is shown with four digits: two would often be none."""


def headline(report: ReplayReport) -> list[str]:
    """Say in a few sentences what was saved, what was kept, what was not, and whether anything went wrong."""
    total = report.total
    return [_saved(total, report.options), *_kept(total), *_missed(report), _safety(total)]


def compare_headlines(reports: Mapping[str, ReplayReport]) -> list[str]:
    """Say which of several variants costs least, and which keeps most."""
    found = {name: report.total for name, report in reports.items()}
    cheapest = min(found, key=lambda name: _order(_cost(found[name])))
    fullest = max(found, key=lambda name: (_order(found[name].kept), -_order(_cost(found[name]))))
    if cheapest == fullest:
        return [f"{cheapest} costs least and keeps most: {_verdict(found[cheapest])}."]
    return [
        f"{cheapest} costs least: {_verdict(found[cheapest])}.",
        f"{fullest} keeps most: {_verdict(found[fullest])}.",
    ]


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


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 call` or `2,000 calls`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _saved(total: Totals, options: ReplayOptions) -> str:
    window = "each model's own window" if options.window is None else f"{options.window:,} tokens"
    compared = total.compared
    start = f"With {options.strategy or DEFAULT} at {window}"
    if compared is not None and compared.dollars is not None and compared.recorded_dollars is not None:
        calls = f"your {counted(compared.priced, 'call')}"
        return f"{start}, {calls} would have cost {_against(compared.dollars, compared.recorded_dollars)}."
    calls = counted(total.calls, "call")
    if total.dollars is not None and total.dollars_everything is not None:
        end = _against(total.dollars, total.dollars_everything, " for sending everything each time")
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
        return f"the same{' as' + what.removeprefix(' for') if what else ''}: {money(before)}"
    return f"{money(dollars)} instead of {money(before)}{what}: {share}"


def _difference(ratio: float) -> str:
    """Say how much less or more a cost is; nothing where it is the same."""
    change = abs(1 - ratio)
    if change < 0.0005:  # noqa: PLR2004 - half of the last digit that is shown
        return ""
    return f"{change:.1%} {'less' if ratio < 1 else 'more'}"


def _kept(total: Totals) -> Iterator[str]:
    values, lines = counted(total.values_needed, "value"), counted(total.lines_needed, "line")
    parts: list[str] = []
    if total.kept is not None:
        outputs = total.kept_from_outputs
        apart = "" if outputs is None or outputs == 1 else f" ({percent(outputs)} of those that only tool outputs told)"
        parts.append(f"{percent(total.kept)} of the {values}{apart}")
    if total.kept_lines is not None:
        parts.append(f"{percent(total.kept_lines)} of the {lines} that edits quoted")
    if parts:
        yield f"Kept: {' and '.join(parts)} that later calls needed were still in the request."
    else:
        yield "Kept: no later call needed anything from before."


def _missed(report: ReplayReport) -> Iterator[str]:
    losses = [loss for session in report.sessions for loss in session.losses]
    kinds = Counter(loss.kind for loss in losses)
    if losses:
        what = " and ".join(counted(kinds[kind], kind) for kind in ("value", "line") if kinds[kind])
        reachable = sum(loss.reachable for loss in losses)
        every = "all of them" if reachable == len(losses) else f"{reachable:,} of them"
        yield f"Not in view when needed: {what}; one search of the history finds {every}."


def _safety(total: Totals) -> str:
    troubles = {"invalid": total.invalid, "above the window": total.over}
    bad = [f"{count:,} {what}" for what, count in troubles.items() if count]
    requests = f"{' and '.join(bad)} of {counted(total.calls, 'request')}" if bad else "0 requests invalid or above"
    failed = f"; {total.failed:,} of {counted(total.sessions, 'session')} failed" if total.failed else ""
    return f"{counted(total.folds, 'fold')}; {requests}; {counted(total.lost, 'message')} lost{failed}."


def _cost(total: Totals) -> float | None:
    return total.compared.dollars if total.compared is not None and total.compared.dollars else total.cost_ratio


def _order(figure: float | None) -> float:
    return float("inf") if figure is None else figure


def _verdict(total: Totals) -> str:
    kept = "nothing was needed" if total.kept is None else f"{percent(total.kept)} kept"
    compared = total.compared
    if compared is not None and compared.dollars is not None and compared.recorded_dollars:
        return f"{_against(compared.dollars, compared.recorded_dollars)}, {kept}"
    ratio = total.cost_ratio
    return f"{'the same' if ratio is None else _difference(ratio) or 'the same'}, {kept}"
