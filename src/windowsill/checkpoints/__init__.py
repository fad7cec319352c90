"""Checkpoints: names for moments of a session, when one is due, and snapshot files for when the database is lost."""

from __future__ import annotations

from windowsill.checkpoints.automatic import Automatic, Seen
from windowsill.checkpoints.labels import Checkpoint, Reason

__all__ = ["Automatic", "Checkpoint", "Reason", "Seen"]
