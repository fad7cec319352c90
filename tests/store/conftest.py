"""A database with one session."""

from pathlib import Path

import pytest

from windowsill.store.sqlite import SQLiteStore


@pytest.fixture
def store(tmp_path: Path):
    store = SQLiteStore(tmp_path / "sessions.db")
    store.create("s", at=1.0)
    yield store
    store.close()
