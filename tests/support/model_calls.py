"""A model call of a replay, to change in one field."""

from __future__ import annotations

import msgspec

from windowsill.messages import Message
from windowsill.replay.walk import ModelCall


def model_call(**fields):
    plain = ModelCall(
        session="s",
        turn=1,
        answer=Message(role="assistant"),
        output=10,
        body=b"{}",
        tokens=100,
        limit=1_000,
        stable=50,
        everything=200,
        at=None,
        seconds=0.002,
        folds=(),
        repairs=(),
        problems=(),
    )
    return msgspec.structs.replace(plain, **fields)
