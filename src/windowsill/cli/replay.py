"""`windowsill replay`: parse the options, replay, print the report."""

from __future__ import annotations

import gzip
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from windowsill import strategies, tokens
from windowsill.budget import tokens_of
from windowsill.cli.main import as_options
from windowsill.cli.options import (
    format_option,
    load_settings,
    low_option,
    parse_mark,
    processes_for,
    report_option,
    search_current_folder,
    strategy_option,
    tokenizer_option,
    workers_option,
)
from windowsill.cli.output import on_terminal, pretty_json, print_json, print_table, print_text, short_ids
from windowsill.cli.session_ids import (
    complete_models,
    complete_sessions,
    find_session,
    open_store_at,
    store_option,
)
from windowsill.config import Loaded, Settings
from windowsill.config.settings import DEFAULT_STRATEGY, read_strategies, with_tables
from windowsill.errors import SettingError
from windowsill.replay.costs import CostComparison, RecordedCost
from windowsill.replay.page import comparison_page
from windowsill.replay.recordings import BrokenLine, Recording, read_recordings, stored_recording, total_size
from windowsill.replay.report import ReplayReport
from windowsill.replay.runs import cross, run_variants
from windowsill.replay.summary import LEGEND, cells, compare_headlines, describe_loss, headline, money
from windowsill.replay.walk import ReplayOptions
from windowsill.text import count_of, printable_line, shorten


class _WithColumns(click.Command):
    """A command whose help explains the columns that it prints."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write what the columns mean below the options."""
        with formatter.section("Columns"):
            formatter.write_dl(list(LEGEND.items()))


def _read_windows(_ctx: click.Context, _option: click.Parameter, text: str | None) -> list[int]:
    """Read `30k,60000` as the windows that it lists."""
    try:
        # A share of a window that nobody states is no size.
        return [tokens_of(part.replace("%", "share"), 1, "window") for part in text.split(",")] if text else []
    except SettingError:
        raise click.BadParameter(f"{text!r} is not tokens such as 60000, 60k or 30k,60k") from None


