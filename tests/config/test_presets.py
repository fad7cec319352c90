"""Presets: marks, and a budget where no model says how large its window is."""

import pytest

from windowsill import Session, SettingError
from windowsill.config import PRESETS, Preset, Settings, with_changes
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "tokens", "high", "low"),
    [("balanced", 8_000, 0.8, 0.7), ("conservative", 6_000, 0.6, 0.5), ("aggressive", 12_000, 0.9, 0.8)],
)
def test_the_three_presets_have_the_specified_numbers(name, tokens, high, low):
    """Tokens, where it is reduced, and how far."""
    assert PRESETS[name] == Preset(tokens, high, low)
    settings = with_changes(Settings(), {"preset": name})
    assert (settings.budget, settings.high, settings.low) == (tokens, high, low)


def test_a_preset_composes_without_a_model():
    """Its tokens are the budget, and its marks are shares of them."""
    with Session.open("s", preset="conservative", store=MemoryStore()) as session:
        session.add("hi")
        assert session.compose_sync().report.limit == 6_000


def test_with_a_known_model_the_window_comes_from_the_model():
    """Only the marks are the preset's."""
    settings = with_changes(Settings(), {"preset": "balanced", "model": "gpt-5"})
    assert (settings.budget, settings.window, settings.high) == (None, None, 0.8)


@pytest.mark.parametrize("stated", [{"window": 50_000}, {"budget": 5_000}])
def test_a_stated_size_wins_over_the_preset(stated):
    """With an unknown model too."""
    settings = with_changes(Settings(), {"preset": "balanced", "model": "nobody-knows-it", **stated})
    assert {name: getattr(settings, name) for name in stated} == stated
    assert settings.budget in (None, 5_000)


def test_a_stated_mark_wins_over_the_preset():
    """The other one is the preset's."""
    settings = with_changes(Settings(), {"preset": "balanced", "low": 0.3})
    assert (settings.high, settings.low) == (0.8, 0.3)


def test_the_assumed_budget_goes_when_a_known_model_comes():
    """And comes back in the size of another preset when none is known."""
    before = with_changes(Settings(), {"preset": "balanced"})
    assert with_changes(before, {"model": "gpt-5"}).budget is None
    assert with_changes(before, {"model": "gpt-5", "budget": 8_000}).budget == 8_000
    assert with_changes(before, {"preset": "aggressive"}).budget == 12_000
    assert with_changes(before, {"overhead": 3}).budget == 8_000


def test_an_unknown_preset_is_refused_with_those_there_are():
    """By name."""
    with pytest.raises(SettingError, match="'bold'; give one of: balanced, conservative, aggressive"):
        with_changes(Settings(), {"preset": "bold"})
