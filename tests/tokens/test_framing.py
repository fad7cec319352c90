import pytest

from windowsill.errors import InputError
from windowsill.tokens import FRAMINGS, framing

pytestmark = pytest.mark.unit


def test_names_are_those_of_the_providers():
    """There is a framing for each provider with rules of its own, and a generic one."""
    assert sorted(FRAMINGS) == ["anthropic", "gemini", "generic", "openai", "openai-legacy"]


def test_published_numbers_of_openai():
    """OpenAI publishes three tokens for each message, one for its role, and three for the start of the answer."""
    assert (framing("openai").message, framing("openai").reply) == (4, 3)


def test_unknown_framing_lists_the_known_ones():
    """An unknown framing is refused with the names that would do."""
    with pytest.raises(InputError, match=r"no framing 'x'.*anthropic"):
        framing("x")