@click.command(cls=_WithColumns)
@click.argument("files", nargs=-1, metavar="FILE...")
@click.option(
    "--session",
    "ids",
    metavar="ID",
    multiple=True,
    shell_complete=complete_sessions,
    help="Replay a stored session; may be given several times, and beside files.",
)
@store_option
@format_option
@click.option(
    "--model",
    metavar="M",
    shell_complete=complete_models,
    help="The model to assume; the one each recording names if left out.",
)
@tokenizer_option
@click.option(
    "--window",
    "windows",
    metavar="N,...",
    callback=_read_windows,
    help="The most input tokens a request may have: 60000 or 60k. Several, such as 30k,60k, are compared.",
)
@click.option(
    "--overhead",
    type=click.IntRange(min=0),
    metavar="N",
    help="Tokens to count for a system prompt and tools that were not recorded.",
)
@strategy_option
@click.option(
    "--compare",
    "compared",
    metavar="S,...",
    help="Compare strategies, each at each window: economy,sliding-window,condense:keep=20,room=0.15.",
)
@click.option("--high", metavar="N", help="Reduce above this size, such as 80%.")
@low_option
@click.option(
    "--writer",
    metavar="W",
    help="What writes summaries: offline, or a model such as openai:gpt-5-mini, which is really called. The writer of "
    "a settings file is not used: a replay must not cost money by surprise.",
)
@click.option("--recall", metavar="N", help="Bring back up to N tokens (or a share) of what a step needs.")
@click.option("--tools", is_flag=True, help="Offer the tools that read hidden messages.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Replay only the first N sessions.")
@workers_option
@click.option(
    "--losses",
    is_flag=True,
    help="List the values and lines that a call needed and that were not in its request: where they stood, and where "
    "they were needed.",
)
@click.option("--html", "page_file", metavar="P.html", help="Write a page with plots to this file.")
@click.option("--dump", "dump_file", metavar="D.jsonl", help="Write each request to this file (.gz compresses it).")
@report_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON; of several, an object by name.")
def replay(
    files: tuple[str, ...],
    ids: tuple[str, ...],
    windows: list[int],
    limit: int | None,
    workers: int | None,
    overhead: int | None,
    *,
    losses: bool,
    as_json: bool,
    tools: bool,
    **typed: str | None,
) -> None:
    """Replay recorded sessions turn by turn, as an agent would, and tell what it would have saved and what was lost.

    A recorded session is a request body, a message list, or an object with `messages` and, where known, `id`, `format`,
    `model`, `times` and `usage`. A .jsonl file (or .jsonl.gz) holds one session per line, any other file one session.

    A file may also be a transcript of Claude Code, Codex or the Gemini CLI, a log of requests, or one message per line.
    So are exports of `windowsill sessions export`, and --session takes sessions from the store. In a folder, every
    .jsonl, .jsonl.gz and .json file is read. Broken lines are counted and reported. Where usage was
    recorded, the report says what was paid, and what the same calls would cost. Other settings come from WINDOWSILL_*
    variables and from windowsill.toml.
    """
    settings, loaded = load_settings(
        model=typed["model"],
        tokenizer=typed["tokenizer"],
        overhead=overhead,
        strategy=typed["strategy"],
        high=parse_mark(typed["high"], "high"),
        low=parse_mark(typed["low"], "low"),
        writer=typed["writer"],
        recall=parse_mark(typed["recall"], "recall"),
    )
    options = ReplayOptions(
        model=typed["model"],
        window=_stated_window(settings, loaded),
        overhead=settings.overhead,
        strategy=settings.strategy if typed["strategy"] or settings.strategy != DEFAULT_STRATEGY else None,
        tokenizer=settings.tokenizer,
        writer=settings.writer if typed["writer"] else None,
        recall=settings.recall,
        tools=tools,
        high=loaded.settings.high,
        low=loaded.settings.low,
    )
    if options.tokenizer is not None:
        tokens.counter(options.tokenizer)  # A vocabulary that does not exist is refused before any work.
    if not files and not ids:
        raise click.UsageError(
            "give recorded sessions as FILE..., or stored ones with --session", click.get_current_context()
        )
    variants = cross(_compared_strategies(typed["compared"], loaded), windows or [None], options)
    if typed["dump_file"] is not None and len(variants) > 1:
        raise click.UsageError("--dump writes the requests of one strategy at one window", click.get_current_context())
    size = total_size(files)
    with _dump(typed["dump_file"]) as write, _stored(typed["place"], ids) as stored, _progress(size) as advance:
        found = itertools.chain(stored, read_recordings(files, format=typed["format"], advance=advance))
        reports = run_variants(found, variants, limit=limit, workers=workers or processes_for(size), write=write)
    if typed["page_file"] is not None:
        Path(typed["page_file"]).write_text(comparison_page(reports, losses=losses), encoding="utf-8")
    # Texts of a conversation are in a report only where they were asked for.
    shown = reports if losses else {name: _without_losses(report) for name, report in reports.items()}
    written: object = shown if len(shown) > 1 else next(iter(shown.values()))
    if typed["report_file"] is not None:
        Path(typed["report_file"]).write_bytes(pretty_json(written) + b"\n")
    if as_json:
        print_json(written)
    else:
        print_reports(reports, losses=losses)


def _compared_strategies(text: str | None, loaded: Loaded) -> list[str | None]:
    """Return the strategies of a list, with the settings that files have for them; refuse one that does not exist."""
    found: list[str | None] = []
    for each in read_strategies(text or ""):
        search_current_folder(each)
        strategies.get(with_tables(each, loaded.tables))
        found.append(with_tables(each, loaded.tables))
    return found or [None]


def _without_losses(report: ReplayReport) -> ReplayReport:
    sessions = tuple(msgspec.structs.replace(each, losses=()) for each in report.sessions)
    return msgspec.structs.replace(report, sessions=sessions)


def _stated_window(settings: Settings, loaded: Loaded) -> int | None:
    """Return the most input tokens that a settings file or a variable states; a preset leaves that to each recording.

    A share of a window means nothing here: each recording may be of another model.
    """
    budget, window = settings.budget, settings.window
    if "budget" in loaded.origins and budget is not None and (window or isinstance(budget, int)):
        return tokens_of(budget, window or 1, "budget")
    return window


@contextmanager
def _dump(path: str | None) -> Iterator[Callable[[bytes], object] | None]:
    if path is None:
        yield None
        return
    with Path(path).open("wb") as file:
        if not path.endswith(".gz"):
            yield file.write
            return
        # Neither name nor time in the header: the same replay gives the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            yield packed.write


@contextmanager
def _stored(place: str | None, ids: tuple[str, ...]) -> Iterator[Iterable[Recording]]:
    """Return the recordings of stored sessions, each read when its turn comes."""
    if not ids:
        yield ()
        return
    with open_store_at(place) as store:
        known = [find_session(store, id).id for id in ids]
        yield (stored_recording(store, id) for id in known)


