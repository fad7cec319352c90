"""A session's settings: refused when out of range, kept with the session, read again as they were."""

import pytest

from windowsill import InputError, Session, SettingError, UnknownModelError
from windowsill.config import Settings, StatedSettings, with_changes
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("stated", "setting"),
    [
        ({"window": 0}, "window"),
        ({"window": -5}, "window"),
        ({"window": "8000"}, "window"),
        ({"overhead": -1}, "overhead"),
        ({"overhead": "much"}, "overhead"),
        ({"budget": 0}, "budget"),
        ({"budget": "much"}, "budget"),
        ({"budget": b"4k"}, "budget"),
        ({"high": 1.5e400}, "high"),
        ({"low": 0.9}, "low"),
        ({"low": 2.0}, "low"),
        ({"high": 80.0}, "high"),
        ({"warn": -1}, "warn"),
        ({"warn": 0}, "warn"),
        ({"warn": float("inf")}, "warn"),
        ({"wait": -1.0}, "wait"),
        ({"wait": float("inf")}, "wait"),
        ({"wait": float("nan")}, "wait"),
        ({"low": float("nan")}, "low"),
        ({"model": 5}, "model"),
        ({"tokenizer": 5}, "tokenizer"),
        ({"models": [1]}, "models"),
        ({"format": 7}, "format"),
        ({"strategy": 7}, "strategy"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_value(stated, setting):
    """Every bad value is a SettingError that says which one, never an error of Python's."""
    with pytest.raises(SettingError) as caught:
        with_changes(Settings(), stated)
    assert caught.value.setting == setting
    assert repr(stated[setting]) in str(caught.value)


@pytest.mark.parametrize(
    "stated",
    [
        {"high": 120_000},
        {"high": "120k", "low": "25%"},
        {"high": 0.8, "low": 40_000},
        {"high": 120_000, "model": "gpt-5"},
        {"high": 6_000, "low": 0.5, "budget": 8_000},
    ],
)
def test_one_mark_in_tokens_and_one_as_a_share_fit_together(stated):
    """They are compared where the window is known, not before."""
    settings = with_changes(Settings(), stated)
    assert {name: getattr(settings, name) for name in stated} == stated


@pytest.mark.parametrize(
    "stated", [{"high": 6_000, "low": 0.9, "budget": 8_000}, {"high": 400, "low": 0.5, "window": 900}]
)
def test_where_the_size_is_known_they_are_compared(stated):
    """The low one is above the high one there."""
    with pytest.raises(SettingError, match="mark"):
        with_changes(Settings(), stated)


def test_what_is_not_stated_stays_as_it_was():
    """`None` means not stated."""
    before = Settings(model="gpt-5", budget=5_000)
    assert with_changes(before, {"model": None, "budget": 6_000}) == Settings(model="gpt-5", budget=6_000)


@pytest.mark.parametrize("size", [4_000, 0.5, 1.0, "50%", "4k", "4k,50%", (4_000, 0.5), (0.5, 4_000), ("4k", "50%")])
def test_every_size_that_is_accepted_is_read_again(size):
    """A session that opened once opens again with the same limit."""
    store = MemoryStore()
    with Session.open("s", window=8_000, budget=size, store=store) as session:
        session.add("hi")
        limit = session.compose_sync().report.limit
    with Session.open("s", store=store) as again:
        assert again.compose_sync().report.limit == limit


def test_what_was_stated_once_need_not_be_stated_again():
    """All of it is kept with the session."""
    store = MemoryStore()
    stated = {"model": "gpt-5", "budget": 9_000, "high": 0.7, "low": "40%", "overhead": 12, "tokenizer": "bytes/4"}
    with Session.open("s", strategy="sliding-window:keep=2", store=store, **stated) as session:
        before = session.settings
    with Session.open("s", store=store) as again:
        assert again.settings == before
        assert again.composer.strategy.keep == 2


@pytest.mark.parametrize(
    ("stated", "error"),
    [
        ({"strategy": "nonsense"}, InputError),
        ({"strategy": "sliding-window:keep=-1"}, SettingError),
        ({"format": "nonsense"}, InputError),
        ({"tokenizer": "nonsense"}, InputError),
    ],
)
def test_what_is_refused_is_not_kept(stated, error):
    """A session opens again as before after a call that could not be served."""
    store = MemoryStore()
    Session.open("s", window=8_000, store=store).close()
    with pytest.raises(error):
        Session.open("s", store=store, **stated)
    with Session.open("s", store=store) as again:
        assert again.settings == Settings(window=8_000)


@pytest.mark.parametrize(
    ("stated", "error"),
    [({"window": 8_000, "strategy": "nonsense"}, InputError), ({"model": "nobody-knows-it"}, UnknownModelError)],
)
def test_a_new_session_that_is_refused_does_not_exist(stated, error):
    """Nothing is written for a strategy or a model that is not there."""
    store = MemoryStore()
    with pytest.raises(error):
        Session.open("s", store=store, **stated)
    assert store.info("s") is None


def test_every_setting_can_be_stated_by_its_name():
    """Type checkers know all of them: the strategy and the writer, which may be objects, are arguments of their own."""
    known = set(StatedSettings.__annotations__)
    assert known == {*Settings.__struct_fields__, "strategies"} - {"strategy", "writer"}
