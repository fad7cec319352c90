"""Plan, write, check, fall back, assemble the payload."""

from __future__ import annotations

from windowsill.compose.payload import FoldMade, Payload, Report

__all__ = ["FoldMade", "Payload", "Report"]
