from __future__ import annotations

import base64
import hashlib
import random
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.secret_keys import BASE32, HEX, LETTERS, STANDARD, URL_SAFE, drawn
from windowsill.secrets import Redactor, default_redactor, find, redact
from windowsill.secrets.detectors import entropy

pytestmark = pytest.mark.unit

FOUND = 0.85
"""Of tokens of chance, those that are found: the others happen to look like words, numbers or paths."""


@pytest.mark.parametrize(
    ("letters", "size"),
    [(LETTERS, 20), (STANDARD, 32), (STANDARD, 40), (URL_SAFE, 43), (BASE32, 32), (HEX, 48), (HEX, 20)],
)
def test_most_tokens_of_chance_are_taken_out(letters, size):
    """Whatever alphabet they are drawn from, where nothing says what they are."""
    found = [bool(find(f"use {drawn(seed, size, letters)} now")) for seed in range(400)]
    assert sum(found) / len(found) >= FOUND


def test_entropy_can_be_switched_off():
    """Then only what has a format or a name is found."""
    text = "use " + drawn(1, 40) + " now"
    assert redact(text) == "use [secret: high-entropy] now"
    assert Redactor(entropy=False).redact(text) == text


@pytest.mark.parametrize(("value", "found"), [("off", False), ("0", False), ("on", True), ("", True)])
def test_a_variable_switches_entropy_off_for_the_process(monkeypatch, value, found):
    """For everything that has no redactor of its own; what has a format or a name is found all the same."""
    monkeypatch.setenv("WINDOWSILL_ENTROPY", value)
    redactor = default_redactor.__wrapped__()
    assert bool(redactor.find("use " + drawn(1, 40) + " now")) == found
    assert redactor.redact("PASSWORD=hunter2") == "PASSWORD=[secret: password]"


def test_entropy_is_that_of_shannon():
    """Bits per character: none for one character, one for two that alternate, four for sixteen."""
    assert [entropy("aaaa"), entropy("abab"), entropy(HEX)] == [0.0, 1.0, 4.0]


def digest(seed: int, name: str) -> str:
    return hashlib.new(name, str(seed).encode()).hexdigest()


def integrity(seed: int, name: str) -> str:
    return base64.b64encode(hashlib.new(name, str(seed).encode()).digest()).decode()


INNOCENT = {
    "commit": lambda s: f"git show {digest(s, 'sha1')}",
    "short file hash": lambda s: f"dist/assets/index-{digest(s, 'sha1')[:20]}.js",
    "md5": lambda s: f"{digest(s, 'md5')}  file.bin",
    "sha256": lambda s: f"sha256:{digest(s, 'sha256')}",
    "sha512": lambda s: f"{digest(s, 'sha512')}",
    "npm lock": lambda s: f'"integrity": "sha512-{integrity(s, "sha512")}"',
    "wheel record": lambda s: f"windowsill/__init__.py,sha256={integrity(s, 'sha256').rstrip('=')},1024",
    "go sum": lambda s: f"golang.org/x/text v0.3.7 h1:{integrity(s, 'sha256')}",
    "uuid": lambda s: str(uuid.UUID(int=s, version=4)),
    "uuid with a name": lambda s: f"session-{uuid.UUID(int=s, version=4)}",
    "tool call": lambda s: f"toolu_01{drawn(s, 22)}",
    "openai call": lambda s: f"call_{drawn(s, 24)}",
    "response": lambda s: f"resp_{drawn(s, 50, HEX)}",
    "completion": lambda s: f"chatcmpl-{drawn(s, 29)}",
    "request id": lambda s: f'"request_id": "{drawn(s, 28)}"',
    "kept output": lambda s: f"ref=b{digest(s, 'sha256')[:32]}",
    "object id": lambda s: drawn(s, 24, HEX),
    "picture": lambda s: f"data:image/png;base64,{drawn(s, 200, STANDARD)}",
    "small picture": lambda s: f'PIXEL = "iVBORw0KGgo{drawn(s, 80, STANDARD)}"',
    "file as data": lambda s: base64.b64encode(random.Random(s).randbytes(3_000)).decode(),
    "wrapped data": lambda s: "\n".join(drawn(s + line, 76, STANDARD) for line in range(4)),
    "path": lambda s: f"/var/lib/docker/overlay2/{drawn(s, 30)}/merged",
    "relative path": lambda s: f"node_modules/cache/{drawn(s, 30)}",
    "address": lambda s: f"https://docs.example.org/document/d/{drawn(s, 44)}/edit",
    "query of an address": lambda s: f"https://video.example.org/watch?v={drawn(s, 24)}",
    "public key": lambda s: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + drawn(s, 43, STANDARD),
    "pseudo version": lambda s: f"v0.0.0-20210921155107-{drawn(s, 12, HEX)}",
    "mail": lambda s: f"<{drawn(s, 40)}@mail.example.org>",
    "signature": lambda s: f'"signature": "{drawn(s, 120, STANDARD)}"',
    "compiler's name": lambda s: f"_ZN4core3fmt9Formatter17h{drawn(s, 16, HEX)}E",
}


@pytest.mark.parametrize("name", sorted(INNOCENT))
@given(seed=st.integers(0, 2**32))
def test_what_is_random_but_no_secret_stays(name, seed):
    """Digests, ids, data, paths, addresses: a summary needs them, and nobody gets in with them."""
    text = f"see {INNOCENT[name](seed)}"
    assert redact(text) == text


NAMES = [
    "getUserAccountSettingsFromDatabase2",
    "test_that_a_session_of_2024_is_opened",
    "MAX_CONCURRENT_REQUESTS_PER_HOST_V2",
    "XMLHttpRequestEventTargetPrototype1",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "claude-sonnet-4-5-20250929-thinking",
    "gpt-4o-audio-preview-2024-10-01",
    "Qwen3-235B-A22B-Instruct-2507",
    "2024-01-15T10-30-00Z-backup-nightly",
    "my-deployment-7d9c6b8f5-controller",
    "0x7ffd5e8a9b3c-0x7ffd5e8a9b3d",
    "aaaaaaaaaaaaaaaaaaaa1111111111",
    "src/windowsill/history/marker.py:176",
    "----------------------------------1",
    "123456789012345678901234567890",
    "FINDING_a1_b2_c3_d4_e5_f6_g7",
]


@pytest.mark.parametrize("text", NAMES)
def test_names_versions_and_numbers_stay(text):
    """Words, abbreviations, dates and repetitions are not drawn by chance, however long."""
    assert redact(f"call {text} here") == f"call {text} here"
