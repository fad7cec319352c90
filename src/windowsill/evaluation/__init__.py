"""Repeat tasks and recordings under several configurations, keep a record of the runs, and notice what got worse."""

from __future__ import annotations

from windowsill.evaluation.record import (
    Evaluation,
    RunRecord,
    find_regressions,
    last_evaluation,
    profile_fields,
    record_evaluation,
    run_of_engine,
    runs_of_replay,
    take_over,
    winner,
)
from windowsill.evaluation.suite import EvaluationTask, Suite, evaluate, read_suite

__all__ = [
    "Evaluation",
    "EvaluationTask",
    "RunRecord",
    "Suite",
    "evaluate",
    "find_regressions",
    "last_evaluation",
    "profile_fields",
    "read_suite",
    "record_evaluation",
    "run_of_engine",
    "runs_of_replay",
    "take_over",
    "winner",
]
