"""Folder names of sessions: every file system takes them, and no two sessions share one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.session.snapshots import folder_name

pytestmark = pytest.mark.unit

AWKWARD = [
    "/etc/passwd",
    "..",
    ".",
    "a/../b",
    "a\\b",
    "CON",
    "日本語の会話",
    "x" * 500,
    " ",
    "a\nb",
    "a.json",
    "\ud800",
]


def test_a_plain_name_can_be_recognised():
    """A person who looks for it finds it."""
    assert folder_name("Support #42").startswith("support-42-")


@pytest.mark.parametrize("session", AWKWARD)
def test_an_awkward_name_is_safe(session):
    """Nothing but lower-case letters, digits and hyphens, and never long."""
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", folder_name(session))
    assert len(folder_name(session)) <= 61


@given(st.text(max_size=60), st.text(max_size=60))
def test_two_sessions_have_two_folders(one, other):
    """Whatever their names are, and whether or not a file system tells cases apart."""
    assert (folder_name(one) == folder_name(other)) == (one == other)


@pytest.mark.parametrize(("one", "other"), [("A", "a"), ("a/b", "a-b"), ("x" * 499, "x" * 500), ("a ", "a")])
def test_names_that_look_alike_are_told_apart(one, other):
    """The readable part may be the same; the rest is not."""
    assert folder_name(one) != folder_name(other)
