"""A store of every kind."""

import pytest

from support.stores import STORES


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    made = STORES[request.param](tmp_path)
    yield made
    made.close()