@contextmanager
def _progress(size: int) -> Iterator[Callable[[int], None] | None]:
    """Show a bar over the bytes of all files on a terminal, and nothing in a pipe."""
    if not on_terminal(sys.stderr) or not size:
        yield None
        return
    with click.progressbar(length=size, label="replaying", file=sys.stderr) as bar:
        yield bar.update
        # What --limit left unread is done too.
        bar.update(size - bar.pos)
    if os.environ.get("TERM") != "dumb":
        click.echo("\033[1A\033[2K", file=sys.stderr, nl=False)


WIDE, WIDE_COMPARED = 120, 115
"""Characters that all columns need. A narrower terminal shows those that say whether it works."""

ID_WIDE, ID_NARROW, ID_PIPE = 24, 12, 500
"""Characters of a session's id; a pipe gets all of them."""

NAME_NARROW = 26
"""Characters of a strategy on a narrow terminal."""

LONGEST_TEXT = 160
"""Characters of a value or line in a list of losses; a report has all of them."""

MOST_TROUBLES = 20
"""Troubles printed one by one; the report has all of them."""

MOST_FOREIGN = 3
"""Files without a recording printed by name: a folder of an agent has many."""

ONLY_WIDE = frozenset({"sent", "outputs", "lines", "repairs"})
"""Columns that a narrow terminal leaves out,"""

PAID_WIDE = 20
"""the characters that the columns of recorded costs need beside the others,"""

BEFORE_PAID = frozenset({"cost", "over"})
"""and the columns that a narrow terminal leaves out for them."""

COMPARED_WIDE = frozenset({"calls", "peak", "sent", "cached", "repairs", "invalid", "over", "lost", "paid"})
"""Columns of a comparison that a narrow terminal leaves out; the headline has what is the same for all."""


def print_reports(reports: Mapping[str, ReplayReport], *, losses: bool = False) -> None:
    """Print what was found in words, then a table, what its columns mean, and what went wrong."""
    first, *others = reports.values()
    _print_headline(reports, losses=losses)
    rows = _variant_rows(reports) if others else _session_rows(first)
    _print_space()
    print_table(rows, footer=not others)
    _print_space()
    for title in rows[0]:
        if title in LEGEND:
            print_text(LEGEND[title], begin=f"{title + ':':<10} ")
    for sentence in sentences(first.total.recorded, first.total.compared):
        print_text(sentence)
    for name, report in reports.items() if losses else ():
        _print_losses(name if others else "", report)
    _print_troubles(reports if others else {"": first})


def _print_headline(reports: Mapping[str, ReplayReport], *, losses: bool) -> None:
    first, *others = reports.values()
    for sentence in compare_headlines(reports) if others else headline(first):
        print_text(sentence)
    if not losses and any(each.losses for report in reports.values() for each in report.sessions):
        print_text("--losses lists what was not in view.")
    if all(report.options.window is None and not report.total.folds for report in reports.values()):
        print_text("Every request fits its model's window as it is: --window 60k shows what a smaller one would do.")


def _print_space() -> None:
    """Print an empty line where the table is not drawn with one."""
    if not on_terminal():
        click.echo()


def _session_rows(report: ReplayReport) -> list[dict[str, object]]:
    """Make a row for each session, and the total."""
    total = report.total
    paid = total.recorded is not None
    narrow = on_terminal() and shutil.get_terminal_size().columns < WIDE + (PAID_WIDE if paid else 0)
    length = ID_PIPE if not on_terminal() else ID_NARROW if narrow else ID_WIDE
    names = short_ids([each.session for each in report.sessions], length)
    rows = [
        {"session": name} | cells(each.figures, each.recorded, each.compared)
        for name, each in zip(names, report.sessions, strict=True)
    ]
    rows.append({"session": "total"} | cells(total, total.recorded, total.compared))
    return _shown(rows, (ONLY_WIDE | (BEFORE_PAID if paid else frozenset())) if narrow else frozenset(), paid=paid)


def _variant_rows(reports: Mapping[str, ReplayReport]) -> list[dict[str, object]]:
    """Make a row for each strategy and window."""
    paid = any(report.total.recorded is not None for report in reports.values())
    narrow = on_terminal() and shutil.get_terminal_size().columns < WIDE_COMPARED + (PAID_WIDE if paid else 0)
    failed = any(report.total.failed for report in reports.values())
    names = [report.options.strategy or DEFAULT_STRATEGY for report in reports.values()]
    rows = [
        {"strategy": shorten(name, NAME_NARROW) if narrow else name, "window": report.options.window}
        | cells(report.total, report.total.recorded, report.total.compared)
        | ({"failed": report.total.failed} if failed else {})
        for name, report in zip(names, reports.values(), strict=True)
    ]
    return _shown(rows, COMPARED_WIDE if narrow else frozenset(), paid=paid)


