"""The command `windowsill replay`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from windowsill import formats, tokens
from windowsill.budget import tokens_of
from windowsill.cli.output import INDENT, on_terminal, print_json
from windowsill.cli.recordings import Broken, Foreign, Found, Recording, Skipped, readable, recordings
from windowsill.cli.replay.dump import Dump, dump_to
from windowsill.cli.replay.economy import Economy
from windowsill.cli.replay.evidence import Evidence
from windowsill.cli.replay.printing import print_report
from windowsill.cli.replay.report import ReplayReport, SessionReport, Tally
from windowsill.cli.replay.spending import Account
from windowsill.cli.replay.walking import Options, Walk
from windowsill.cli.room import mark
from windowsill.cli.strategies_choice import settings
from windowsill.config import Loaded, Settings
from windowsill.errors import FormatError, WindowsillError
from windowsill.strategies import DEFAULT


@click.command(short_help="Go through recorded sessions as an agent would.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format", type=click.Choice(formats.names()), help="The format of FILE; told from its content otherwise."
)
@click.option("--model", metavar="M", help="The model to assume; the one each recording names otherwise.")
@click.option("--tokenizer", metavar="T", help="Count with this vocabulary, such as o200k_base, uncalibrated.")
@click.option("--window", type=click.IntRange(min=1), metavar="N", help="The most input tokens a request may have.")
@click.option(
    "--overhead",
    type=click.IntRange(min=0),
    metavar="N",
    help="Tokens to count for a system prompt and tools that were not recorded.",
)
@click.option(
    "--strategy",
    metavar="S",
    help="NAME[:key=value,...] from `windowsill strategies`, several joined by +, or a dotted path.",
)
@click.option("--high", metavar="N", help="Reduce above this, such as 80%.")
@click.option("--low", metavar="N", help="Reduce down to this, such as 50%.")
@click.option(
    "--writer",
    metavar="W",
    help="Who writes summaries: offline, or a model such as openai:gpt-5-mini, which is really asked. Only what is "
    "stated here counts: a settings file does not make a replay cost money.",
)
@click.option("--recall", metavar="N", help="Bring back up to N tokens (or a share) of what a step needs.")
@click.option("--tools", "with_tools", is_flag=True, help="Offer the tools that read what was hidden.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N sessions.")
@click.option("--dump", "dump_file", metavar="D.jsonl", help="Write each request to this file (.gz compresses it).")
@click.option("--report", "report_file", metavar="R.json", help="Write the report to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def replay(
    files: tuple[str, ...],
    format: str | None,
    model: str | None,
    tokenizer: str | None,
    window: int | None,
    overhead: int | None,
    strategy: str | None,
    limit: int | None,
    dump_file: str | None,
    report_file: str | None,
    *,
    as_json: bool,
    with_tools: bool,
    **typed: str | None,
) -> None:
    """Go through recorded sessions turn by turn, as an agent would, and report what was sent.

    A recorded session is a request body, a message list, or an object with `messages`, and where known `id`, `format`,
    `model`, `times` and `usage`. A .jsonl file (or .jsonl.gz) holds one session on each line, any other file one
    session.

    A file may also be a transcript: of Claude Code, Codex or the Gemini CLI, a log of requests, or a message on each
    line. In a folder, every .jsonl, .jsonl.gz and .json file is read. Broken lines are counted and told. Where usage
    was recorded, the report says what was paid, and what the same calls would cost. What is not stated comes from
    WINDOWSILL_* variables and from windowsill.toml.
    """
    held, loaded = settings(
        model=model,
        tokenizer=tokenizer,
        overhead=overhead,
        strategy=strategy,
        high=mark(typed["high"], "high"),
        low=mark(typed["low"], "low"),
        writer=typed["writer"],
        recall=mark(typed["recall"], "recall"),
    )
    stated = {"high", "low"} & loaded.origins.keys()
    options = Options(
        model=model,
        window=window or _room(held, loaded),
        overhead=held.overhead,
        strategy=held.strategy if strategy or held.strategy != DEFAULT else None,
        tokenizer=held.tokenizer,
        high=held.high if stated else None,
        low=held.low if stated else None,
        writer=held.writer if typed["writer"] else None,
        recall=held.recall,
        tools=with_tools,
    )
    if options.tokenizer is not None:
        tokens.counter(options.tokenizer)
    length = readable(files)
    with dump_to(dump_file) as dump, _progress(length) as advance:
        report, total, paid = _replay(recordings(files, format=format, advance=advance), options, limit, dump)
    if report_file is not None:
        Path(report_file).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=INDENT) + b"\n")
    if as_json:
        print_json(report)
    else:
        print_report(report, total.figures(), paid.purse.spending(), paid.balance.comparison())


def _room(held: Settings, loaded: Loaded) -> int | None:
    """The most input tokens that a settings file or a variable states; a preset leaves that to each recording's model.

    A share of a window means nothing here: each recording may be of another model.
    """
    if "budget" in loaded.origins and held.budget is not None and (held.window or isinstance(held.budget, int)):
        return tokens_of(held.budget, held.window or 1, "budget")
    return held.window


def _replay(
    found: Iterator[Found], options: Options, limit: int | None, dump: Dump | None
) -> tuple[ReplayReport, Tally, Account]:
    sessions: list[SessionReport] = []
    broken: list[Broken] = []
    foreign: list[Foreign] = []
    skipped: Counter[str] = Counter()
    failures: list[WindowsillError] = []
    total = Tally()
    seen: set[str] = set()
    paid = Account((), seen)
    for recording in found:
        match recording:
            case Broken():
                broken.append(recording)
                continue
            case Foreign():
                foreign.append(recording)
                continue
            case Skipped():
                skipped.update(recording.kinds)
                continue
        account = Account(recording.charges, seen, options.model)
        told, tally, failure = _session(recording, account, options, dump)
        sessions.append(told)
        total.add(tally)
        paid.add(account)
        failures += [failure] if failure is not None else []
        if len(sessions) == limit:
            break
    _refuse_nothing(sessions, [*broken, *foreign], failures)
    figures = msgspec.to_builtins(total.figures())
    counts = {"sessions": len(sessions), "failed": len(failures), "broken": len(broken), "foreign": len(foreign)}
    report = ReplayReport(
        options=options,
        total={**counts, **figures, "recorded": paid.purse.spending(), "compared": paid.balance.comparison()},
        sessions=tuple(sessions),
        broken=tuple(broken),
        foreign=tuple(foreign),
        skipped=dict(sorted(skipped.items())),
    )
    return report, total, paid


def _refuse_nothing(
    sessions: Sequence[SessionReport], broken: Sequence[Broken | Foreign], failures: Sequence[WindowsillError]
) -> None:
    """An error when not one session went through: then there is nothing to report."""
    if failures and len(failures) == len(sessions):
        raise failures[0]
    if not sessions and broken:
        more = f" (and {len(broken) - 1:,} more like this)" if len(broken) > 1 else ""
        raise FormatError(f"{broken[0].why}{more}", where=broken[0].where)
    if not sessions:
        raise FormatError("there is no session in it", where="the input", remedy="pass recorded sessions as JSON")


def _session(
    recording: Recording, account: Account, options: Options, dump: Dump | None
) -> tuple[SessionReport, Tally, WindowsillError | None]:
    tally = Tally()
    failure: WindowsillError | None = None
    model = recording.request.model or ""
    try:
        if _has_calls(recording) or model or options.model or options.window:
            walk = Walk(recording, options)
            model = walk.session.settings.model or model
            _walk(walk, tally, account, dump)
            tally.lost = walk.lost()
    except WindowsillError as error:
        failure = error
    report = SessionReport(
        session=recording.id,
        model=model,
        format=recording.request.format,
        messages=len(recording.request.messages),
        figures=tally.figures(),
        recorded=account.purse.spending(),
        compared=account.balance.comparison(),
        defects=tuple(tally.defects),
        error=str(failure) if failure is not None else None,
    )
    return report, tally, failure


def _has_calls(recording: Recording) -> bool:
    """Whether a model ever answered; a prompt that was never sent names no model either, and is no failure."""
    return any(message.role == "assistant" for message in recording.request.messages)


def _walk(walk: Walk, tally: Tally, account: Account, dump: Dump | None) -> None:
    recording = walk.recording
    economy = Economy(walk.model)
    evidence = Evidence(formats.get(recording.request.format))
    if recording.request.system is not None:
        evidence.show(recording.request.system)
    shown = 0
    for turn in walk.turns():
        for message in recording.request.messages[shown : turn.turn]:
            evidence.show(message)
        shown = turn.turn
        bill = economy.pay(
            tokens=turn.tokens, stable=turn.stable, everything=turn.everything, output=turn.output, at=turn.at
        )
        tally.count(turn, bill, evidence.measure(turn.answer, turn.body, walk.reaches))
        account.replayed(turn)
        if dump is not None:
            dump.write(recording.id, turn)


@contextmanager
def _progress(size: int) -> Iterator[Callable[[int], None] | None]:
    """A bar over the bytes of all files, for a person; nothing in a pipe."""
    if not on_terminal(sys.stderr) or not size:
        yield None
        return
    with click.progressbar(length=size, label="replaying", file=sys.stderr) as bar:
        yield bar.update
