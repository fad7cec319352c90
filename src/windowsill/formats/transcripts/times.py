"""Times as transcripts write them."""

from __future__ import annotations

import datetime as dt
from typing import Any


def timestamp(value: Any) -> float | None:
    """Seconds since the epoch from a number or ISO 8601 (UTC where it names no zone); `None` from anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        moment = dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
