"""Most conversations need no mending, and are recognised without being rebuilt."""

from operator import is_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations import (
    broken_anthropic,
    broken_openai,
    call,
    result,
    sound_anthropic,
    sound_openai,
    tool,
    use,
)
from windowsill import providers
from windowsill.history.mender import mend
from windowsill.history.repair import ids_if_sound

pytestmark = pytest.mark.unit

RULES = {name: providers.get(name).rules for name in providers.names()}
ASKED = {"role": "user", "content": "go on"}


def ids(native, format, **options):
    messages = providers.read_request(native, format=format).messages
    return ids_if_sound(messages, RULES[format], **{"sent": (), "used": frozenset(), "first": True, **options})


def test_a_turn_with_parallel_calls_is_sound_in_both_formats():
    """Calls, and right after them their results in order: one message for Anthropic, one each for OpenAI."""
    anthropic = [ASKED, {"role": "assistant", "content": [use("a"), use("b")]}]
    anthropic += [{"role": "user", "content": [result("a"), result("b")]}]
    openai = [ASKED, {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]}, tool("a"), tool("b")]
    assert ids(anthropic, "anthropic") == {"a", "b"}
    assert ids(openai, "openai") == {"a", "b"}


def test_what_may_need_mending_is_not_taken_for_sound():
    """An open call, an id used before, results out of order, an assistant who begins: all go the long way."""
    calls = {"role": "assistant", "content": [use("a"), use("b")]}
    answers = {"role": "user", "content": [result("a"), result("b")]}
    assert ids([ASKED, calls], "anthropic") is None
    assert ids([ASKED, calls, answers], "anthropic", used={"a"}) is None
    assert ids([ASKED, calls, {"role": "user", "content": [result("b"), result("a")]}], "anthropic") is None
    assert ids([calls, answers], "anthropic") is None
    assert ids([calls, answers], "anthropic", first=False) == {"a", "b"}
    assert ids([ASKED, calls, answers], "anthropic", sent={2}) is None


anthropic = (sound_anthropic() | broken_anthropic).map(
    lambda native: providers.read_request(native, format="anthropic")
)
openai = (sound_openai() | broken_openai).map(lambda native: providers.read_request(native, format="openai"))


@given(
    anthropic | openai,
    st.sampled_from(sorted(RULES)),
    st.sets(st.integers(0, 10), max_size=2),
    st.sets(st.sampled_from(["c1", "t1", "toolu_1"])),
    st.booleans(),
)
def test_what_is_taken_for_sound_comes_out_of_mending_as_it_went_in(request_, format, sent, used, first):
    """Looking through a conversation and mending it agree."""
    messages, rules = request_.messages, RULES[format]
    found = ids_if_sound(messages, rules, sent=sent, used=used, first=first)
    if found is not None:
        mended = mend(messages, rules, sent=sent, used=used, first=first)
        assert mended.repairs == ()
        assert len(mended.messages) == len(messages)
        assert all(map(is_, mended.messages, messages))
        assert mended.ids == found
