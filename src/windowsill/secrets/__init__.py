"""Find secrets in text and take them out: `find` returns their places, `redact` puts `[secret: kind]` there.

Everything that leaves a session for somebody else goes through here: summaries, exports, search results for another
session, telemetry. The history itself is never touched.

A mistake costs a word; a missed secret may cost an account. So a key of a documented format, and a value assigned to
the name of a password or a key, is always taken out, even if it is an example. A token that only looks random is taken
out unless its form or the text around it shows that it is a commit, digest, id, version, name, path or address.
`Redactor(allow=...)` keeps public values, `Redactor(extra=...)` adds formats of your own.
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
