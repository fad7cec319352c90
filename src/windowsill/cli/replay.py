"""`windowsill replay`: parse the options, replay, print the report."""

from __future__ import annotations

import gzip
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from windowsill import tokens
from windowsill.budget import tokens_of
from windowsill.cli.main import as_options
from windowsill.cli.options import (
    format_option,
    load_settings,
    low_option,
    parse_mark,
    report_option,
    stated_marks,
    strategy_option,
    tokenizer_option,
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
from windowsill.replay.costs import CostComparison, RecordedCost
from windowsill.replay.recordings import BrokenLine, Recording, read_recordings, total_size
from windowsill.replay.report import Figures, ReplayReport
from windowsill.replay.runs import Replay
from windowsill.replay.stored import stored_recording
from windowsill.replay.walk import ReplayOptions
from windowsill.strategies.registry import DEFAULT


@click.command()
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
@click.option("--window", type=click.IntRange(min=1), metavar="N", help="The most input tokens a request may have.")
@click.option(
    "--overhead",
    type=click.IntRange(min=0),
    metavar="N",
    help="Tokens to count for a system prompt and tools that were not recorded.",
)
@strategy_option
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
@click.option("--dump", "dump_file", metavar="D.jsonl", help="Write each request to this file (.gz compresses it).")
@report_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def replay(
    files: tuple[str, ...],
    ids: tuple[str, ...],
    place: str | None,
    format: str | None,
    model: str | None,
    window: int | None,
    limit: int | None,
    dump_file: str | None,
    report_file: str | None,
    *,
    as_json: bool,
    tools: bool,
    overhead: int | None,
    **typed: str | None,
) -> None:
    """Replay recorded sessions turn by turn, as an agent would, and report what was sent.

    A recorded session is a request body, a message list, or an object with `messages` and, where known, `id`, `format`,
    `model`, `times` and `usage`. A .jsonl file (or .jsonl.gz) holds one session per line, any other file one session.

    A file may also be a transcript of Claude Code, Codex or the Gemini CLI, a log of requests, or one message per line.
    So are exports of `windowsill sessions export`, and --session takes sessions from the store. In a folder, every
    .jsonl, .jsonl.gz and .json file is read. Broken lines are counted and reported. Where usage was
    recorded, the report says what was paid, and what the same calls would cost. Other settings come from WINDOWSILL_*
    variables and from windowsill.toml.
    """
    settings, loaded = load_settings(
        model=model,
        tokenizer=typed["tokenizer"],
        overhead=overhead,
        strategy=typed["strategy"],
        high=parse_mark(typed["high"], "high"),
        low=parse_mark(typed["low"], "low"),
        writer=typed["writer"],
        recall=parse_mark(typed["recall"], "recall"),
    )
    options = ReplayOptions(
        model=model,
        window=window or _stated_window(settings, loaded),
        overhead=settings.overhead,
        strategy=settings.strategy if typed["strategy"] or settings.strategy != DEFAULT else None,
        tokenizer=settings.tokenizer,
        writer=settings.writer if typed["writer"] else None,
        recall=settings.recall,
        tools=tools,
        **stated_marks(loaded),
    )
    if options.tokenizer is not None:
        tokens.counter(options.tokenizer)  # A vocabulary that does not exist is refused before any work.
    if not files and not ids:
        raise click.UsageError(
            "give recorded sessions as FILE..., or stored ones with --session", click.get_current_context()
        )
    size = total_size(files)
    with _dump(dump_file) as write, _stored(place, ids) as stored, _progress(size) as advance:
        found = itertools.chain(stored, read_recordings(files, format=format, advance=advance))
        run = Replay(found, options, limit=limit)
        for call in run.calls():
            if write is not None:
                write(call.dump_line())
        report = run.report()
    if report_file is not None:
        Path(report_file).write_bytes(pretty_json(report) + b"\n")
    if as_json:
        print_json(report)
    else:
        print_report(report)


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


WIDE = 125
"""Characters that all columns need. A narrower terminal shows those that say whether it works."""

ID_WIDE, ID_NARROW, ID_PIPE = 24, 12, 500
"""Characters of a session's id; a pipe gets all of them."""

MOST_TROUBLES = 20
"""Troubles printed one by one; the report has all of them."""

MOST_FOREIGN = 3
"""Files without a recording printed by name: a folder of an agent has many."""

LEGEND = (
    "peak: the largest request in tokens; cached: share of the tokens that a prompt cache serves; cost: against "
    "sending everything; kept: share of the values that later calls needed and that were still in the request"
)
"""For a terminal: a pipe gets nothing but the figures and what is wrong."""

ONLY_WIDE = frozenset({"sent", "of outputs", "of lines", "repairs"})
"""Columns that a narrow terminal leaves out,"""

PAID_WIDE = 20
"""the characters that the columns of recorded costs need beside the others,"""

BEFORE_PAID = frozenset({"folds", "over"})
"""and the columns that a narrow terminal leaves out for them."""


def print_report(report: ReplayReport) -> None:
    """Print a row for each session, the total, what was paid and would have been, and what went wrong."""
    total = report.total
    paid = total.recorded is not None
    narrow = on_terminal() and shutil.get_terminal_size().columns < WIDE + (PAID_WIDE if paid else 0)
    length = ID_PIPE if not on_terminal() else ID_NARROW if narrow else ID_WIDE
    names = short_ids([each.session for each in report.sessions], length)
    rows = [
        _row(name, each.figures, each.recorded, each.compared)
        for name, each in zip(names, report.sessions, strict=True)
    ]
    rows.append(_row("total", total, total.recorded, total.compared))
    hidden = (ONLY_WIDE if narrow else set()) | (BEFORE_PAID if narrow and paid else set())
    hidden |= set() if paid else {"paid", "would pay"}
    print_table([{title: cell for title, cell in row.items() if title not in hidden} for row in rows], footer=True)
    if on_terminal():
        print_text(LEGEND)
        if total.dollars is not None and total.dollars_everything is not None:
            everything = f"sending everything: ${total.dollars_everything:,.2f}"
            click.echo(f"cost at list prices: ${total.dollars:,.2f}; {everything}")
    for sentence in sentences(total.recorded, total.compared, report.options.window):
        print_text(sentence)
    _print_troubles(report)


def _row(
    name: str, figures: Figures, recorded: RecordedCost | None, compared: CostComparison | None
) -> dict[str, object]:
    return {
        "session": name,
        "calls": figures.calls,
        "peak": figures.peak_tokens,
        "sent": figures.tokens_sent,
        "cached": figures.cache_hit_share,
        "cost": figures.cost_ratio,
        "kept": figures.kept,
        "of outputs": figures.kept_from_outputs,
        "of lines": figures.kept_lines,
        "folds": figures.folds,
        "repairs": sum(figures.repairs.values()),
        "invalid": figures.invalid,
        "over": figures.over,
        "lost": figures.lost,
        # A branch repeats calls that another session has paid for.
        "paid": None if recorded is None or recorded.dollars is None else f"${recorded.dollars:,.2f}",
        "would pay": None if compared is None or compared.dollars is None else f"${compared.dollars:,.2f}",
    }


def sentences(recorded: RecordedCost | None, compared: CostComparison | None, window: int | None) -> Iterator[str]:
    """Describe the recorded calls and their price, the same calls with Windowsill, and where the numbers come from."""
    if recorded is None:
        return
    parts = {
        "input": recorded.input,
        "cache write": recorded.cache_write,
        "cache read": recorded.cache_read,
        "output": recorded.output,
    }
    kinds = ", ".join(f"{kind} {tokens:,}" for kind, tokens in parts.items() if tokens)
    price = "no price is known" if recorded.dollars is None else f"${recorded.dollars:,.2f}"
    yield f"your sessions: {_calls(recorded.calls)}, {recorded.tokens:,} tokens ({kinds}), {price}{_missing(recorded)}"
    if compared is None:
        yield "with Windowsill: nothing to compare, as no recorded call was replayed"
        return
    place = f"at {window:,}" if window is not None else "at each model's own window"
    same = "the same" if compared.calls == recorded.calls else "of these,"
    yield (
        f"with Windowsill {place}, {same} {_calls(compared.calls)}: {compared.tokens:,} input tokens instead of "
        f"{compared.recorded_tokens:,}{_dollars(compared)}"
    )
    unrecorded = (
        f", with up to {compared.unrecorded:,} tokens a request for the system prompt and tools that the recording "
        "lacks (--overhead N makes them part of the window)"
    )
    yield (
        "recorded: usage as the provider reported it, at today's list prices of the recorded model; with Windowsill: "
        f"counted here{unrecorded if compared.unrecorded else ''}"
    )


def _calls(count: int) -> str:
    return f"{count:,} call" if count == 1 else f"{count:,} calls"


def _missing(recorded: RecordedCost) -> str:
    if recorded.dollars is None or not recorded.unpriced:
        models = ", ".join(recorded.unpriced)
        return f" for {models}" if models else ""
    unpriced = ", ".join(f"{_calls(count)} of {model}" for model, count in recorded.unpriced.items())
    return f" without {unpriced}, for which no price is known"


def _dollars(compared: CostComparison) -> str:
    if compared.dollars is None or compared.recorded_dollars is None:
        return ""
    some = "" if compared.priced == compared.calls else f" for the {_calls(compared.priced)} with a known price"
    return f", ${compared.dollars:,.2f} instead of ${compared.recorded_dollars:,.2f}{some}"


def _print_troubles(report: ReplayReport) -> None:
    troubles = [f"{each.session}: {each.error}" for each in report.sessions if each.error]
    troubles += _by_file(report.broken)
    troubles += [f"{each.where}: {each.why}" for each in report.foreign[:MOST_FOREIGN]]
    troubles += [
        f"{each.session} turn {defect.turn}: {'; '.join(defect.problems)}"
        for each in report.sessions
        for defect in each.defects
    ]
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
