"""Hosts that a call may reach, however an address is written."""

from __future__ import annotations

import pytest

from windowsill.errors import InputError
from windowsill.state.policies import Hosts

pytestmark = pytest.mark.unit

ALLOWED = Hosts(["example.com", "*.wide.org", "localhost:8080", "127.0.0.1", "münchen.de", "[::1]"])


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com/path?q=https://evil.com",
        "HTTPS://EXAMPLE.COM",
        "https://api.example.com:8443/x",
        "https://example.com.",
        "https://user:secret@example.com/x",
        "//example.com/x",
        "example.com/x",
        "example.com:443",
        "wss://a.b.example.com",
        "https://a.wide.org",
        "http://localhost:8080/x",
        "http://127.0.0.1:9",
        "https://münchen.de",
        "https://MÜNCHEN.de",
        "https://xn--mnchen-3ya.de",
        "https://\uff45xample\u3002com",
        "http://[::1]:80/",
        "http://[0:0:0:0:0:0:0:1]/",
    ],
)
def test_an_allowed_host_is_reached(url):
    """Itself and its subdomains, in any spelling."""
    assert ALLOWED.beyond(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.com",
        "https://evilexample.com",
        "https://example.com.evil.com",
        "https://example.com@evil.com",
        "https://example.com:x@evil.com",
        "https://evil.com#@example.com",
        "https://evil.com?@example.com",
        "https://evil.com\\@example.com",
        "https://evil.com\\.example.com",
        "https://evil.com%2f.example.com",
        "https://evil.com%00.example.com",
        "https://ex\tample.com",
        "https://exa mple.com",
        "https://example.com\n.evil.com",
        "https:evil.com",
        "https:/example.com",
        "https:///example.com",
        "https://",
        "https://wide.org",
        "https://example.com:99999",
        "https://example.com:port",
        "http://localhost",
        "http://localhost:80",
        "http://2130706433",
        "http://9.127.0.0.1",
        "http://0x7f.0.0.1",
        "https://\u0435xample.com",
        "https://example..com",
        "https://[::2]",
        "https://[::1",
        "",
        "javascript:alert(1)",
        "javascript:x@example.com",
    ],
)
def test_any_other_host_is_refused(url):
    """Also where clients would disagree on which host it is."""
    assert ALLOWED.beyond(url) is not None


def test_sharp_s_is_no_double_s():
    """Two names that an old rule made one."""
    assert Hosts(["fass.de"]).beyond("https://faß.de") is not None


def test_the_reason_names_the_host_and_the_list():
    """One can see what would be allowed."""
    assert Hosts(["example.com"]).beyond("https://evil.com/x") == (
        '"evil.com" is not among the allowed domains ("example.com")'
    )
    assert "there are none" in Hosts([]).beyond("https://example.com")


def test_a_broken_entry_is_told_at_once():
    """A list that cannot be read protects nothing."""
    with pytest.raises(InputError, match="allowed_domains has 'exa mple'"):
        Hosts(["exa mple"])
