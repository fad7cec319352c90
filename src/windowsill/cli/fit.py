"""`windowsill fit`: one request in, the reduced one out, in the same format and shape."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

import windowsill
from windowsill import formats
from windowsill.budget import Size
from windowsill.cli.output import INDENT, on_terminal, print_bytes
from windowsill.cli.reading import naming, read_source, require_content
from windowsill.cli.room import mark, room, size
from windowsill.cli.strategies_choice import settings, window_of
from windowsill.compose.payload import Payload, Report
from windowsill.config import Loaded, Settings
from windowsill.messages import Request


@click.command(short_help="Make a request or a message list fit, and print it.")
@click.argument("file")
@click.option(
    "--format", type=click.Choice(formats.names()), help="The format of FILE; told from its content otherwise."
)
@click.option("--model", metavar="M", help="Whose window it has to fit; the one FILE names otherwise.")
@click.option("--tokenizer", metavar="T", help="Count with this vocabulary, such as o200k_base, uncalibrated.")
@click.option("--window", type=click.IntRange(min=1), metavar="N", help="The model's context window in tokens.")
@click.option("--budget", metavar="N", help="The most input tokens: 32000, 32k, or 80% of the window.")
@click.option(
    "--strategy",
    metavar="S",
    help="NAME[:key=value,...] from `windowsill strategies`, several joined by +, or a dotted path.",
)
@click.option("--high", metavar="N", help="Reduce above this, such as 80%; above the whole budget otherwise.")
@click.option("--low", metavar="N", help="Reduce down to this, such as 50%.")
@click.option("--writer", metavar="W", help="Who writes summaries: offline, or a model such as openai:gpt-5-mini.")
@click.option("--report", "report_file", metavar="R.json", help="Write what was done to this file.")
def fit(
    file: str,
    format: str | None,
    model: str | None,
    tokenizer: str | None,
    window: int | None,
    budget: str | None,
    strategy: str | None,
    high: str | None,
    low: str | None,
    writer: str | None,
    report_file: str | None,
) -> None:
    """Read a request body or a message list (JSON) from FILE and print the reduced one.

    `-` is standard input. A list comes out as a list, a body as a body with all its other fields; messages that did not
    have to change keep their bytes. What is not stated comes from WINDOWSILL_* variables and from windowsill.toml.
    """
    limit = size(budget)
    data = require_content(read_source(file), file)
    with naming(file):
        request = formats.read_request(data, format=format)
    held, loaded = settings(
        model=model or request.model,
        window=window,
        budget=limit,
        tokenizer=tokenizer,
        strategy=strategy,
        high=mark(high, "high"),
        low=mark(low, "low"),
        writer=writer,
    )
    place = room(model=held.model, named=None, window=window_of(held), budget=held.budget)
    payload = windowsill.fit(
        data,
        model=place.model,
        window=place.window,
        budget=place.budget,
        format=request.format,
        tokenizer=held.tokenizer,
        strategy=held.strategy,
        writer=held.writer,
        wait=held.wait,
        overhead=held.overhead,
        max_output=formats.answer_limit(request.rest),
        **_marks(held, loaded),
    )
    if report_file is not None:
        report = msgspec.json.format(msgspec.json.encode(payload.report), indent=INDENT)
        Path(report_file).write_bytes(report + b"\n")
    print_bytes(in_same_shape(payload, request))
    if on_terminal(sys.stderr):
        click.echo(summary(payload.report, len(request.messages)), err=True)


def _marks(held: Settings, loaded: Loaded) -> dict[str, Size]:
    """The marks where somebody stated one; a request of its own is otherwise reduced when it does not fit."""
    stated = {"high", "low"} & loaded.origins.keys()
    return {"high": held.high, "low": held.low} if stated else {}


def in_same_shape(payload: Payload, request: Request) -> bytes:
    """The payload as a list where a list came in, and with the model that the body named."""
    fields = msgspec.json.decode(payload.body(cache=False), type=dict[str, msgspec.Raw])
    if request.bare:
        return _as_list(fields, formats.get(request.format).spec.messages_field)
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


def summary(report: Report, messages: int) -> str:
    """One line for a person."""
    hidden = f"{report.hidden:,} of {messages:,} messages hidden" if report.hidden else "nothing hidden"
    return f"windowsill: {report.tokens:,} of {report.limit:,} tokens, {hidden}, {len(report.repairs):,} repairs"
