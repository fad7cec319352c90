"""What a document costs in tokens when only its bytes are known."""

from __future__ import annotations

import binascii

from windowsill.messages import Document
from windowsill.tokens.images import inline_data
from windowsill.tokens.pictures import decoded_size

PAGE_TOKENS = 3_000
"""Providers publish 1,500 to 3,000 tokens for a page of a PDF, its picture included: take the upper end."""

PAGE_BYTES = 40_000
"""A PDF made from text has about 50 to 100 KB for a page, scans more: this asks for too many pages, not too few."""

REMOTE_PAGES = 10
"""Pages assumed for a document by address, whose size nobody can know before the reply; usage corrects it then."""

MOST_PAGES = 600
"""The most pages any provider reads from one document."""


def document_text(document: Document) -> str | None:
    """The text of a document that is text, inline or encoded; `None` for a PDF or an address."""
    if document.text is not None:
        return document.text
    kind = document.media_type or ""
    data = inline_data(document.data, document.url)
    if data is None or not (kind.startswith("text/") or kind == "application/json"):
        return None
    try:
        return binascii.a2b_base64(data).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


def page_tokens(document: Document) -> int:
    """Tokens of a document that is not text, guessed from its size."""
    data = inline_data(document.data, document.url)
    pages = REMOTE_PAGES if data is None else -(-decoded_size(data) // PAGE_BYTES)
    return PAGE_TOKENS * min(MOST_PAGES, max(1, pages))
