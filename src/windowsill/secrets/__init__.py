"""Find secrets in text and take them out: `find` says where they stand, `redact` puts `[secret: kind]` there.

What leaves a session for somebody else to read goes through here: summaries, exports, search results for another
session, telemetry. The history itself is never touched.

What is taken for a secret by mistake costs a word; what is missed may cost an account. So a key of a documented format,
and what is assigned to the name of a password or a key, is always taken out, even if it is an example. What only looks
random is taken out unless something says what it is, because most of that is no secret, and a summary lives on it:
commits, digests, ids, versions, names, paths and addresses stay. `Redactor(allow=...)` keeps what is public,
`Redactor(extra=...)` knows the formats of a house.
"""

from __future__ import annotations

from windowsill.secrets.detectors import Secret
from windowsill.secrets.redactor import Redactor, default_redactor

__all__ = ["Redactor", "Secret", "default_redactor", "find", "redact"]


def find(text: str) -> list[Secret]:
    """Return the secrets in a text, in order; `Redactor` has further options."""
    return default_redactor().find(text)


def redact(text: str) -> str:
    """Return the text with `[secret: kind]` in the place of each secret."""
    return default_redactor().redact(text)
