"""Suites: tasks and recordings that are repeated under several configurations, offline with scripts or with models."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from windowsill.agent import Engine
from windowsill.agent import model as model_of
from windowsill.agent.models import Model
from windowsill.agent.phases import ALL
from windowsill.agent.toolkits import toolkit
from windowsill.errors import InputError, WindowsillError
from windowsill.evaluation.record import Evaluation, RunRecord, run_of_engine, runs_of_replay
from windowsill.replay import ReplayOptions, compare
from windowsill.session import Session
from windowsill.testing import Call, Scripted

SCRIPTED = "claude-sonnet-4-5"
"""The model that a script stands for where none is named: it decides the window and the prices."""


class EvaluationTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task that an engine is given, in a folder of its own."""

    name: str
    task: str
    criteria: tuple[str, ...] = ()
    files: dict[str, str] = {}
    """Texts of the files that the folder has."""
    tools: tuple[str, ...] = ("files",)
    """The kits of tools, as `windowsill agent --tools` has them."""
    script: tuple[Any, ...] = ()
    """Answers of a model without a network: texts, `{tool, arguments}`, lists of these. The last text is repeated."""
    model: str = ""
    """The model that is asked where there is no script."""
    expect: str = ""
    """Words that the result has to contain,"""
    expect_files: dict[str, str] = {}
    """and words that files have to contain at the end."""
    max_turns: int = 50


ModelSource: TypeAlias = str | Callable[[EvaluationTask], Any] | None
"""The model of tasks without a script: its name, or a function that makes it for a task."""


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tasks and recordings, and the configurations under which they are repeated."""

    task: tuple[EvaluationTask, ...] = ()
    recordings: tuple[str, ...] = ()
    """Files and folders, as `windowsill replay` takes them."""
    configurations: dict[str, ReplayOptions] = {}


def read_suite(path: Path | str) -> Suite:
    """Read a suite from a TOML file; recordings are relative to its folder."""
    file = Path(path)
    try:
        suite = msgspec.convert(tomllib.loads(file.read_text("utf-8")), Suite)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not a suite: {error}", remedy="see docs/evaluation.md", place=str(file)) from None
    names = [each.name for each in suite.task]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"{file} has two tasks {min(twice)!r}", remedy="give each its own name", place=str(file))
    return msgspec.structs.replace(suite, recordings=tuple(str(file.parent / each) for each in suite.recordings))


def evaluate(
    suite: Suite,
    *,
    model: ModelSource = None,
    workers: int = 1,
    limit: int | None = None,
    clock: Callable[[], float] = time.time,
) -> Evaluation:
    """Repeat everything in a suite under each of its configurations.

    `model` is asked for tasks that have neither a script nor a model of their own: its name, or a function that makes
    one for a task. Several `workers` are other processes. A run that fails is recorded as one that did not succeed.
    """
    configurations = suite.configurations or {"default": ReplayOptions()}
    if not (suite.task or suite.recordings):
        raise InputError("there is nothing to evaluate", remedy="give tasks or recordings")
    runs: dict[str, list[RunRecord]] = {name: [] for name in configurations}
    if suite.recordings:
        reports = compare(suite.recordings, configurations, workers=workers, limit=limit)
        for name, report in reports.items():
            runs[name] += runs_of_replay(report)
    pairs = [(task, options) for options in configurations.values() for task in suite.task]
    done = iter(_run_all(pairs, model, workers))
    for name in configurations:
        runs[name] += [next(done) for _ in suite.task]
    made = {name: tuple(found) for name, found in runs.items()}
    return Evaluation(at=clock(), configurations=dict(configurations), runs=made)


def _run_all(
    pairs: list[tuple[EvaluationTask, ReplayOptions]], model: ModelSource, workers: int
) -> Iterable[RunRecord]:
    if workers == 1 or len(pairs) <= 1:
        return [run_task(task, options, model) for task, options in pairs]
    # A new interpreter for each: a fork of a program with threads may hang.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        tasks, options = zip(*pairs, strict=True)
        return list(pool.map(run_task, tasks, options, repeat(model)))


def run_task(task: EvaluationTask, options: ReplayOptions, model: ModelSource = None) -> RunRecord:
    """Run one task under one configuration, in a folder and a session of its own."""
    try:
        with tempfile.TemporaryDirectory(prefix="windowsill-task-") as folder:
            return _run_in(Path(folder).resolve(), task, options, model)
    except WindowsillError as error:
        return RunRecord(name=task.name, kind="task", success=False, status="failed", error=str(error))


def _run_in(folder: Path, task: EvaluationTask, options: ReplayOptions, model: ModelSource) -> RunRecord:
    for name, text in task.files.items():
        file = (folder / name).resolve()
        if not file.is_relative_to(folder):
            raise InputError(f"the file {name!r} lies outside the folder of the task", remedy="give a relative path")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    asked = _model(task, options, model)
    with Session.open(
        task.name,
        model=options.model or asked.name or SCRIPTED,
        **options.opening(),
        store=":memory:",
        config=False,
    ) as session:
        engine = Engine(
            session,
            model=asked,
            tools=toolkit(task.tools, folder),
            tool_mode="mask",
            approve=lambda _: True,
            base=folder,
            knowledge=folder,
            max_turns=task.max_turns,
            # A script knows what it will do; a model may want to plan.
            phases=("executing", "verifying") if task.script else ALL,
        )
        result = engine.run_sync(task.task, criteria=task.criteria)
        found = {name: _contains(folder / name, words) for name, words in task.expect_files.items()}
        missing = [f"{name} does not have {task.expect_files[name]!r}" for name, there in found.items() if not there]
        missing += [f"the result does not have {task.expect!r}"] if task.expect not in result.text else []
        # Without evidence a criterion is unknown; where the task says what to expect, that is checked instead.
        checked = bool(task.expect or task.expect_files) and result.status == "unverified"
        record = run_of_engine(session, result, name=task.name, success=(result.ok or checked) and not missing)
        return msgspec.structs.replace(record, error="; ".join(filter(None, (record.error, *missing))))


def _contains(file: Path, words: str) -> bool:
    try:
        return words in file.read_text("utf-8", errors="replace")
    except OSError:
        return False


def _model(task: EvaluationTask, options: ReplayOptions, given: ModelSource) -> Model:
    if task.script:
        last = next((each for each in reversed(task.script) if isinstance(each, str)), None)
        return Scripted(map(_answer, task.script), format="anthropic", name=options.model or SCRIPTED, then=last)
    if callable(given):
        return model_of(given(task))
    if not (spec := task.model or given):
        raise InputError(f"the task {task.name!r} has no model", remedy="give it a script, or a model")
    return model_of(spec)


def _answer(item: Any) -> Any:
    """Read an answer of a script as it stands in a suite."""
    if isinstance(item, list):
        return [_answer(each) for each in item]
    if isinstance(item, Mapping):
        try:
            return Call(item["tool"], item.get("arguments", {}))
        except KeyError:
            raise InputError(
                f"a script cannot say {item!r:.80}", remedy="give {tool = ..., arguments = {...}}"
            ) from None
    return item
