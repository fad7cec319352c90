"""Finds secrets in text and takes them out: `find` says where they stand, `redacted` puts `[secret: kind]` there.

What leaves a session for somebody else to read goes through here: summaries, exports, search results for another
session, telemetry. The history itself is never touched.

What is taken for a secret by mistake costs a word; what is missed may cost an account. So a key of a documented format,
and what is assigned to the name of a password or a key, is always taken out, even if it is an example. What only looks
random is taken out unless something says what it is, because most of that is no secret, and a summary lives on it:
commits, digests, ids, versions, names, paths and addresses stay. `Redactor(allow=...)` keeps what is public,
`Redactor(extra=...)` knows the formats of a house.
"""

from __future__ import annotations

from functools import cache

from windowsill.secrets.base import Secret
from windowsill.secrets.redactor import Redactor

__all__ = ["Redactor", "Secret", "find", "redacted", "usual"]


@cache
def usual() -> Redactor:
    """The redactor that is used where none was made by hand."""
    return Redactor()


def find(text: str) -> list[Secret]:
    """The secrets in a text, in order; `Redactor` has further options."""
    return usual().find(text)


def redacted(text: str) -> str:
    """The text with `[secret: kind]` in the place of each secret."""
    return usual().redacted(text)
