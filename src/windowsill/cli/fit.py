"""`windowsill fit`: one request in, the reduced one out, in the same format and shape; `windowsill validate`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

import windowsill
from windowsill import providers
from windowsill.cli.main import FAILED
from windowsill.cli.options import (
    format_option,
    load_settings,
    low_option,
    parse_mark,
    parse_size,
    read_input,
    report_option,
    strategy_option,
    tokenizer_option,
)
from windowsill.cli.output import on_terminal, pretty_json, print_bytes, print_json, print_table, print_warning
from windowsill.cli.session_ids import complete_models
from windowsill.errors import FormatError, InputError
from windowsill.messages import Request
from windowsill.replay.recordings import name_in_errors
from windowsill.text import count_of

if TYPE_CHECKING:
    from windowsill.compose.payload import Payload, Report


@click.command()
@click.argument("file")
@format_option
@click.option(
    "--model",
    metavar="M",
    shell_complete=complete_models,
    help="The model whose window it has to fit; the one FILE names if left out.",
)
@tokenizer_option
@click.option("--window", type=click.IntRange(min=1), metavar="N", help="The model's context window in tokens.")
@click.option("--budget", metavar="N", help="The most input tokens: 32000, 32k, or 80% of the window.")
@strategy_option
@click.option("--high", metavar="N", help="Reduce above this size, such as 80%; above the whole budget if left out.")
@low_option
@click.option("--writer", metavar="W", help="What writes summaries: offline, or a model such as openai:gpt-5-mini.")
@report_option
def fit(
    file: str,
    format: str | None,
    model: str | None,
    budget: str | None,
    high: str | None,
    low: str | None,
    report_file: str | None,
    **typed: str | int | None,
) -> None:
    """Read a request body or a message list (JSON) from FILE and print the reduced one.

    `-` is standard input. A list comes out as a list, a body as a body with all its other fields; messages that did not
    have to change keep their bytes. Other settings come from WINDOWSILL_* variables and from windowsill.toml.
    """
    limit = parse_size(budget)
    data = read_input(file)
    with name_in_errors(file):
        request = providers.read_request(data, format=format)
        if not request.messages:
            raise FormatError("there is no message in it", remedy="add one from the user")
    settings, loaded = load_settings(
        model=model or request.model, budget=limit, high=parse_mark(high, "high"), low=parse_mark(low, "low"), **typed
    )
    if settings.model is None and settings.window is None and settings.budget is None:
        raise InputError("the size of the window is not known", remedy="give --model M or --window N")
    payload = windowsill.fit(
        data,
        model=settings.model,
        window=settings.window,
        budget=settings.budget,
        models=settings.models,
        format=request.format,
        tokenizer=settings.tokenizer,
        strategy=settings.strategy,
        writer=settings.writer,
        wait=settings.wait,
        overhead=settings.overhead,
        max_output=providers.answer_limit(request.rest),
        high=loaded.settings.high,
        low=loaded.settings.low,
    )
    if report_file is not None:
        Path(report_file).write_bytes(pretty_json(payload.report) + b"\n")
    print_bytes(in_same_shape(payload, request))
    changed = payload.report.folds or payload.report.repairs
    for line in _summary(payload.report, len(request.messages)) if changed or on_terminal(sys.stderr) else ():
        print_warning(line)


def in_same_shape(payload: Payload, request: Request) -> bytes:
    """Return the payload as a list if a list came in, and with the model that the body named."""
    fields = msgspec.json.decode(payload.body(cache=False), type=dict[str, msgspec.Raw])
    if request.bare:
        return _as_list(fields, providers.get(request.format).spec.messages_field)
    fields.pop("model", None)
    if request.model is not None:
        fields = {"model": msgspec.Raw(msgspec.json.encode(request.model)), **fields}
    return msgspec.json.encode(fields)


def _as_list(fields: dict[str, msgspec.Raw], under: str) -> bytes:
    messages = bytes(fields[under])
    if "system" not in fields:
        return messages
    # The list began with a system message, which this format keeps apart in a body: a list has no other place for it.
    system = b'{"role":"system","content":' + bytes(fields["system"]) + b"}"
    inner = messages.strip()[1:-1].strip()
    return b"[" + system + (b"," + inner if inner else b"") + b"]"


def _summary(report: Report, messages: int) -> Iterator[str]:
    """Say how large the request is, and what was hidden or cut for it."""
    hidden = f"{report.hidden:,} of {messages:,} messages hidden" if report.hidden else "no message hidden"
    yield f"windowsill: {report.tokens:,} of {report.limit:,} tokens, {hidden}, {len(report.repairs):,} repairs"
    for fold in report.folds:
        what = count_of(fold.messages, "message")
        yield f"windowsill: {fold.kind} of {what}, {fold.before:,} to {fold.after:,} tokens: {fold.reason}"


@click.command()
@click.argument("file")
@format_option
@click.option("--model", help="Check the length, too, for this model; by default the one in FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print the problems as JSON.")
@click.pass_context
def validate(ctx: click.Context, file: str, format: str | None, model: str | None, *, as_json: bool) -> None:
    """Check a request body or a message list (JSON) in FILE against its provider's rules.

    `-` is standard input. The exit code is 1 if there is a problem.
    """
    data = read_input(file)
    with name_in_errors(file):
        problems = windowsill.validate(data, format=format, model=model)
    if as_json:
        print_json({"valid": not problems, "problems": problems})
    elif problems:
        print_table([msgspec.structs.asdict(problem) for problem in problems])
    else:
        click.secho("valid", fg="green")
    ctx.exit(FAILED if problems else 0)
