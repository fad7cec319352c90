"""`windowsill evaluate`: repeat a suite, compare it with the last time, fail when something got worse."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from windowsill.cli.main import FAILED
from windowsill.cli.options import low_option, parse_mark, processes_for, workers_option
from windowsill.cli.output import print_json, print_line, print_table, print_warning
from windowsill.cli.session_ids import complete_models
from windowsill.config.settings import read_strategies
from windowsill.errors import InputError
from windowsill.evaluation import (
    Evaluation,
    Suite,
    evaluate,
    find_regressions,
    last_evaluation,
    profile_fields,
    read_suite,
    record_evaluation,
    take_over,
    winner,
)
from windowsill.evaluation.record import TOLERANCE
from windowsill.replay import ReplayOptions, cross
from windowsill.replay.recordings import total_size

RECORD = "windowsill-evaluations.jsonl"


@click.command("evaluate")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--compare", "compared", metavar="S,...", help="Strategies to compare: economy,condense:keep=5.")
@click.option(
    "--window",
    "windows",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="The most input tokens a request may have; several are compared.",
)
@click.option("--high", metavar="N", help="Reduce above this size, such as 80%.")
@low_option
@click.option("--model", metavar="P:M", shell_complete=complete_models, help="The model of tasks without a script.")
@workers_option
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Replay only the first N recordings.")
@click.option("--record", default=RECORD, show_default=True, metavar="R.jsonl", help="Where evaluations are kept.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=TOLERANCE * 100,
    show_default=True,
    metavar="%",
    help="Percent by which cost, tokens and repeated readings may rise.",
)
@click.option(
    "--take-over", "profile", nargs=2, metavar="MODEL F.toml", help="Write the winner's numbers as a profile."
)
@click.option("--json", "as_json", is_flag=True, help="Print the evaluation as JSON.")
def evaluate_command(
    files: tuple[str, ...],
    compared: str | None,
    windows: tuple[int, ...],
    high: str | None,
    low: str | None,
    model: str | None,
    workers: int | None,
    limit: int | None,
    record: str,
    tolerance: float,
    profile: tuple[str, str] | None,
    *,
    as_json: bool,
) -> None:
    """Repeat tasks and recordings under several configurations, and compare with the last time.

    A FILE is a suite (.toml, with tasks, recordings and configurations), or a recording as for `windowsill replay`. The
    exit code is 1 when something got worse: a task that no longer succeeds, fewer kept values, higher costs, more
    repeated readings, invalid requests.
    """
    suite = _suite(files)
    if compared or windows or high or low:
        strategies = read_strategies(compared) if compared else [None]
        marks = ReplayOptions(high=parse_mark(high, "high"), low=parse_mark(low, "low"))
        suite = msgspec.structs.replace(suite, configurations=cross(strategies, windows or [None], marks))
    processes = workers or processes_for(total_size(suite.recordings))
    made = evaluate(suite, model=model, workers=processes, limit=limit)
    before = last_evaluation(record, made)
    worse = find_regressions(before, made, tolerance=tolerance / 100) if before is not None else []
    record_evaluation(record, made)
    best = winner(made)
    if as_json:
        print_json({"evaluation": made, "winner": best, "regressions": worse, "compared": before is not None})
    else:
        _show(made, best)
        for line in worse:
            print_line(f"worse: {line}", colour="red")
        if before is None:
            print_line(f"Kept in {record}: the next evaluation is compared with this one.")
        elif not worse:
            print_line("Nothing got worse since the last evaluation.")
    if profile is not None and profile_fields(made.configurations[best]):
        table = take_over(profile[1], profile[0], made.configurations[best])
        click.echo(f"{profile[1]} now has:\n{table}", err=as_json)
    elif profile is not None:
        print_warning(f"{best} states no high, low or keep: nothing was written to {profile[1]}")
    if worse:
        click.get_current_context().exit(FAILED)


def _suite(files: tuple[str, ...]) -> Suite:
    """Join the suites among the files, with the other files as recordings."""
    suites = [read_suite(file) for file in files if Path(file).suffix == ".toml"]
    recordings = [file for file in files if Path(file).suffix != ".toml"]
    names = [task.name for suite in suites for task in suite.task]
    if len(names) != len(set(names)):
        raise InputError("two suites have a task of the same name", remedy="evaluate them one by one")
    return Suite(
        task=tuple(task for suite in suites for task in suite.task),
        recordings=(*(each for suite in suites for each in suite.recordings), *recordings),
        configurations={name: options for suite in suites for name, options in suite.configurations.items()},
    )


def _show(made: Evaluation, best: str) -> None:
    print_table(made.rows(best))
    for name, runs in made.runs.items():
        for run in runs:
            if not run.success:
                print_line(
                    f"{name}: {run.kind} {run.name!r} did not succeed: {run.error or run.status}", colour="yellow"
                )
