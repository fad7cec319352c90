import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.models.catalog import spellings

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("claude-opus-4-5", "claude-opus-4-5"),
        ("Claude-Sonnet-4.5", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5:beta", "claude-sonnet-4-5"),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("ft:gpt-4o-mini-2024-07-18:acme::abc", "gpt-4o-mini"),
        ("gemini-2.5-flash-preview-09-2025", "gemini-2-5-flash"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("gpt-5-foo-unknown-new", "gpt-5-foo-unknown-new"),
        ("gpt-4o-v2", "gpt-4o-v2"),
    ],
)
def test_only_host_and_date_are_taken_away(name, last):
    """The plainest spelling lacks where a model is served and when it was made, and nothing else."""
    assert list(spellings(name))[-1] == last


def test_literal_spellings_come_first():
    """A dated name is tried as it is before its date is dropped."""
    assert list(spellings("mistral-large-2512")) == ["mistral-large-2512", "mistral-large-2512", "mistral-large"]


@given(st.text())
def test_any_name_has_spellings(name):
    """No name makes the search fail or go on for ever."""
    assert list(spellings(name))
