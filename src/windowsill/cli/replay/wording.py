"""What was paid, and what it would be with Windowsill, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from windowsill.cli.replay.spending import Comparison, Spending


def sentences(recorded: Spending | None, compared: Comparison | None, window: int | None) -> Iterator[str]:
    """The recorded calls and their price, the same calls with Windowsill, and where the numbers come from."""
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
    yield (
        "recorded: usage as the provider reported it, at today's list prices of the recorded model; with Windowsill: "
        f"counted here{_unrecorded(compared)}"
    )


def _calls(count: int) -> str:
    return f"{count:,} call" if count == 1 else f"{count:,} calls"


def _missing(recorded: Spending) -> str:
    if recorded.dollars is None or not recorded.unpriced:
        models = ", ".join(recorded.unpriced)
        return f" for {models}" if models else ""
    told = ", ".join(f"{_calls(count)} of {model}" for model, count in recorded.unpriced.items())
    return f" without {told}, for which no price is known"


def _dollars(compared: Comparison) -> str:
    if compared.dollars is None or compared.recorded_dollars is None:
        return ""
    some = "" if compared.priced == compared.calls else f" for the {_calls(compared.priced)} with a known price"
    return f", ${compared.dollars:,.2f} instead of ${compared.recorded_dollars:,.2f}{some}"


def _unrecorded(compared: Comparison) -> str:
    if not compared.unrecorded:
        return ""
    return (
        f", with up to {compared.unrecorded:,} tokens a request for the system prompt and tools that the recording "
        "lacks (--overhead N makes them part of the window)"
    )
