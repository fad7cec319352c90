"""A model call of a replay, to change in one field."""

from __future__ import annotations

from windowsill.compose.payload import FoldMade, Report
from windowsill.messages import Message
from windowsill.replay.walk import ModelCall


def model_call(*, tokens=100, limit=1_000, stable=50, folds=(), repairs=(), **fields):
    made = [FoldMade(id=id, kind="k", strategy="s", reason="r", messages=1, before=9, after=1) for id in folds]
    report = Report(
        tokens=tokens,
        parts={},
        limit=limit,
        window=limit,
        messages=1,
        hidden=0,
        stable=stable,
        folds=tuple(made),
        repairs=repairs,
    )
    plain = {
        "session": "s",
        "turn": 1,
        "answer": Message(role="assistant"),
        "output": 10,
        "body": b"{}",
        "report": report,
        "everything": 200,
        "at": None,
        "seconds": 0.002,
        "problems": (),
    }
    return ModelCall(**{**plain, **fields})
