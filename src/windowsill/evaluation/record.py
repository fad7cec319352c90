"""The record of runs: how each task or recording went under each configuration, compared with the last time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

import msgspec

from windowsill.agent import Result
from windowsill.config.settings import read_stages
from windowsill.errors import InputError
from windowsill.messages import OWN_TOOLS
from windowsill.replay import ReplayOptions, ReplayReport
from windowsill.session import Session

TOLERANCE = 0.05
"""The share by which a cost or a number of repeated readings may rise before that counts as worse."""

KEPT_TOLERANCE = 0.01
"""Points by which the share of kept values may fall: it has no noise, as nothing about a replay is left to chance."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The course of one task, or of one recording, under one configuration."""

    name: str
    kind: Literal["task", "recording"]
    success: bool
    """A task that was completed and whose result is as expected; a recording without an invalid or lost request."""
    status: str = ""
    error: str = ""
    criteria: dict[str, str] = {}
    """Each success criterion: met, unmet or unknown."""
    calls: int = 0
    tokens: int = 0
    """Input tokens of all calls."""
    cost: float | None = None
    """Dollars at list prices."""
    kept: float | None = None
    """Of the values that calls needed, those that were still in the request."""
    folds: int = 0
    rereads: int = 0
    """Calls that read again what a fold had hidden; in a recording, values that a call would have had to read again."""
    rounds_to_resume: float = 0.0
    """Model calls after a fold, on average, that only read again what it hid."""
    faults: int = 0
    """Requests that are invalid or too large, and messages that were lost."""
    seconds: float = 0.0


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one configuration together."""

    runs: int
    successes: int
    criteria_met: float | None
    """Share of all criteria."""
    calls: int
    tokens: int
    cost: float | None
    kept: float | None
    folds: int
    rereads: int
    rounds_to_resume: float
    faults: int


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation: the runs of every configuration."""

    at: float
    configurations: dict[str, ReplayOptions]
    runs: dict[str, tuple[RunRecord, ...]]

    def total(self, configuration: str, names: Iterable[tuple[str, str]] | None = None) -> Total:
        """Add up the runs of a configuration; `names` are the kinds and names of those that count."""
        wanted = None if names is None else set(names)
        runs = [run for run in self.runs[configuration] if wanted is None or (run.kind, run.name) in wanted]
        verdicts = [verdict for run in runs for verdict in run.criteria.values()]
        kept = [run.kept for run in runs if run.kept is not None]
        costs = [run.cost for run in runs if run.cost is not None]
        folded = [run.rounds_to_resume for run in runs if run.folds]
        return Total(
            runs=len(runs),
            successes=sum(run.success for run in runs),
            criteria_met=round(verdicts.count("met") / len(verdicts), 4) if verdicts else None,
            cost=round(sum(costs), 6) if len(costs) == len(runs) and runs else None,
            kept=round(sum(kept) / len(kept), 4) if kept else None,
            rounds_to_resume=round(sum(folded) / len(folded), 2) if folded else 0.0,
            **{
                name: sum(getattr(run, name) for run in runs)
                for name in ("calls", "tokens", "folds", "rereads", "faults")
            },
        )

    def rows(self, best: str) -> list[dict[str, Any]]:
        """Return the totals of each configuration as the rows of a table; the best one is marked."""
        headings = {"successes": "succeed", "criteria_met": "criteria", "rounds_to_resume": "resume"}
        rows: list[dict[str, Any]] = []
        for name in self.runs:
            figures = msgspec.structs.asdict(self.total(name))
            marked = f"{name} *" if name == best and len(self.runs) > 1 else name
            rows.append({"configuration": marked, **{headings.get(key, key): each for key, each in figures.items()}})
        return rows


# Runs


