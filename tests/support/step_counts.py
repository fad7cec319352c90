"""Counts the steps of a piece of code, so that a test can say how they grow without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_steps(act: Callable[[], Any]) -> int:
    """Count the lines of Python that are run, each time they are run."""
    count = 0

    def note(_frame: FrameType, _event: str, _value: Any) -> Any:
        nonlocal count
        count += 1
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
