"""Type checkers know the settings: a right one passes, a typo is an error."""

from pathlib import Path

import pytest
from mypy import api

pytestmark = pytest.mark.integration

ROOT = next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").exists())


def test_settings_are_typed_by_name():
    """Every call in the file is right, or marked as the error that it must be."""
    told, faults, status = api.run(
        ["--config-file", str(ROOT / "pyproject.toml"), str(ROOT / "tests/typing/settings.py")]
    )
    assert (told.startswith("Success"), faults, status) == (True, "", 0), told