def run_of_engine(session: Session, result: Result, *, name: str = "", success: bool | None = None) -> RunRecord:
    """Record a run of an engine; `success` is what a check of its result says, where there is one."""
    used, folds = result.used, session.folds
    rereads, rounds = _resumption(session)
    return RunRecord(
        name=name or session.id,
        kind="task",
        success=result.ok if success is None else success,
        status=result.status,
        error=result.error,
        criteria={each.description: each.status for each in result.criteria},
        calls=used.model_calls,
        tokens=used.input + used.cached,
        cost=round(used.cost, 6) if used.cost else None,
        folds=len(folds),
        rereads=rereads,
        rounds_to_resume=rounds,
        seconds=round(result.seconds, 3),
    )


def _resumption(session: Session) -> tuple[int, float]:
    """Count the calls that read again what was hidden, and the mean of answers after a fold that did nothing else."""
    folds = [
        (_number(fold.id), _number(span.first), _number(span.last)) for fold in session.folds for span in fold.spans
    ]
    known: dict[tuple[str, str], int] = {}
    rereads = 0
    only_reading: list[tuple[int, bool]] = []
    for message in session.messages():
        if message.role != "assistant" or not message.calls:
            continue
        at, again = _number(message.id), 0
        for call in message.calls:
            before = known.get((call.name, call.arguments), 0)
            hidden = any(made < at and first <= before <= last for made, first, last in folds)
            again += hidden or call.name in OWN_TOOLS
            known[call.name, call.arguments] = at
        rereads += again
        only_reading.append((at, again == len(message.calls)))
    rounds = []
    for made in {made for made, _, _ in folds}:
        following = (only for at, only in only_reading if at > made)
        rounds.append(sum(1 for _ in takewhile(bool, following)))
    return rereads, round(sum(rounds) / len(rounds), 2) if rounds else 0.0


def _number(id: str) -> int:
    digits = id[1:].partition(":")[0]
    return int(digits) if digits.isdigit() else 0


def runs_of_replay(report: ReplayReport) -> tuple[RunRecord, ...]:
    """Record the sessions of a replay."""
    made = []
    for session in report.sessions:
        figures = session.figures
        faults = figures.invalid + figures.over + figures.lost
        missed = len({loss.needed_in for loss in session.losses})
        made.append(
            RunRecord(
                name=session.session,
                kind="recording",
                success=not faults and session.error is None,
                status="replayed" if session.error is None else "stopped",
                error=session.error or "",
                calls=figures.calls,
                tokens=figures.tokens_sent,
                cost=figures.dollars,
                kept=figures.kept,
                folds=figures.folds,
                rereads=len(session.losses),
                rounds_to_resume=round(missed / figures.folds, 2) if figures.folds else 0.0,
                faults=faults,
            )
        )
    return tuple(made)


# The file


def record_evaluation(path: Path | str, evaluation: Evaluation) -> None:
    """Add an evaluation to a file, one line of JSON each."""
    line = msgspec.json.encode(evaluation)
    with Path(path).open("ab") as file:
        file.write(line + b"\n")


def last_evaluation(path: Path | str, like: Evaluation) -> Evaluation | None:
    """Return the last evaluation of a file that has a run in common with another; `None` when there is none."""
    file = Path(path)
    if not file.exists():
        return None
    for number, line in reversed(list(enumerate(file.read_bytes().splitlines(), start=1))):
        try:
            found = msgspec.json.decode(line, type=Evaluation)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(
                f"{file}, line {number}, is not an evaluation: {error}", remedy="take that line out", place=str(file)
            ) from None
        if any(_common(found, like, name) for name in like.runs):
            return found
    return None


def _common(before: Evaluation, after: Evaluation, configuration: str) -> set[tuple[str, str]]:
    """Return the kinds and names of the runs that both have of a configuration with the same options."""
    if before.configurations.get(configuration) != after.configurations.get(configuration):
        return set()
    both = (before.runs.get(configuration, ()), after.runs.get(configuration, ()))
    known, new = ({(str(run.kind), run.name) for run in runs} for runs in both)
    return known & new


# Comparison


def find_regressions(before: Evaluation, after: Evaluation, *, tolerance: float = TOLERANCE) -> list[str]:
    """Describe what got worse, by the runs that both evaluations have."""
    return [
        f"{configuration}: {what}"
        for configuration in after.runs
        for what in _worse(before, after, configuration, tolerance)
    ]


