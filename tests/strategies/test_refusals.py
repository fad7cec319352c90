"""What is said when a strategy does not take its settings, and how text becomes what a setting wants."""

import pytest

from support.strategies import Picky
from windowsill import SettingError, strategies
from windowsill.config import load
from windowsill.strategies.registry import with_place

pytestmark = pytest.mark.unit

PATH = "support.strategies:Picky"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("must=-1", "setting '{}.must' is -1; give a number from 0 on"),
        ("must=many", "setting '{}.must' is 'many'; give another kind of value (Expected `int`, got `str`)"),
        ("must=1,lable=x", "setting '{}.lable' is 'x'; give label (if that was meant), or one of: must, share"),
        ("label=x", "setting '{}.must' is None; give a value: it has no default"),
        ("must=1,words=[1]", "setting '{}.words' is [1]; give another kind of value (Expected `str`, got `int`)"),
    ],
)
def test_the_setting_that_is_wrong_is_named_with_value_and_range(text, message):
    """Whatever is wrong with it."""
    with pytest.raises(SettingError) as caught:
        strategies.get(f"{PATH}:{text}")
    assert str(caught.value).startswith(message.format(PATH))


@pytest.mark.parametrize(
    ("text", "share"), [("0.5", 0.5), ("1.0", 1.0), ("400", 400), ("50%", "50%"), ("4k,50%", "4k,50%")]
)
def test_a_size_behind_a_name_is_the_size_it_looks_like(text, share):
    """A share stays a share; what is only text stays text, even if it looks like a number."""
    stated = f'"{text}"' if "," in text else text
    assert strategies.get(f"{PATH}:must=1,label=5,share={stated}") == Picky(must=1, label="5", share=share)


def test_a_table_of_a_file_reaches_the_strategy_as_it_is(tmp_path):
    """Shares, lists and texts with commas."""
    (tmp_path / "windowsill.toml").write_text(
        f"strategy = '{PATH}'\n[strategies.\"{PATH}\"]\nmust = 2\nshare = 0.5\nwords = ['a, b', 'c+d']\nlabel = 'x=y'\n"
    )
    line = load(folder=tmp_path, environ={}).settings.strategy
    assert strategies.get(line) == Picky(must=2, share=0.5, words=("a, b", "c+d"), label="x=y")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (
            "strategy = '{0}'\n[strategies.\"{0}\"]\nmust = -3",
            "{1}: setting 'strategies.{0}.must' is -3; give a number",
        ),
        ("strategy = '{0}'\n[strategies.\"{0}\"]\nlable = 4", "{1}: setting 'strategies.{0}.lable' is 4; give label"),
        ("strategy = '{0}:must=-3'", "{1}: setting '{0}.must' is -3; give a number"),
    ],
)
def test_an_error_says_in_which_file_the_setting_stands(text, start, tmp_path):
    """In the table of the strategy, or behind its name."""
    place = tmp_path / "windowsill.toml"
    place.write_text(text.format(PATH))
    loaded = load(folder=tmp_path, environ={})
    with pytest.raises(SettingError) as caught:
        strategies.get(loaded.settings.strategy)
    assert str(with_place(caught.value, loaded)).startswith(start.format(PATH, place))


def test_an_error_about_code_has_no_place(tmp_path):
    """It is where the error is raised."""
    error = SettingError("x.y", 1, "2")
    assert with_place(error, load({"strategy": "x:y=1"}, folder=tmp_path, environ={})) is error
