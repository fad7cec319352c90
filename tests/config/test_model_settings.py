"""Settings with the profile of their model applied."""

import pytest

from windowsill import SettingError
from windowsill.config import Settings, apply_profile, with_changes

pytestmark = pytest.mark.unit


def test_without_a_profile_nothing_changes():
    """Shipped profiles are used only by whoever asks for them."""
    settings = Settings(model="claude-opus-4-5")
    assert apply_profile(settings) == settings


def test_auto_takes_marks_and_messages_to_keep_from_the_shipped_profile():
    """No model is asked to write because of it."""
    found = apply_profile(Settings(model="claude-opus-4-5", profile="auto"))
    assert (found.high, found.low, found.strategy, found.writer) == (0.8, 0.24, "sliding-window:keep=5", "offline")


def test_a_profile_of_ones_own_is_used_for_its_model():
    """And for no other one."""
    own = {"gpt-5": {"threshold": 60}}
    assert apply_profile(Settings(model="gpt-5", profiles=own)).high == 0.6
    assert apply_profile(Settings(model="gpt-4o", profiles=own)).high == 0.8
    assert apply_profile(Settings(model="gpt-5", profiles=own, profile="off")).high == 0.8


def test_what_is_stated_wins_over_the_profile():
    """Marks that are not the defaults, and the strategy's own `keep`."""
    found = apply_profile(Settings(model="gpt-5", profile="auto", high=0.9, strategy="mask+condense:keep=7"))
    assert (found.high, found.low, found.strategy) == (0.9, 0.5, "mask+condense:keep=7")


@pytest.mark.parametrize(
    ("model", "writer"),
    [
        ("claude-sonnet-4-5", "anthropic:claude-haiku-4-5"),
        ("gemini-2.5-pro", "gemini:gemini-2.5-pro"),
        ("gpt-5", "openai:gpt-5-mini"),
        ("nobody-knows-it", "offline"),
    ],
)
def test_the_profile_names_the_model_that_writes(model, writer):
    """Where the writer is left to it."""
    assert apply_profile(Settings(model=model, writer="profile")).writer == writer
    assert apply_profile(Settings(model=model, writer="profile")).high == 0.8


def test_without_a_model_the_writer_of_the_profile_is_code():
    """There is nobody to ask."""
    assert apply_profile(Settings(writer="profile")).writer == "offline"


def test_an_unknown_profile_is_refused_when_it_is_stated():
    """Not when the first request is composed."""
    with pytest.raises(SettingError, match="setting 'profile' is 'bold'"):
        with_changes(Settings(), {"profile": "bold"})
