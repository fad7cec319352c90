"""Reads and writes the entries of a session through its store."""