def _shown(rows: list[dict[str, object]], hidden: frozenset[str], *, paid: bool) -> list[dict[str, object]]:
    hidden |= frozenset() if paid else {"paid", "would pay"}
    return [{title: cell for title, cell in row.items() if title not in hidden} for row in rows]


def sentences(recorded: RecordedCost | None, compared: CostComparison | None) -> Iterator[str]:
    """Describe the recorded calls and their price, and what the comparison with them leaves out."""
    if recorded is None:
        return
    parts = {kind: getattr(recorded, kind) for kind in ("input", "cache_write", "cache_read", "output")}
    kinds = ", ".join(f"{kind.replace('_', ' ')} {tokens:,}" for kind, tokens in parts.items() if tokens)
    price = "no price is known" if recorded.dollars is None else money(recorded.dollars)
    calls = count_of(recorded.calls, "call")
    yield f"You paid for {calls}: {recorded.tokens:,} tokens ({kinds}), {price}{_missing(recorded)}."
    if compared is None:
        yield "No recorded call was replayed: there is nothing to compare."
        return
    if compared.priced < recorded.calls:
        yield f"Of these, {count_of(compared.priced, 'call')} could be replayed and priced, and are compared."
    if compared.unrecorded:
        yield (
            f"The recordings lack system prompts and tools, up to {compared.unrecorded:,} tokens a request. They are "
            "in what you would pay, but not in the window and the column cost: --overhead N puts them there."
        )


def _missing(recorded: RecordedCost) -> str:
    if recorded.dollars is None or not recorded.unpriced:
        models = ", ".join(recorded.unpriced)
        return f" for {models}" if models else ""
    unpriced = ", ".join(f"{count_of(count, 'call')} of {model}" for model, count in recorded.unpriced.items())
    return f" without {unpriced}, for which no price is known"


def _print_losses(variant: str, report: ReplayReport) -> None:
    for each in report.sessions:
        name = printable_line(f"{variant}: {each.session}" if variant else each.session)
        if each.losses and on_terminal():
            print_text(f"{name}:")
        for loss in each.losses:
            short = msgspec.structs.replace(loss, text=shorten(loss.text, LONGEST_TEXT))
            print_text(describe_loss(short), begin="  " if on_terminal() else f"{name}: ")


def _print_troubles(reports: Mapping[str, ReplayReport]) -> None:
    report = next(iter(reports.values()))
    troubles = [*_by_file(report.broken), *(f"{each.where}: {each.why}" for each in report.foreign[:MOST_FOREIGN])]
    errors: dict[str, list[str]] = {}
    for name, each in ((name, each) for name, report in reports.items() for each in report.sessions):
        begin = f"{name}: {each.session}" if name else each.session
        if each.error:
            errors.setdefault(each.error, []).append(begin)
        troubles += [f"{begin} turn {defect.turn}: {'; '.join(defect.problems)}" for defect in each.defects]
    # Many sessions of an agent have the same system prompt, and the same error.
    alike = {first: f" (and {len(more):,} more like this)" if more else "" for first, *more in errors.values()}
    troubles[:0] = [f"{names[0]}: {error}{alike[names[0]]}" for error, names in errors.items()]
    for trouble in troubles[:MOST_TROUBLES]:
        print_text(as_options(trouble))
    if len(troubles) > MOST_TROUBLES:
        click.echo(f"and {len(troubles) - MOST_TROUBLES:,} more; --report writes all of them")
    counts = {"broken lines": len(report.broken), "files without a recording": len(report.foreign)}
    left_out = [f"{what} {count:,}" for what, count in counts.items() if count]
    if report.skipped:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in report.skipped.items())
        left_out.append(f"besides the conversation {sum(report.skipped.values()):,} ({kinds})")
    if left_out:
        print_text(f"not replayed: {'; '.join(left_out)}")


def _by_file(broken: tuple[BrokenLine, ...]) -> Iterator[str]:
    """Name the first broken line of each file, and count the others."""
    files: dict[str, list[BrokenLine]] = {}
    for each in broken:
        files.setdefault(each.file or each.where, []).append(each)
    for first, *others in files.values():
        more = f" (and {len(others):,} more broken in this file)" if others else ""
        yield f"{first.where}: {first.why}{more}"