def _worse(before: Evaluation, after: Evaluation, configuration: str, tolerance: float) -> Iterator[str]:
    common = _common(before, after, configuration)
    if not common:
        return
    earlier = {(run.kind, run.name): run for run in before.runs[configuration]}
    for run in after.runs[configuration]:
        old = earlier.get((run.kind, run.name))
        if old is None:
            continue
        if old.success and not run.success:
            yield f"{run.kind} {run.name!r} no longer succeeds{f': {run.error}' if run.error else ''}"
        lost = [name for name, verdict in old.criteria.items() if verdict == "met" and run.criteria.get(name) != "met"]
        yield from (f"task {run.name!r} no longer meets {name!r}" for name in lost)
        if run.faults > old.faults:
            yield f"{run.kind} {run.name!r} has {run.faults} faults, not {old.faults}"
    old_total, total = before.total(configuration, common), after.total(configuration, common)
    if old_total.kept is not None and total.kept is not None and total.kept < old_total.kept - KEPT_TOLERANCE:
        yield f"{total.kept:.1%} of the values are kept, not {old_total.kept:.1%}"
    for name, text in (
        ("cost", "it costs"),
        ("tokens", "tokens sent:"),
        ("rereads", "repeated readings:"),
        ("rounds_to_resume", "rounds to resume:"),
    ):
        then, now = getattr(old_total, name), getattr(total, name)
        if then is not None and now is not None and now > then * (1 + tolerance) and now - then >= _LEAST.get(name, 0):
            yield f"{text} {now:,g}, not {then:,g}"


_LEAST = {"rereads": 1, "rounds_to_resume": 0.5}
"""Rises that are too small to matter, whatever share they are."""


def winner(evaluation: Evaluation) -> str:
    """Return the configuration that succeeds most often without faults; of equals the one that keeps most for least."""

    def rank(name: str) -> tuple[float, ...]:
        total = evaluation.total(name)
        price = total.cost if total.cost is not None else float(total.tokens)
        return -total.successes, total.faults, -round(total.kept or 0.0, 2), price, total.rereads

    return min(evaluation.runs, key=rank)


# Profiles


def profile_fields(options: ReplayOptions) -> dict[str, Any]:
    """Return the numbers of a profile that a configuration states: its threshold, goal, messages to keep and writer."""
    found: dict[str, Any] = {}
    high, low = _share(options.high), _share(options.low)
    if high is not None:
        found["threshold"] = round(high * 100, 2)
    if high is not None and low is not None:
        found["goal"] = round(1 - low / high, 4)
    stages = read_stages(options.strategy) if options.strategy else ()
    keep = next((stage.settings["keep"] for stage in stages if "keep" in stage.settings), None)
    if keep is not None:
        found["keep"] = int(keep)
    if options.writer:
        found["writer"] = options.writer
    return found


def _share(size: Any) -> float | None:
    if isinstance(size, str) and (match := re.fullmatch(r"(\d+(?:\.\d+)?)%", size)):
        return float(match[1]) / 100
    return size if isinstance(size, float) else None


def take_over(path: Path | str, model: str, options: ReplayOptions) -> str:
    """Write a configuration's numbers into a settings file as the profile of a model, and return the table."""
    fields = profile_fields(options)
    if not fields:
        raise InputError(
            "this configuration states no number of a profile", remedy="evaluate some with high, low or keep"
        )
    heading = f"[profiles.{msgspec.json.encode(model).decode()}]"
    table = "\n".join([heading, *(f"{key} = {msgspec.json.encode(value).decode()}" for key, value in fields.items())])
    file = Path(path)
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    file.write_text("\n".join([*_without(lines, heading), table, ""]), "utf-8")
    return table


def _without(lines: Sequence[str], heading: str) -> Iterator[str]:
    """Leave out a table with its lines."""
    inside = False
    for line in lines:
        if line.strip().startswith("["):
            inside = line.strip() == heading
        if not inside:
            yield line
