"""A page about one or several replays: headline, plots, a table, what was lost. One file, no scripts, no network."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import resources

from windowsill.replay.report import ReplayReport, SessionReport
from windowsill.replay.summary import LEGEND, cells, compare_headlines, describe_loss, headline, money
from windowsill.text import table_cell

COLUMNS = [title for title in LEGEND if title not in {"window", "calls", "sent", "repairs", "paid"}]
"""The columns of the table: what is the same for all variants is in the headline."""

MOST_SESSIONS = 2
"""Sessions whose requests are drawn: those with the most folds."""

MOST_LOSSES = 100
"""Losses listed for each variant; a report has all of them."""

WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 80, 24, 16, 44
"""The size of a plot and the room around its axes, in pixels."""

STEPS = 6
FACTORS = (1, 2, 2.5, 5, 10)
"""Steps of an axis at the most, and the round numbers that a step may be, times a power of ten."""

APART = 13
"""Pixels between the numbers at the ends of lines."""

DASHES = ("", "7 3", "2 3", "9 3 2 3")
"""A line is told from the others by its dashes and its number too, not by its colour alone."""

COLOURS = 6

_WORD_END = re.compile(",(?=[a-z])")


def comparison_page(reports: Mapping[str, ReplayReport], *, losses: bool = True) -> str:
    """Return a page of HTML about replays of the same sessions, each by its name.

    Without `losses` the page counts them only, and has no text of a conversation.
    """
    first = next(iter(reports.values()))
    words = compare_headlines(reports) if len(reports) > 1 else headline(first)
    parts = [
        "<h1>What would it have saved, and what was lost?</h1>",
        *(f'<p class="lead">{escape(sentence)}</p>' for sentence in words),
        f'<p class="soft">{first.total.sessions:,} recorded sessions, {first.total.calls:,} model calls.</p>',
        _figures_table(reports),
        "<h2>Cost against what was kept</h2>",
        _scatter(reports),
        *_session_plots(reports),
        "<h2>What was not in view when a call needed it</h2>",
        *(_losses(name, report, listed=losses) for name, report in reports.items()),
        "<h2>What the columns mean</h2>",
        "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in LEGEND.items()) + "</dl>",
    ]
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Windowsill replay</title><style>{_style()}</style></head><body><main>\n"
    )
    return head + "\n".join(parts) + "\n</main></body></html>\n"


def _style() -> str:
    """Return the style sheet, with a colour for each line of a plot."""
    lines = (
        f".s{n} {{ stroke: var(--c{n}); }} .f{n} {{ fill: var(--c{n}); background: var(--c{n}); }} "
        for n in range(COLOURS)
    )
    return resources.files("windowsill.replay").joinpath("page.css").read_text("utf-8") + "".join(lines)


def _figures_table(reports: Mapping[str, ReplayReport]) -> str:
    totals = [report.total for report in reports.values()]
    rows = [cells(total, total.recorded, total.compared) | {"failed": total.failed} for total in totals]
    # A column in which nothing is known for any variant says nothing, nor does one without a failure.
    empty = {title for title in COLUMNS if not any(row[title] for row in rows)} - {"invalid", "over", "lost"}
    titles = [title for title in COLUMNS if title not in empty]
    header = "".join(f'<th scope="col">{title}</th>' for title in ("strategy", *titles))
    body = ""
    for number, (name, row) in enumerate(zip(reports, rows, strict=True), 1):
        named = f'<th scope="row">{number}.&nbsp;{_WORD_END.sub(",<wbr>", escape(name))}</th>'
        body += f"<tr>{named}{''.join(f'<td>{table_cell(row[title])}</td>' for title in titles)}</tr>"
    caption = "The numbers are those in the plots. What the columns mean is said below."
    return (
        f'<div class="scroll"><table><caption>{caption}</caption><thead><tr>{header}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _share(value: float) -> str:
    return f"{value * 100:.4g}%"


class _Axis:
    """The range of one axis, with round ticks, and its place on the page."""

    def __init__(
        self, values: Iterable[float], start: float, end: float, show: Callable[[float], str] = "{:,.0f}".format
    ) -> None:
        found = list(values)
        self.show = show
        low, high = min(found), max(found)
        room = max(high - low, abs(high) * 0.02, 1e-3) / STEPS
        power = 10.0 ** math.floor(math.log10(room))
        step = next(factor * power for factor in FACTORS if factor * power >= room)
        self.low = math.floor(low / step) * step
        self.high = max(high, self.low + step)
        self.ticks = [self.low + step * n for n in range(math.floor((self.high - self.low) / step + 1e-6) + 1)]
        self._start, self._length = start, end - start

    def at(self, value: float) -> float:
        """Return the place of a value, in pixels."""
        return round(self._start + (value - self.low) / (self.high - self.low) * self._length, 1)


def _frame(x: _Axis, y: _Axis, x_name: str, y_name: str) -> list[str]:
    """Draw the grid, its numbers and the names of the axes."""
    found: list[str] = []
    for tick in y.ticks:
        place = y.at(tick)
        found.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place}" y2="{place}"/>')
        found.append(f'<text class="soft" x="{LEFT - 8}" y="{place + 4}" text-anchor="end">{y.show(tick)}</text>')
    below = f'y="{HEIGHT - BOTTOM + 16}" text-anchor="middle"'
    found += [f'<text class="soft" x="{x.at(tick)}" {below}>{x.show(tick)}</text>' for tick in x.ticks]
    found.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{x_name}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    found.append(f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{y_name}</text>')
    return found


def _svg(title: str, description: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(f"{title}. {description}")}">'
        f"{''.join(parts)}</svg>"
    )


def _scatter(reports: Mapping[str, ReplayReport]) -> str:
    """Draw each variant at its cost and the share of values that it kept."""
    totals = {number: report.total for number, report in enumerate(reports.values(), 1)}
    paid = {number: total.compared.dollars for number, total in totals.items() if total.compared is not None}
    known = len(paid) == len(totals) and None not in paid.values()
    costs = paid if known else {number: total.cost_ratio for number, total in totals.items()}
    points = [
        (number, cost, 1.0 if totals[number].kept is None else totals[number].kept or 0.0)
        for number, cost in costs.items()
        if cost is not None
    ]
    if not points:
        return "<p>No call was replayed.</p>"
    x = _Axis([cost for _, cost, _ in points], LEFT + 20, WIDTH - RIGHT - 20, money if known else _share)
    y = _Axis([kept for *_, kept in points], HEIGHT - BOTTOM - 12, TOP + 12, _share)
    what = "what you would pay" if known else "cost against sending everything"
    parts = _frame(x, y, f"{what} (less is better)", "kept (more is better)")
    names = list(reports)
    texts = {number: f"{names[number - 1]}: cost {x.show(cost)}, kept {_share(kept)}" for number, cost, kept in points}
    places: dict[tuple[float, float], list[int]] = {}
    for number, cost, kept in points:
        places.setdefault((x.at(cost), y.at(kept)), []).append(number)
    for (across, down), numbers in places.items():
        label = ", ".join(map(str, numbers))
        width = 15 + 7 * len(label)
        parts.append(
            f"<g><title>{escape('; '.join(texts[number] for number in numbers))}</title>"
            f'<rect class="f{_colour(numbers[0])}" x="{across - width / 2}" y="{down - 11}" width="{width}" '
            f'height="22" rx="11"/><text class="number" x="{across}" y="{down + 4}">{label}</text></g>'
        )
    caption = "Each number is a row of the table. The best place is the upper left: cheap, and nothing missing."
    plot = _svg("Cost against kept values", "; ".join(texts.values()), parts)
    return f"<figure>{plot}<figcaption>{caption}</figcaption></figure>"


def _colour(number: int) -> int:
    return (number - 1) % COLOURS


def _session_plots(reports: Mapping[str, ReplayReport]) -> Iterator[str]:
    """Draw the tokens of each request of the sessions with the most folds, a plot for each window."""
    first = next(iter(reports.values()))
    folds = [
        sum(len(report.sessions[place].folded) for report in reports.values()) for place in range(len(first.sessions))
    ]
    for place in sorted(range(len(folds)), key=lambda place: -folds[place])[:MOST_SESSIONS]:
        yield f"<h2>Tokens of each request: {escape(first.sessions[place].session)}</h2>"
        for window in dict.fromkeys(report.options.window for report in reports.values()):
            yield _tokens_plot(
                {
                    number: (name, report.sessions[place])
                    for number, (name, report) in enumerate(reports.items(), 1)
                    if report.options.window == window
                }
            )


def _tokens_plot(sessions: Mapping[int, tuple[str, SessionReport]]) -> str:
    whole = max((session.everything for _, session in sessions.values()), key=len)
    if not whole:
        return "<p>No call was replayed.</p>"
    x = _Axis([0, len(whole)], LEFT, WIDTH - RIGHT - 16)
    highest = max(max(session.tokens, default=0) for _, session in sessions.values())
    y = _Axis([0, *whole, highest], HEIGHT - BOTTOM, TOP)
    parts = _frame(x, y, "model call", "tokens")
    parts.append(f'<polyline class="line whole" points="{_points(whole, x, y)}"/>')
    ends: list[tuple[float, float, int]] = []
    for number, (_, session) in sessions.items():
        colour, dash = _colour(number), DASHES[(number - 1) // COLOURS % len(DASHES)]
        points = _points(session.tokens, x, y)
        parts.append(f'<polyline class="line s{colour}" stroke-dasharray="{dash}" points="{points}"/>')
        parts += [
            f'<circle class="f{colour}" cx="{x.at(call + 1)}" cy="{y.at(session.tokens[call])}" r="4">'
            f"<title>{number}: fold at call {call + 1:,}, {session.tokens[call]:,} tokens</title></circle>"
            for call in session.folded
        ]
        if session.tokens:
            ends.append((y.at(session.tokens[-1]), x.at(len(session.tokens)), number))
    lowest = math.inf
    for down, across, number in sorted(ends, reverse=True):
        lowest = min(down, lowest - APART)
        parts.append(f'<text x="{across + 6}" y="{lowest + 4}">{number}</text>')
    described = "; ".join(
        f"{name}: at most {max(session.tokens, default=0):,} tokens, {session.figures.folds:,} folds"
        for name, session in sessions.values()
    )
    names = " ".join(
        f'<b class="f{_colour(number)}">{number}</b> {escape(name)}' for number, (name, _) in sessions.items()
    )
    plot = _svg("Tokens of each request", described, parts)
    caption = f"{names}. Dotted: everything sent each time. A dot is a fold."
    return f"<figure>{plot}<figcaption>{caption}</figcaption></figure>"


def _points(tokens: Sequence[int], x: _Axis, y: _Axis) -> str:
    return " ".join(f"{x.at(call)},{y.at(each)}" for call, each in enumerate(tokens, 1))


def _losses(name: str, report: ReplayReport, *, listed: bool) -> str:
    found = [(each.session, loss) for each in report.sessions for loss in each.losses]
    if not found or not listed:
        count = f"{len(found):,} of the values and lines, listed with <code>--losses</code>" if found else "nothing"
        return f"<p>{escape(name)}: {count}.</p>"
    items = "".join(f"<li>{escape(f'{session}: {describe_loss(loss)}')}</li>" for session, loss in found[:MOST_LOSSES])
    more = f"<p>and {len(found) - MOST_LOSSES:,} more</p>" if len(found) > MOST_LOSSES else ""
    return f"<details><summary>{escape(name)}: {len(found):,}</summary><ul>{items}</ul>{more}</details>"
