"""Opening a session with a configuration: files and the environment are read when asked for, and only then."""

import pytest

from windowsill import Session
from windowsill.config import load

pytestmark = pytest.mark.unit


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "windowsill.toml").write_text('model = "claude-sonnet-4-5"\nhigh = 0.7\nstrategy = ["mask"]\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_nearest_settings_are_used_when_asked_for(monkeypatch):
    """`config=True` takes the file and the environment; what is stated in code wins."""
    monkeypatch.setenv("WINDOWSILL_LOW", "0.3")
    session = Session.open("s", store=":memory:", config=True, high=0.75)
    assert (session.settings.model, session.settings.low, session.settings.high) == ("claude-sonnet-4-5", 0.3, 0.75)
    assert session.settings.strategy == "mask"


def test_a_file_can_be_named(folder):
    """A path reads that file, wherever it is."""
    other = folder / "other.toml"
    other.write_text('model = "claude-opus-4-5"\n')
    assert Session.open("s", store=":memory:", config=other).settings.model == "claude-opus-4-5"
    assert Session.open("s", store=":memory:", config=load(file=other)).settings.model == "claude-opus-4-5"


@pytest.mark.usefixtures("folder")
def test_no_file_is_read_unasked():
    """Without `config` the settings file beside does nothing."""
    assert Session.open("s", store=":memory:", window=9_000).settings.high == 0.8
