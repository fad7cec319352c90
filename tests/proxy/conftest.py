"""A provider with a small window, and a proxy before it."""

import pytest

from support.proxies import proxied
from windowsill.testing import Server


@pytest.fixture
def provider():
    with Server(window=6_000) as made:
        yield made


@pytest.fixture
def proxy(tmp_path, provider):
    with proxied(tmp_path, provider.url) as made:
        yield made
