"""Settings from WINDOWSILL_* variables."""

import pytest

from windowsill import SettingError
from windowsill.config.load import from_environment

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("WINDOWSILL_MODEL", "gpt-5", "gpt-5"),
        ("WINDOWSILL_WINDOW", "200000", 200_000),
        ("WINDOWSILL_HIGH", "0.75", 0.75),
        ("WINDOWSILL_HIGH", "1.0", 1.0),
        ("WINDOWSILL_HIGH", "75%", "75%"),
        ("WINDOWSILL_BUDGET", "200k,80%", "200k,80%"),
        ("WINDOWSILL_BUDGET", "40000", 40_000),
        ("WINDOWSILL_BUDGET", "40k", 40_000),
        ("WINDOWSILL_WAIT", "2.5", 2.5),
        ("WINDOWSILL_STRATEGY", "mask:keep=2+condense", "mask:keep=2+condense"),
        ("WINDOWSILL_STRATEGIES", '{"mask": {"keep": 2}}', {"mask": {"keep": 2}}),
    ],
)
def test_a_variable_is_read_as_its_setting_wants_it(variable, text, value):
    """Numbers, shares, sizes, names and tables."""
    name = variable.removeprefix("WINDOWSILL_").lower()
    assert from_environment({variable: text, "PATH": "/bin"}) == ({name: value}, [])


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("WINDOWSILL_WINDOW", "large"),
        ("WINDOWSILL_LOW", "much"),
        ("WINDOWSILL_MODELS", "x=1"),
        ("WINDOWSILL_MODELS", '{"x": 1}'),
    ],
)
def test_a_wrong_value_is_told_with_its_variable(variable, text):
    """And with the value."""
    with pytest.raises(SettingError, match=f"^{variable}: setting ") as caught:
        from_environment({variable: text})
    assert repr(text) in str(caught.value)


def test_variables_for_other_things_are_no_settings():
    """One that nobody knows is told, not refused: a newer version may know it."""
    values, notes = from_environment({"WINDOWSILL_HOME": "/x", "WINDOWSILL_DEBUG": "1", "WINDOWSILL_HIHG": "1"})
    assert values == {}
    assert notes == ["the environment variable WINDOWSILL_HIHG is not a setting and was passed over"]


def test_an_empty_variable_states_nothing():
    """As in shells."""
    assert from_environment({"WINDOWSILL_WINDOW": " "}) == ({}, [])
