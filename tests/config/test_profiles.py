"""Profiles: how each model's window is used, shipped and stated."""

import logging

import pytest

from windowsill import SettingError
from windowsill.config import profile_for

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("model", "name", "high", "keep", "goal", "writer"),
    [
        ("claude-opus-4-5", "large", 0.8, 5, 0.7, "claude-opus-4-5"),
        ("claude-sonnet-4-5", "balanced", 0.75, 3, 0.75, "claude-haiku-4-5"),
        ("claude-haiku-4-5", "small", 0.6, 3, 0.8, "claude-haiku-4-5"),
        ("gpt-5", "gpt", 0.7, 3, 0.75, "gpt-5-mini"),
        ("gpt-4-turbo", "gpt", 0.7, 3, 0.75, "gpt-4o-mini"),
        ("gpt-3.5-turbo", "gpt", 0.5, 3, 0.75, "gpt-3.5-turbo"),
        ("nobody-knows-it", "default", 0.75, 3, 0.75, "nobody-knows-it"),
    ],
)
def test_the_shipped_profile_of_each_kind_of_model(model, name, high, keep, goal, writer):
    """Large, balanced, small, GPT, a small window, and anything else."""
    found = profile_for(model)
    assert (found.name, found.high, found.keep, found.goal, found.writer) == (name, high, keep, goal, writer)


def test_a_reduction_takes_away_the_goal():
    """The low mark follows from the high one."""
    assert profile_for("claude-opus-4-5").low == 0.24


def test_a_profile_of_ones_own_is_laid_over_the_shipped_one():
    """What it does not state comes from the kind of model."""
    found = profile_for(
        "claude-opus-4-5-20251101", {"claude-opus-4-5": {"threshold": 65, "writer": "gemini-2.5-flash"}}
    )
    assert (found.high, found.keep, found.writer) == (0.65, 5, "gemini-2.5-flash")


def test_a_profile_inherits_from_another():
    """Through several steps, the nearest statement wins."""
    own = {
        "gpt-5": {"inherits": "careful", "keep": 9},
        "careful": {"inherits": "small", "goal": 0.5, "keep": 1},
    }
    found = profile_for("gpt-5", own)
    assert (found.high, found.goal, found.keep) == (0.6, 0.5, 9)


def test_a_shipped_profile_can_be_changed_for_all_its_models():
    """What is not stated is as shipped."""
    found = profile_for("claude-opus-4-5", {"large": {"keep": 8}})
    assert (found.high, found.keep) == (0.8, 8)


def test_minus_one_inherits_the_global_mark(caplog):
    """Without a warning."""
    found = profile_for("gpt-5", {"gpt-5": {"threshold": -1}}, high=0.66)
    assert (found.high, caplog.text) == (0.66, "")


@pytest.mark.parametrize(("threshold", "high"), [(5, 0.05), (100, 1.0), (62.5, 0.625)])
def test_thresholds_from_5_to_100_hold(threshold, high):
    """Both ends included."""
    assert profile_for("gpt-5", {"gpt-5": {"threshold": threshold}}).high == high


@pytest.mark.parametrize("threshold", [4, 101, 0, -2, float("nan")])
def test_an_invalid_threshold_warns_and_falls_back(threshold, caplog):
    """To the global mark, and the warning says what was wrong."""
    with caplog.at_level(logging.WARNING, "windowsill"):
        found = profile_for("gpt-5", {"gpt-5": {"threshold": threshold}}, high=0.66)
    assert found.high == 0.66
    assert f"'gpt-5' has a threshold of {threshold}, not 5 to 100 percent or -1" in caplog.text


@pytest.mark.parametrize(
    ("own", "setting"),
    [
        ({"a": {"inherits": "b"}, "b": {"inherits": "a"}}, "profiles.a.inherits"),
        ({"a": {"inherits": "nobody"}}, "profiles.a.inherits"),
        ({"a": {"goal": 1.0}}, "profiles.a.goal"),
        ({"a": {"keep": -1}}, "profiles.a.keep"),
        ({"a": {"keep": "many"}}, "profiles.a.keep"),
        ({"a": {"treshold": 5}}, "profiles.a.treshold"),
        ({"a": 5}, "profiles.a"),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused_by_key(own, setting):
    """Circles, ancestors that are not there, ranges and kinds."""
    with pytest.raises(SettingError) as caught:
        profile_for("gpt-5", own, name="a")
    assert caught.value.setting == setting


def test_a_profile_that_is_asked_for_by_name_must_be_there():
    """The error lists those there are."""
    with pytest.raises(SettingError, match="'bold'; give one of: mine, large"):
        profile_for("gpt-5", {"mine": {}}, name="bold")
