"""Planners that say what to fold, one file each."""
