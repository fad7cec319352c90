"""Plan, write, check, fall back, assemble the payload."""

from windowsill.compose.payload import FoldMade, Payload, Report

__all__ = ["FoldMade", "Payload", "Report"]
