"""Opening a session with a configuration: a new one takes what is not stated from the environment and files."""

import pytest

from windowsill import Session, SettingError, fit, open_store
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
def test_a_new_session_reads_what_the_command_line_reads(monkeypatch):
    """The nearest file and the environment, without being asked; code wins."""
    monkeypatch.setenv("WINDOWSILL_BUDGET", "9k")
    session = Session.open("s", store=":memory:", low=0.3)
    found = session.settings
    assert (found.model, found.high, found.low, found.budget) == ("claude-sonnet-4-5", 0.7, 0.3, 9_000)


@pytest.mark.usefixtures("folder")
def test_no_file_is_read_where_that_is_said():
    """`config=False` leaves files and environment alone."""
    assert Session.open("s", store=":memory:", window=9_000, config=False).settings.high is None


def test_a_session_keeps_the_settings_it_has(folder):
    """A file that changed, or lies elsewhere, changes it only where that is asked for."""
    store = open_store(":memory:")
    Session.open("s", store=store, budget=5_000)
    (folder / "windowsill.toml").write_text('model = "gpt-5"\nbudget = 7000\n')
    kept = Session.open("s", store=store).settings
    assert (kept.model, kept.budget) == ("claude-sonnet-4-5", 5_000)
    assert Session.open("s", store=store, config=True).settings.budget == 7_000


@pytest.mark.usefixtures("folder")
def test_a_list_is_fitted_without_any_file():
    """`windowsill.fit` is a function of its arguments."""
    assert fit([{"role": "user", "content": "hi"}], budget=4_000).report.limit == 4_000


def test_a_found_file_does_not_import_code(folder):
    """A strategy by its path may be anything that lies in the folder; its name is one that was installed."""
    (folder / "beside.py").write_text("open('ran', 'w').close()\n")
    (folder / "windowsill.toml").write_text("strategy = 'beside:Own'")
    with pytest.raises(SettingError, match=r"windowsill\.toml: setting 'strategy' is 'beside:Own'"):
        Session.open("s", budget=4_000, store=":memory:")
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "[strategies.msk]\nkeep = 3",
            r"windowsill\.toml: setting 'strategies\.msk' .* give mask \(if that was meant\)",
        ),
        ("[strategies.condense]\nkeep = -1", r"windowsill\.toml: setting 'strategies\.condense\.keep' is -1"),
        ("[strategies.condense]\nkep = 1", r"windowsill\.toml: setting 'strategies\.condense\.kep' is 1; give keep"),
    ],
)
def test_tables_of_strategies_that_are_not_in_use_are_checked(folder, text, error):
    """A table under a mistyped name would never be read, and nobody would know."""
    (folder / "windowsill.toml").write_text(f'model = "gpt-5"\n{text}\n')
    with pytest.raises(SettingError, match=error):
        Session.open("s", store=":memory:")
    (folder / "windowsill.toml").write_text(
        'model = "gpt-5"\n[strategies.extract]\nroom = 0.1\n[strategies."my.own:S"]\nx = 1\n'
    )
    assert Session.open("s", store=":memory:").settings.model == "gpt-5"


@pytest.mark.parametrize("mark", ["high", "low", "warn"])
def test_a_mark_that_looks_like_percent_is_refused(mark):
    """80 would be 80 tokens, and every request would be reduced."""
    with pytest.raises(
        SettingError, match=f'{mark}.* is 80; give a share such as "80%" or 0.8, or more than 100 tokens'
    ):
        Session.open("s", model="gpt-5", store=":memory:", **{mark: 80})
