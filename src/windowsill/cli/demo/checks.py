"""Checks what the demo promises, on a session that was closed and opened again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from windowsill.cli.demo.running import Added, Run
from windowsill.cli.demo.tally import Tally
from windowsill.messages import Message
from windowsill.session import Session


class Check(msgspec.Struct, frozen=True):
    """One promise, whether it was kept, and what was seen."""

    name: str
    ok: bool
    seen: str


def check(run: Run, session: Session, window: int) -> tuple[Check, ...]:
    """Every promise of a finished run; `session` is the same session, opened again."""
    body = run.last.body().decode() if run.last is not None else ""
    return (
        fits(run.tally, window),
        valid(run.tally),
        read_back(run.added, session.messages()),
        whole(session.verify()),
        quoted(run.words, body),
        explained(run.added, session),
    )


def fits(tally: Tally, window: int) -> Check:
    """No request was larger than the window."""
    peak = tally.fitted.peak
    return Check("every request fits", peak <= window, f"the largest had {peak:,} of {window:,} tokens")


def valid(tally: Tally) -> Check:
    """The validator of the wire format found nothing."""
    first = f"; {tally.problems[0]}" if tally.problems else ""
    return Check(
        "every request is valid",
        not tally.problems,
        f"{tally.requests:,} checked, {len(tally.problems)} problems{first}",
    )


def read_back(added: Sequence[Added], found: Iterable[Message]) -> Check:
    """Every message is on disk as it was added, byte for byte, in its order, and there is no other."""
    stored = [(message.id, message.raw) for message in found]
    given = [(message.id, message.raw) for message in added]
    same = sum(a == b for a, b in zip(given, stored, strict=False))
    return Check(
        "nothing is lost",
        given == stored,
        f"{len(given):,} messages written, {same:,} read back equal"
        + (f", {len(stored):,} found" if given != stored else ""),
    )


def whole(problems: Sequence[str]) -> Check:
    """The hash chain of the journal holds."""
    return Check(
        "the journal is whole", not problems, problems[0] if problems else "every entry has the hash it was sealed with"
    )


def quoted(words: Sequence[str], body: str) -> Check:
    """What the user said is in the last request, word for word, however much was folded."""
    there = sum(msgspec.json.encode(each).decode().strip('"') in body for each in words)
    return Check(
        "the user's words stay", there == len(words), f"{there} of {len(words)} are in the last request word for word"
    )


def explained(added: Sequence[Added], session: Session) -> Check:
    """One message that the window does not show can be read, and the session says why it is hidden."""
    name = "what is hidden is explained"
    shown = {item.id for item in session.items()}
    hidden = [message for message in added if message.id not in shown]
    if not hidden:
        return Check(name, ok=True, seen="nothing had to be hidden")
    one = hidden[len(hidden) // 2]
    told = session.explain(one.id)
    same = session.message(one.id).raw == one.raw
    return Check(name, same and not told.visible and bool(told.folds), f"{one.id} {told.why}")
