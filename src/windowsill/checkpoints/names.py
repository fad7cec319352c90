"""Folder names for sessions, whose own names may hold anything."""

from __future__ import annotations

import hashlib
import re

READABLE = 40
"""Characters of a session's name that a folder's name repeats, for people who look for it."""

DIGITS = 20
"""Of the hash that tells two sessions apart: 80 bits, which no two names share by chance."""

_OTHER = re.compile(r"[^a-z0-9]+")


def folder_name(session: str) -> str:
    """A name that every file system takes, and that no other session has.

    It is made of lower-case letters, digits and hyphens: some file systems do not tell cases apart, some give names
    with dots or certain words a meaning.
    """
    readable = _OTHER.sub("-", session.lower())[:READABLE].strip("-") or "session"
    return f"{readable}-{hashlib.sha256(session.encode(errors='surrogatepass')).hexdigest()[:DIGITS]}"
