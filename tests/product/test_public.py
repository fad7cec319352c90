"""The public names: one list, all of them there, nothing loaded before it is used."""

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import windowsill
from support.stores import child_env

pytestmark = pytest.mark.unit

HEAVY = ("splintr", "sqlite3", "genai_prices", "rich", "click", "tomllib")


def loaded(code):
    """Return which heavy modules a fresh interpreter has loaded after this code."""
    ask = f"{code}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", ask], env=child_env(), text=True, capture_output=True, check=True)
    return done.stdout.strip()


def test_all_is_sorted_and_has_no_name_twice():
    """So that a reader finds a name, and a change shows."""
    assert list(windowsill.__all__) == sorted(set(windowsill.__all__))


def test_all_is_written_out_for_type_checkers():
    """A list that is computed is empty for them; this one has every name that is loaded on use."""
    source = ast.parse(Path(windowsill.__file__).read_text())
    (value,) = [node.value for node in source.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"]
    assert ast.literal_eval(value) == sorted(windowsill._HOMES)


@pytest.mark.parametrize("name", windowsill.__all__)
def test_every_public_name_can_be_imported(name):
    """And says the same name itself."""
    assert getattr(windowsill, name).__name__ == name


def test_a_star_import_brings_every_public_name():
    """No name of the list is missing."""
    found = {}
    exec("from windowsill import *", found)
    assert set(windowsill.__all__) <= found.keys()


def test_dir_lists_the_public_names():
    """For completion at a prompt."""
    assert set(windowsill.__all__) | {"__version__"} <= set(dir(windowsill))


def test_every_error_can_be_caught_by_its_public_name():
    """Whatever is raised on purpose is public, with the root."""
    values = {name: value for name, value in vars(windowsill.errors).items() if isinstance(value, type)}
    errors = {name for name, value in values.items() if issubclass(value, Exception)}
    assert "WindowsillError" in errors <= set(windowsill.__all__)
    assert all(issubclass(getattr(windowsill, name), windowsill.WindowsillError) for name in errors)


ERRORS = [
    windowsill.WindowsillError("it broke", remedy="mend it", part="door"),
    windowsill.FormatError("not JSON", where="line 3"),
    windowsill.SettingError("keep", 0, "1 or more").at("a file"),
    windowsill.NotFoundError("no such fold", fold="f1"),
    windowsill.BudgetError("too large", wanted=9, available=5, parts={"tools": 9}),
    windowsill.ConflictError("s", 1, 2),
    windowsill.LockedError("s", "somebody"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_can_be_sent_to_another_process(error):
    """With its text and all that it carries."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.args, vars(copy)) == (type(error), str(error), error.args, vars(error))


def test_a_name_that_is_not_public_is_no_attribute():
    """With the error Python itself would give."""
    with pytest.raises(AttributeError, match="module 'windowsill' has no attribute 'nothing'"):
        _ = windowsill.nothing
    assert not hasattr(windowsill, "Nothing")


def test_importing_the_package_loads_nothing_heavy():
    """No tokenizer, no database, no prices, no terminal."""
    assert loaded("import windowsill") == "[]"


def test_looking_at_the_names_loads_nothing_heavy():
    """Completion at a prompt costs nothing either."""
    assert loaded("import windowsill; dir(windowsill); windowsill.__all__; windowsill.__version__") == "[]"


def test_errors_and_values_load_nothing_heavy():
    """Catching an error or building a message needs no tokenizer and no database."""
    assert loaded("from windowsill import WindowsillError, Message, Usage, Tool") == "[]"


def test_a_session_in_memory_needs_no_database_and_no_terminal():
    """The table of models is read, and nothing beside it."""
    settings = "store=':memory:', budget=500, tokenizer='bytes/4'"
    assert loaded(f"from windowsill import Session\nSession.open('s', {settings}).add('hi')") == "['tomllib']"
