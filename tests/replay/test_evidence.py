from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli_calls import anthropic_turns
from windowsill import providers
from windowsill.replay.evidence import Evidence, KeptEvidence, needed_values, quoted_lines, text_of_message
from windowsill.text import strings

pytestmark = pytest.mark.unit

ANTHROPIC = providers.get("anthropic")


def message(value):
    return ANTHROPIC.read_message(json.dumps(value).encode(), "")


def asked(**arguments):
    use = {"type": "tool_use", "id": "c", "name": "read", "input": arguments}
    return message({"role": "assistant", "content": [use]})


def output(text):
    return message({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": text}]})


def request(*texts):
    return json.dumps({"messages": [{"role": "user", "content": text} for text in texts]}).encode()


def values_of(answer):
    return [need.text for need in needed_values(answer)]


def test_values_are_words_and_numbers_of_some_length():
    """Short values are not evidence; nested ones and numbers are, in the order they are written."""
    call = asked(a="main.py", b="abc", e={"f": ["deep-value", 7, None, True]}, g="y" * 120, h=12_345)
    assert values_of(call) == ["main.py", "deep-value", "y" * 120, "12345"]


def test_of_a_longer_text_the_names_are_values():
    """Paths, ids and names in a command or a query; plain words and what is too short are not."""
    call = asked(command="cd /srv/app && pytest tests/test_door.py -k opens --id=A7X9Q someName", query="z" * 121)
    assert values_of(call) == ["srv/app", "tests/test_door.py", "A7X9Q", "someName"]


@pytest.mark.parametrize("key", ["content", "new_string", "description", "subagent_type", "limit"])
def test_what_the_model_composes_itself_is_no_value(key):
    """The history need not hold the text of a new file, a description or a choice from a fixed list."""
    assert values_of(asked(**{key: "src/door.py"}, inner={key: ["src/door.py"]})) == []


def test_value_never_seen_before_is_not_needed():
    """What the model made up itself cannot be lost."""
    assert Evidence(ANTHROPIC).measure(asked(path="main.py"), request("hi")) == KeptEvidence()


def test_value_that_still_stands_in_the_request_is_kept():
    """A value from the user's words that the request shows counts as kept, and not as one of the outputs'."""
    evidence = Evidence(ANTHROPIC)
    evidence.show(message({"role": "user", "content": "look at main.py"}))
    assert evidence.measure(asked(path="main.py"), request("look at main.py")) == KeptEvidence(1, 1, 0, 0)


def test_value_counts_once_for_an_answer():
    """A value that two arguments of an answer name is needed once."""
    evidence = Evidence(ANTHROPIC)
    evidence.show(message({"role": "user", "content": "look at main.py"}))
    assert evidence.measure(asked(a="main.py", b="main.py"), request("main.py")) == KeptEvidence(1, 1, 0, 0)


def test_value_that_the_request_lost_is_not_kept():
    """A value that only an output had shown, and the request does not, is lost."""
    evidence = Evidence(ANTHROPIC)
    evidence.show(output("found main.py"))
    assert evidence.measure(asked(path="main.py"), request("a marker")) == KeptEvidence(1, 0, 1, 0)


def test_earlier_arguments_are_a_source_of_their_own():
    """A value that an earlier call named does not count as known from outputs only."""
    evidence = Evidence(ANTHROPIC)
    evidence.show(asked(path="main.py"))
    evidence.show(output("main.py has 3 lines"))
    assert evidence.measure(asked(path="main.py"), request("main.py")) == KeptEvidence(1, 1, 0, 0)


def test_system_prompt_of_the_request_counts():
    """A value that stands in the system prompt is there."""
    evidence = Evidence(ANTHROPIC)
    evidence.show(output("main.py"))
    body = json.dumps({"system": "use main.py", "messages": []}).encode()
    assert evidence.measure(asked(path="main.py"), body) == KeptEvidence(1, 1, 1, 1)


def test_quotes_are_compared_as_they_are():
    """Values are compared as text, not as escaped JSON."""
    evidence = Evidence(ANTHROPIC)
    evidence.show(output('say "hi"'))
    assert evidence.measure(asked(text_='"hi"'), request('now "hi"')) == KeptEvidence(1, 1, 1, 1)


def test_words_of_openai_arguments_are_read_from_their_json():
    """OpenAI writes arguments as text in text: what stands in them is found all the same."""
    function = {"name": "run", "arguments": json.dumps({"command": 'echo "a b"'})}
    value = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    assert text_of_message(providers.get("openai").read_message(json.dumps(value).encode(), "")) == 'echo "a b"'


def test_unreduced_requests_keep_everything():
    """When all of the history is sent, every needed value stands in the request."""
    evidence, counts = Evidence(ANTHROPIC), []
    history = []
    for value in anthropic_turns(10):
        read = message(value)
        if value["role"] == "assistant":
            counts.append(evidence.measure(read, json.dumps({"messages": history}).encode()))
        evidence.show(read)
        history.append(value)
    assert [sum(each.needed for each in counts), sum(each.kept for each in counts)] == [10, 10]
    assert [sum(each.needed_from_outputs for each in counts), sum(each.kept_from_outputs for each in counts)] == [9, 9]


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_strings_come_in_the_order_they_are_written(value):
    """Every text and number of a value is found once, in order, keys left out."""

    def walk(each):
        if isinstance(each, str):
            return [each]
        if not isinstance(each, dict | list):
            return [repr(each)]
        inside = each.values() if isinstance(each, dict) else each
        return [text for item in inside for text in walk(item)]

    assert list(strings(value)) == walk(value)


BODIES = {
    "anthropic": {"system": "Use cave-1.", "messages": [{"role": "user", "content": "Read cave-0."}]},
    "openai": {"messages": [{"role": "system", "content": "Use cave-1."}, {"role": "user", "content": "Read cave-0."}]},
    "responses": {"instructions": "Use cave-1.", "input": [{"role": "user", "content": "Read cave-0."}]},
    "gemini": {
        "systemInstruction": {"parts": [{"text": "Use cave-1."}]},
        "contents": [{"role": "user", "parts": [{"text": "Read cave-0."}]}],
    },
}


@pytest.mark.parametrize("format", BODIES)
def test_request_of_every_format_is_looked_into(format):
    """Both what was said and the system prompt, wherever the format keeps them."""
    evidence = Evidence(providers.get(format))
    evidence.show(message({"role": "user", "content": "cave-0 cave-1 cave-2"}))
    found = evidence.measure(asked(a="cave-0", b="cave-1", c="cave-2"), json.dumps(BODIES[format]).encode())
    assert (found.needed, found.kept) == (3, 2)


def test_lines_that_an_edit_quotes_are_needed_where_they_were_seen():
    """Each by itself: of two lines that a file had shown, the request has one."""
    evidence = Evidence(ANTHROPIC)
    evidence.show(output("1  def open(self):\n2      return self._door\n"))
    edit = asked(file_path="a", old_string="  def open(self):\n      return self._door\n      made_up = 1\n")
    kept = evidence.measure(edit, request("def open(self): is the only line left"))
    assert (kept.needed_lines, kept.kept_lines) == (2, 1)


def test_a_patch_quotes_what_it_takes_away_and_shows_around():
    """What it adds was not there before; headers are no lines of the file, and short lines stand everywhere."""
    patch = "--- a/x.py\n+++ b/x.py\n keep = 1\n-    return old_value\n+    return new_value\n"
    assert [need.text for need in quoted_lines(asked(patch=patch))] == ["return old_value"]


def test_what_was_not_in_the_request_is_listed_with_its_places():
    """The newest message that shows it and the tool there, the call that needed it, and whether a search finds it."""
    evidence = Evidence(ANTHROPIC)
    evidence.show(message({"role": "user", "content": "look at main.py, then at the-door"}), 0)
    evidence.show(asked(path="main.py"), 1)
    evidence.show(output("found main.py and under it\n  def open_the_door(self):"), 2)
    edit = asked(file_path="main.py", old_string="def open_the_door(self):", door="the-door")
    evidence.measure(edit, request("a marker"), 3, lambda text: text == "main.py")
    assert [msgspec.structs.astuple(loss) for loss in evidence.losses] == [
        ("value", "main.py", "read", 3, 2, "output of read", True),
        ("value", "open_the_door", "read", 3, 2, "output of read", False),
        ("value", "the-door", "read", 3, 0, "user", False),
        ("line", "def open_the_door(self):", "read", 3, 2, "output of read", False),
    ]


def test_value_of_the_system_prompt_has_no_message():
    """It stood before all of them."""
    evidence = Evidence(ANTHROPIC)
    evidence.show(message({"role": "user", "content": "Use door-7."}))
    evidence.measure(asked(path="door-7"), request("a marker"), 5)
    assert [(loss.stood_in, loss.needed_in) for loss in evidence.losses] == [(None, 5)]
