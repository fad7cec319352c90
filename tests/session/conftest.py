"""A store in memory, and one on disk."""

import pytest

from support.stores import STORES


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    made = STORES[request.param](tmp_path)
    yield made
    made.close()
