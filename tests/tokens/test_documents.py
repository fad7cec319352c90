import base64

import pytest

from windowsill.messages import Document
from windowsill.tokens.media import document_text, page_tokens

pytestmark = pytest.mark.unit


def encoded(data):
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (Document(text="words"), "words"),
        (Document(media_type="text/plain", data=encoded(b"words")), "words"),
        (Document(media_type="application/pdf", data=encoded(b"%PDF-1.7")), None),
        (Document(media_type="text/plain", url="https://example.org/a.txt"), None),
        (Document(media_type="text/plain", data="a"), None),
    ],
)
def test_text_of_documents(document, text):
    """A document that is text is counted as its text, whether inline or encoded."""
    assert document_text(document) == text


@pytest.mark.parametrize(
    ("document", "tokens"),
    [
        (Document(data=encoded(b"%PDF")), 3_000),
        (Document(data=encoded(bytes(400_000))), 30_000),
        (Document(url="https://example.org/a.pdf"), 30_000),
        (Document(data=encoded(bytes(30_000_000))), 1_800_000),
    ],
    ids=["tiny", "ten pages", "by address", "at most 600 pages"],
)
def test_pages_are_guessed_from_bytes(document, tokens):
    """A PDF counts 3,000 tokens for every 40 KB."""
    assert page_tokens(document) == tokens
