"""Where a request goes, with which headers, and how packed requests are read."""

import gzip
import zlib

import pytest
import zstandard

from windowsill import InputError, SettingError
from windowsill.proxy import forward
from windowsill.proxy.forward import forwarded, join_address, parse_upstreams, provider_of, unpack

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("path", "headers", "provider"),
    [
        ("/v1/messages", {}, "anthropic"),
        ("/v1/messages/count_tokens", {}, "anthropic"),
        ("/api/hello", {}, "anthropic"),
        ("/v1/models", {"anthropic-version": "2023-06-01"}, "anthropic"),
        ("/v1/models", {"authorization": "Bearer x"}, "openai"),
        ("/v1/chat/completions", {}, "openai"),
        ("/v1/responses", {}, "openai"),
        ("/v1/responses/compact", {}, "openai"),
        ("/v1beta/models/gemini-3-pro:streamGenerateContent", {}, "gemini"),
        ("/v1beta/models", {}, "gemini"),
    ],
)
def test_a_path_leads_to_its_provider(path, headers, provider):
    """Calls by their path, other requests by what their client says of itself."""
    assert provider_of(path, headers) == provider


def test_an_address_is_joined_without_saying_the_version_twice():
    """Upstreams are written both ways."""
    assert join_address("https://a", "/v1/x", "beta=true") == "https://a/v1/x?beta=true"
    assert join_address("https://a/v1", "/v1/x", "") == "https://a/v1/x"
    assert join_address("https://a/backend", "/v1/x", "") == "https://a/backend/v1/x"


def test_a_version_that_neither_side_has_is_added():
    """Some clients expect it in their base URL; an upstream with a path of its own is taken as it is."""
    assert join_address("https://a", "/messages", "") == "https://a/v1/messages"
    assert join_address("https://a", "/chat/completions", "") == "https://a/v1/chat/completions"
    assert join_address("https://a/v1", "/responses", "") == "https://a/v1/responses"
    assert join_address("https://a/backend", "/responses", "") == "https://a/backend/responses"


@pytest.mark.parametrize(
    "stated", ["anthropic", "other=https://a", "anthropic=ftp://a", "=https://a", "openai=http://", "openai=http://a:x"]
)
def test_an_upstream_that_cannot_be_used_is_refused(stated):
    """The error names the form."""
    with pytest.raises(SettingError, match="NAME=URL"):
        parse_upstreams([stated])


def test_headers_of_one_connection_do_not_go_on():
    """All others do, in their order, twice where they came twice; ours stay here."""
    headers = [
        (b"Connection", b"close, X-Own"),
        (b"X-Own", b"1"),
        (b"Host", b"localhost"),
        (b"anthropic-beta", b"one"),
        (b"anthropic-beta", b"two"),
        (b"x-windowsill-token", b"secret"),
        (b"Authorization", b"Bearer x"),
    ]
    assert forwarded(headers) == [
        (b"anthropic-beta", b"one"),
        (b"anthropic-beta", b"two"),
        (b"Authorization", b"Bearer x"),
    ]


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("", b"words"),
        ("identity", b"words"),
        ("gzip", gzip.compress(b"words", mtime=0)),
        ("deflate", zlib.compress(b"words")),
        ("zstd", zstandard.compress(b"words")),
    ],
)
def test_packed_requests_are_read(encoding, packed):
    """Codex packs with zstd where it is logged in."""
    assert unpack(packed, encoding) == b"words"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_a_small_request_that_unpacks_to_gigabytes_is_refused(encoding, monkeypatch):
    """It is not unpacked further than a request may be large."""
    monkeypatch.setattr(forward, "LARGEST_BODY", 1_000)
    pack = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}[encoding]
    with pytest.raises(InputError, match="more than a request may have"):
        unpack(pack(b"0" * 1_001), encoding)


@pytest.mark.parametrize(("encoding", "body"), [("gzip", b"no"), ("zstd", b"no"), ("deflate", b"no"), ("br", b"x")])
def test_what_cannot_be_unpacked_is_refused(encoding, body):
    """The error names the encoding."""
    with pytest.raises(InputError, match=encoding):
        unpack(body, encoding)
