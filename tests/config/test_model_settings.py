"""Settings with the profile of their model applied."""

import pytest

from windowsill import SettingError
from windowsill.config import Settings, apply_profile, with_changes

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("model", "high", "keep"),
    [
        ("claude-opus-4-5", 0.8, 5),
        ("claude-sonnet-4-5", 0.75, 3),
        ("claude-haiku-4-5", 0.6, 3),
        ("gpt-5", 0.7, 3),
        ("gpt-3.5-turbo", 0.5, 3),
        ("nobody-knows-it", 0.75, 3),
    ],
)
def test_the_shipped_profile_of_a_model_holds_without_a_word(model, high, keep):
    """Its high mark and the messages to keep; the low mark follows, and no model is asked to write."""
    found = apply_profile(Settings(model=model, strategy="sliding-window"))
    assert (found.high, found.low) == (high, None)
    assert (found.strategy, found.writer) == (f"sliding-window:keep={keep}", "offline")


def test_a_profile_can_be_switched_off():
    """Then the defaults are the same for every model."""
    settings = Settings(model="claude-haiku-4-5", profile="off")
    assert apply_profile(settings) == settings


def test_auto_takes_marks_and_messages_to_keep_from_the_shipped_profile():
    """No model is asked to write because of it."""
    found = apply_profile(Settings(model="claude-opus-4-5", strategy="sliding-window", profile="auto"))
    assert (found.high, found.low, found.strategy, found.writer) == (0.8, 0.24, "sliding-window:keep=5", "offline")


def test_a_profile_of_ones_own_is_used_for_its_model():
    """And for no other one."""
    own = {"gpt-5": {"threshold": 60}}
    assert apply_profile(Settings(model="gpt-5", profiles=own)).high == 0.6
    assert apply_profile(Settings(model="gpt-4o", profiles=own)).high == 0.7
    assert apply_profile(Settings(model="gpt-5", profiles=own, profile="off")).high is None


def test_what_is_stated_wins_over_the_profile():
    """Marks, also those that equal the defaults, and the strategy's own `keep`."""
    found = apply_profile(Settings(model="gpt-5", profile="auto", high=0.8, low=0.5, strategy="mask+condense:keep=7"))
    assert (found.high, found.low, found.strategy) == (0.8, 0.5, "mask+condense:keep=7")


@pytest.mark.parametrize(("high", "low"), [(0.9, 0.225), (40_000, 10_000), ("90%", None)])
def test_the_goal_of_a_profile_holds_for_a_stated_high_mark(high, low):
    """A reduction takes three quarters away, wherever it begins."""
    found = apply_profile(Settings(model="gpt-5", profile="auto", high=high))
    assert (found.high, found.low) == (high, low)


def test_a_stated_low_mark_is_never_above_the_high_mark_of_a_profile():
    """The default is used in its place: with both at one size every turn would be reduced."""
    assert apply_profile(Settings(model="claude-haiku-4-5", low=0.7)).high is None
    assert apply_profile(Settings(model="claude-haiku-4-5", low=0.4)).high == 0.6


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


def test_without_a_model_the_writer_of_the_profile_is_code():
    """There is nobody to ask."""
    assert apply_profile(Settings(writer="profile")).writer == "offline"


def test_an_unknown_profile_is_refused_when_it_is_stated():
    """Not when the first request is composed."""
    with pytest.raises(SettingError, match="setting 'profile' is 'bold'"):
        with_changes(Settings(), {"profile": "bold"})
