"""The registry: a strategy by name, with settings, by dotted path, or as an object."""

import pytest

from support.sessions import opened, talk
from support.strategies import Mine, Sized
from windowsill import InputError, NotFoundError, SettingError, Strategy, strategies
from windowsill.config import Settings
from windowsill.store.memory import MemoryStore
from windowsill.strategies.sliding_window import SlidingWindow

pytestmark = pytest.mark.unit


def test_the_default_is_that_of_a_session():
    """With nothing stated."""
    assert strategies.get().name == Settings().strategy == "economy"


def test_names_are_sorted_and_each_can_be_built():
    """What the command line lists."""
    assert list(strategies.names()) == sorted(strategies.names())
    assert [strategies.get(name).name for name in strategies.names()] == list(strategies.names())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("sliding-window:keep=2", SlidingWindow(keep=2)),
        ("sliding-window:keep=2,quote=0.5", SlidingWindow(keep=2, quote=0.5)),
        ("sliding-window: keep = 2 , quote = 0.5", SlidingWindow(keep=2, quote=0.5)),
        ("sliding-window:", SlidingWindow()),
    ],
)
def test_settings_stand_behind_the_name(text, wanted):
    """As a user writes them on the command line."""
    assert strategies.get(text) == wanted


def test_settings_may_be_given_apart_and_win():
    """Over those behind the name."""
    assert strategies.get("sliding-window:keep=2,quote=0.5", {"keep": 7}) == SlidingWindow(keep=7, quote=0.5)


@pytest.mark.parametrize("path", ["support.strategies:Mine", "support.strategies.Mine"])
def test_a_dotted_path_is_a_strategy(path):
    """With a colon or a dot before the class."""
    assert type(strategies.get(path)) is Mine
    assert strategies.get(path, {"times": 4}).times == 4


def test_a_strategy_of_ones_own_may_be_a_value():
    """Its settings are read as the built-in ones are."""
    assert strategies.get("support.strategies:Sized", {"size": "8"}) == Sized(size=8)
    assert strategies.get("support.strategies:Sized:size=8,label=y") == Sized(size=8, label="y")


def test_an_object_is_given_back():
    """It was built by the user."""
    mine = Mine()
    assert strategies.get(mine) is mine
    assert isinstance(mine, Strategy)


def test_a_class_is_not_an_object():
    """Whoever forgot the parentheses is told, and not with an error about a name that is a class."""
    with pytest.raises(InputError, match="Mine"):
        strategies.get(Mine)


@pytest.mark.parametrize(
    "name",
    [
        "sliding",
        "no.such.module:Class",
        "support.strategies:Nobody",
        "Sliding-Window",
        ":",
        ".",
        "a:b:c",
        "..x:Y",
        "os.",
    ],
)
def test_an_unknown_strategy_is_named_with_those_there_are(name):
    """And how to name one's own."""
    with pytest.raises(NotFoundError, match=r"there is no strategy .*sliding-window.*dotted path"):
        strategies.get(name)


def test_a_module_that_cannot_be_imported_says_why(tmp_path, monkeypatch):
    """It is there, so `there is no strategy` alone would send its author looking in the wrong place."""
    (tmp_path / "halfway.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="no_such_dependency"):
        strategies.get("halfway:Mine")


@pytest.mark.parametrize(
    "text",
    [
        "sliding-window:keep=many",
        "sliding-window:keep=-1",
        "sliding-window:keep=2.5",
        "sliding-window:nothing=1",
        "sliding-window:keep",
        "sliding-window:quote=2",
    ],
)
def test_a_setting_that_is_wrong_is_refused(text):
    """The error is one of settings."""
    with pytest.raises(SettingError):
        strategies.get(text)


@pytest.mark.parametrize(("kind", "settings", "word"), [("Sized", {"size": "many"}, "size"), ("Mine", {"x": 1}, "x")])
def test_a_wrong_setting_of_ones_own_strategy_is_refused_by_name(kind, settings, word):
    """As those of a built-in one are."""
    with pytest.raises(SettingError, match=word):
        strategies.get(f"support.strategies:{kind}", settings)


@pytest.mark.parametrize("path", ["support.strategies:NoPlan", "collections:OrderedDict"])
def test_what_has_no_plan_is_no_strategy(path):
    """The error says what it needs."""
    with pytest.raises(InputError, match=r"is not a strategy; derive a class with a `name` and a `plan`"):
        strategies.get(path)


@pytest.mark.parametrize("path", ["os:system:command=touch {}", 'subprocess:Popen:args=["touch","{}"]'])
def test_what_is_no_strategy_is_not_even_called(path, tmp_path):
    """A settings file of somebody else may name any function or class that is installed."""
    with pytest.raises(InputError, match="is not a strategy"):
        strategies.get(path.replace("{}", str(tmp_path / "made")))
    assert list(tmp_path.iterdir()) == []


def test_the_settings_of_a_strategy_are_listed_with_their_defaults():
    """For the command line and for documentation."""
    assert strategies.settings_of("sliding-window") == {"keep": 4, "quote": 0.25}
    assert strategies.settings_of("support.strategies:Sized") == {"size": 3, "label": "x"}
    assert strategies.settings_of("support.strategies:Mine") == {}


def test_a_session_remembers_the_strategy_that_was_named():
    """With its settings, when it is opened again."""
    store = MemoryStore()
    opened(store, strategy="sliding-window:keep=9").close()
    again = opened(store)
    assert again.composer.strategy == SlidingWindow(keep=9)


def test_an_unknown_strategy_opens_no_session():
    """Nothing is written before it is known."""
    store = MemoryStore()
    with pytest.raises(NotFoundError):
        opened(store, strategy="nothing")
    assert store.sessions() == []


def test_a_session_uses_the_object_it_is_given():
    """A plug-in that never folds is helped out by the composer."""

    class Watching(Mine):
        seen = 0

        def plan(self, view, budget):
            self.seen += 1
            return super().plan(view, budget)

    mine = Watching()
    session = opened(strategy=mine)
    talk(session, 40)
    assert session.compose_sync().tokens <= 1_500
    assert mine.seen >= 1
