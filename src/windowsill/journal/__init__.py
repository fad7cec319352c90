"""Read and write the entries of a session through its store."""

from __future__ import annotations
