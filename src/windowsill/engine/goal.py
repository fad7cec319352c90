"""What becomes of a task in the state: its goal, which is told beside the message that holds the task."""

from __future__ import annotations

import hashlib

LONGEST = 2_000
"""Characters of a goal. A task stands in its own message already: a large one must not be sent twice."""


def goal_of(task: str) -> str:
    """The goal of a task: the task itself, or the beginning of a long one with what tells it apart from others."""
    if len(task) <= LONGEST:
        return task
    digest = hashlib.blake2b(task.encode(errors="backslashreplace"), digest_size=8).hexdigest()
    return f"{task[:LONGEST]}... [the beginning of the user's message of {len(task):,} characters, {digest}]"
