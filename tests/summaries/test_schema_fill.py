"""A JSON object filled by its schema."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.messages import Message, ToolUse, text_message
from windowsill.summaries.schema_fill import fill, fits

pytestmark = pytest.mark.unit

BOOKING = {
    "type": "object",
    "properties": {
        "destination": {"type": "string"},
        "date": {"type": "string", "format": "date"},
        "seats": {"type": "integer", "minimum": 1, "maximum": 9},
        "cabin": {"enum": ["economy", "business"]},
        "email": {"type": "string", "format": "email"},
        "insured": {"type": "boolean"},
        "extras": {"type": "array", "items": {"type": "string"}},
        "contact": {"type": "object", "properties": {"phoneNumber": {"type": "string"}}},
        "name": {"type": "string", "title": "氏名"},
    },
}


def filled(*words, before=None):
    return fill(BOOKING, [text_message("user", text) for text in words], before or {})


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("Destination: Kyoto", {"destination": "Kyoto"}),
        ("The destination is Kyoto. Thanks!", {"destination": "Kyoto"}),
        ("I want the date to be March 5th, 2027", {"date": "2027-03-05"}),
        ("日付 date は2027年3月5日です", {"date": "2027-03-05"}),
        ("we need 3 seats", {"seats": 3}),
        ("Business class please", {"cabin": "business"}),
        ("mail me at ann@example.com", {"email": "ann@example.com"}),
        ("insured: yes", {"insured": True}),
        ("extras: meal, wifi and legroom", {"extras": ["meal", "wifi", "legroom"]}),
        ("phone number: 555-0101", {"contact": {"phoneNumber": "555-0101"}}),
        ("氏名\uff1a田中花子", {"name": "田中花子"}),
        ("seats: 40", {}),
        ("what a nice day", {}),
    ],
)
def test_a_value_is_taken_from_what_was_said(words, state):
    """By name, by kind, within bounds, and never guessed."""
    assert filled(words) == state


def test_what_was_said_last_counts_and_what_was_not_said_stays():
    """Earlier values stay until something newer is said."""
    assert filled("destination: Nara", "destination: Osaka", before={"seats": 2}) == {
        "destination": "Osaka",
        "seats": 2,
    }


def test_arguments_of_a_call_fill_properties_of_their_name():
    """What the assistant understood stands in its calls; a wrong shape is left aside."""
    call = ToolUse(
        id="c", name="book", arguments='{"destination": "Kobe", "seats": "two", "contact": {"phoneNumber": "1"}}'
    )
    assert fill(BOOKING, [Message(role="assistant", blocks=(call,))], {}) == {
        "destination": "Kobe",
        "contact": {"phoneNumber": "1"},
    }


def test_the_order_is_the_schemas():
    """The same values give the same bytes."""
    assert list(filled("cabin: economy\ndestination: Kyoto")) == ["destination", "cabin"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
rules = st.dictionaries(
    st.sampled_from(
        ["type", "enum", "format", "minimum", "maximum", "pattern", "items", "properties", "title", "const"]
    ),
    json_values | st.sampled_from(["string", "integer", "number", "array", "object", "date", "email"]),
    max_size=4,
)


@given(st.dictionaries(st.text(max_size=5), rules, max_size=3), st.text(max_size=60))
def test_no_schema_and_no_words_make_it_raise(properties, words):
    """Whatever the schema holds, and every value it finds fits its rule."""
    found = fill({"properties": properties}, [text_message("user", words + "\n" + ": 1\n".join(properties))], {})
    assert all(fits(properties[name], value) or "properties" in properties[name] for name, value in found.items())


@pytest.mark.parametrize(
    "argument",
    [
        "[" * 500 + "]" * 500,
        '{"x":' * 300 + "1" + "}" * 300,
        str(2**70),
        '"' + "a" * 9_000 + '"',
        "[" + "1," * 900 + "1]",
    ],
)
def test_arguments_that_cannot_be_kept_leave_the_state_as_it_was(argument):
    """Too deep, too large, or a number that the journal cannot hold."""
    call = Message(role="assistant", blocks=(ToolUse(id="c", name="book", arguments=f'{{"seat": {argument}}}'),))
    assert fill({"properties": {"seat": {}}}, [call], {"seat": "1A"}) == {"seat": "1A"}


def test_a_text_full_of_dots_is_searched_for_addresses_once():
    """An expression that starts anew at each letter would take minutes."""
    schema = {"properties": {"email": {"type": "string", "format": "email"}}}
    assert fill(schema, [text_message("user", "a." * 10_000), text_message("user", "to a.b@c.org")], {}) == {
        "email": "a.b@c.org"
    }


@pytest.mark.parametrize(("value", "expected"), [("Kyoto", True), (5, False)])
def test_a_pattern_of_another_dialect_is_passed_over(value, expected):
    """The rest of its rule counts."""
    assert fits({"type": "string", "pattern": r"^\p{L}+$"}, value) is expected


def test_a_rule_that_cannot_be_read_demands_nothing():
    """A schema is the user's: what is wrong with it costs no value."""
    assert fits({"type": 3, "enum": 5}, "Kyoto")
