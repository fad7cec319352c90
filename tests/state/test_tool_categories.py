"""What a tool does, told from its category or its name."""

from __future__ import annotations

import pytest

from support.offered_tools import tool
from windowsill.errors import InputError
from windowsill.state.tools import ToolOffer
from windowsill.state.tools.projection import category_of, first_word

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "name", ["read", "readFile", "read_file", "ReadFile", "read-file", "READ_FILE", "_read", "read2"]
)
def test_the_first_word_counts(name):
    """However the name is spelled."""
    assert first_word(name) == "read"


@pytest.mark.parametrize(
    ("name", "word"), [("readfile", "readfile"), ("HTTPGet", "http"), ("読む", "読む"), ("", ""), ("2fa", "2")]
)
def test_a_word_is_not_cut(name, word):
    """One word is one word."""
    assert first_word(name) == word


@pytest.mark.parametrize(
    ("category", "name", "found"),
    [
        ("readFile", "x", "read"),
        ("read", "deleteFile", "read"),
        ("", "readFile", "uncategorised"),
        ("", "bash", "uncategorised"),
        ("general", "deleteFile", "general"),
        ("rollback", "readFile", "rollback"),
    ],
)
def test_a_stated_category_comes_before_the_name(category, name, found):
    """A tool that states none may change things, whatever its name."""
    assert category_of(ToolOffer(tool(name), category)) == found


def test_categories_of_the_settings_are_known_too():
    """A category that a user made up is taken as it is."""
    assert category_of(ToolOffer(tool("x"), "rollbackRelease"), {"rollback"}) == "rollback"
    assert category_of(ToolOffer(tool("x"), "readFile"), {"readFile", "read"}) == "readFile"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"permissions": ("root",)}, "tool 'x', permissions: there is no permission 'root'; use read, write, execute"),
        ({"permissions": "admin"}, "give a list"),
        ({"environments": ("test",)}, "tool 'x', environments: there is no environment 'test'; use dev, staging, prod"),
    ],
)
def test_unknown_facts_are_told(facts, said):
    """When the tool is offered, with the words that are known."""
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        ToolOffer(tool("x"), **facts)


def test_production_is_prod():
    """An environment has one name."""
    assert ToolOffer(tool("x"), environments=("production", "prod", "dev")).environments == ("prod", "dev")
