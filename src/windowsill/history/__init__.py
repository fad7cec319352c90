"""Entries, branches, folds, the view, tool units and repair: pure code, no input or output."""

from __future__ import annotations
