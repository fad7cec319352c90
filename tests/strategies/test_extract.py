"""A JSON object by the user's schema in the place of the conversation, updated after each user input."""

import json

import pytest

from support.conversations import result, use
from support.sessions import TASK, opened, talk
from support.strategies import BUDGET, WIDE, brief_of, chat, follow, shown
from windowsill import Budget, SettingError, strategies
from windowsill.strategies.extract import GENERAL, Extract

pytestmark = pytest.mark.unit

SCHEMA = {"type": "object", "properties": {"destination": {"type": "string"}, "date": {"type": "string"}}}
LONG = 100
BOOKING = Extract(schema=SCHEMA)


def say(session, text):
    session.add({"role": "user", "content": text})


def test_after_a_user_input_the_conversation_is_an_object():
    """S3: however empty the window; the task and the latest words stay, the flow is not kept."""
    session, strategy = opened(), BOOKING
    chat(session, 3, words=LONG)
    say(session, "To Kyoto, please.")
    assert strategy.due(session.view, WIDE)
    (proposal,) = follow(session, strategy, WIDE, text='{"destination": "Kyoto"}')
    assert (proposal.briefs[0].style, proposal.briefs[0].schema) == ("state", SCHEMA)
    assert shown(session) == ["question 0 w", "fold", "To Kyoto, pl"]
    assert '{"destination": "Kyoto"}' in session.view.read(session.view.items[1]).text


def test_it_is_updated_once_for_each_input():
    """While tools run and the model answers there is nothing to do until the user says something again."""
    session, strategy = opened(), BOOKING
    chat(session, 2, words=LONG)
    say(session, "next")
    follow(session, strategy, WIDE, text="{}")
    talk(session, 5)
    session.add({"role": "assistant", "content": "done " * LONG})
    assert not strategy.due(session.view, WIDE)
    say(session, "and now?")
    assert strategy.due(session.view, WIDE)


def test_the_next_object_covers_the_one_before():
    """One object, not one for each input."""
    session, strategy = opened(), BOOKING
    for number in range(4):
        chat(session, 1, start=number, words=LONG)
        say(session, "go on")
        follow(session, strategy, WIDE, text=f'{{"goal": "{number}"}}')
    assert shown(session) == ["question 0 w", "fold", "go on"]
    assert '{"goal": "3"}' in session.view.read(session.view.items[1]).text


def test_an_object_that_cannot_be_updated_stays_as_it_was():
    """With a marker for what came since."""
    session, strategy = opened(), BOOKING
    chat(session, 2, words=LONG)
    say(session, "go on")
    follow(session, strategy, WIDE, text='{"goal": "tea"}')
    chat(session, 2, start=2, words=LONG)
    say(session, "go on")
    follow(session, strategy, WIDE)
    text = session.view.read(session.view.items[1]).text
    assert '{"goal": "tea"}' in text
    assert "8 earlier messages" in text


def test_at_the_first_input_there_is_nothing_to_extract_from():
    """The task alone is the whole conversation."""
    session = opened()
    say(session, TASK)
    assert not Extract(schema=SCHEMA, least=0).due(session.view, WIDE)
    assert Extract(schema=SCHEMA, least=0).plan(session.view, WIDE).proposals == ()


@pytest.mark.parametrize(("least", "due"), [(0, True), (200, True), (400, False)])
def test_growth_below_the_least_waits(least, due):
    """`least` in tokens; the answer before the latest words has about 300."""
    session = opened()
    say(session, TASK)
    session.add({"role": "assistant", "content": "so " * 300})
    say(session, "go on")
    assert Extract(schema=SCHEMA, least=least).due(session.view, WIDE) is due
    assert bool(Extract(schema=SCHEMA, least=least).plan(session.view, WIDE).proposals) is due


def test_past_the_high_mark_the_steps_since_the_latest_words_are_summarised():
    """With a summary, which the next input takes into the object; the words stay where they were."""
    session, strategy = opened(), Extract(schema=SCHEMA, instructions="Only facts.")
    chat(session, 2, words=LONG)
    say(session, "Now the cart.")
    talk(session, 40)
    proposals = follow(session, strategy)
    assert [proposal.briefs[0].style for proposal in proposals] == ["state", "summary"]
    assert [proposal.briefs[0].instructions for proposal in proposals] == ["Only facts.", ""]
    assert shown(session)[:4] == ["question 0 w", "fold", "Now the cart", "fold"]
    assert session.view.tokens() <= BUDGET.low
    say(session, "go on")
    follow(session, strategy, text="{}")
    assert shown(session)[1:] == ["fold", "go on"]


def test_running_calls_stay():
    """What the user says meanwhile does not cut them off."""
    session = opened()
    chat(session, 3, words=LONG)
    session.add({"role": "assistant", "content": [use("a"), use("running")]})
    session.add({"role": "user", "content": [result("a")]})
    say(session, "hurry")
    follow(session, BOOKING, WIDE)
    assert ("a", "running") in [item.calls for item in session.view.items]


def test_a_schema_may_be_text_or_a_file(tmp_path):
    """Read once, when the strategy is made."""
    path = tmp_path / "state.json"
    path.write_text(json.dumps(SCHEMA))
    assert Extract(schema=SCHEMA) == Extract(schema=json.dumps(SCHEMA)) == Extract(schema=str(path))
    named = strategies.get("windowsill.strategies.extract:Extract", {"schema": str(path)})
    assert named.schema == SCHEMA


def test_without_a_schema_nothing_is_hidden_before_the_high_mark():
    """Code can hardly fill a general object: a marker would then take the place of words that had room."""
    session = opened()
    chat(session, 3, words=LONG)
    say(session, "go on")
    assert not Extract().due(session.view, WIDE)
    assert Extract().plan(session.view, WIDE).proposals == ()
    chat(session, 5, start=3, words=LONG)
    assert brief_of(Extract(), session).schema == GENERAL


def test_below_the_high_mark_the_steps_stay_however_small_the_growth():
    """Only the object is brought up to date."""
    session = opened()
    chat(session, 2, words=LONG)
    say(session, "Now the cart.")
    talk(session, 20)
    close = Budget(limit=100_000, high=80_000, low=79_900, window=100_000)
    (proposal,) = BOOKING.plan(session.view, close).proposals
    assert proposal.briefs[0].style == "state"


def test_above_the_limit_a_small_growth_counts_too():
    """What is said before the latest words goes, however little it is, when the request does not fit."""
    session = opened()
    say(session, TASK)
    session.add({"role": "assistant", "content": "so " * 150})
    say(session, "why " * 1_200)
    tight = Budget(limit=1_200, high=1_000, low=600, window=1_200)
    assert [each.briefs[0].style for each in BOOKING.plan(session.view, tight).proposals] == ["state"]
    assert BOOKING.plan(session.view, WIDE).proposals == ()


def test_an_object_may_take_what_the_one_before_took():
    """With half of it, an update would have to forget; it stays below what it replaces."""
    session, strategy = opened(), Extract(schema=SCHEMA, room=1)
    chat(session, 3, words=LONG)
    say(session, "go on")
    follow(session, strategy, WIDE, text='{"destination": "' + "Kyoto " * 250 + '"}')
    before = session.view.tokens(session.view.items[1])
    session.add({"role": "assistant", "content": "so " * 300})
    say(session, "go on")
    assert before + 300 <= brief_of(strategy, session, WIDE).room < before + 330


def test_few_steps_are_not_summarised_while_the_request_fits():
    """Or it would be done at every step just above the high mark."""
    session = opened()
    chat(session, 1)
    say(session, "Now the cart.")
    talk(session, 1)
    session.add({"role": "assistant", "content": "so " * 1_100})
    assert BUDGET.high < session.view.tokens() <= BUDGET.limit
    assert BOOKING.plan(session.view, BUDGET).proposals == ()


@pytest.mark.parametrize(
    "schema",
    [
        "no/such/file.json",
        "{broken",
        "[1]",
        '{"type": "array"}',
        {"type": "string"},
        {"properties": []},
        {"properties": {"a": 1}},
        {"required": "a"},
        {"required": [1]},
        "[" * 5_000,
        "a\0b",
    ],
)
def test_what_is_no_schema_of_an_object_is_refused(schema):
    """When the strategy is made, not when a turn needs it."""
    with pytest.raises(SettingError, match="setting 'schema' is"):
        Extract(schema=schema)


def test_the_wishes_of_the_user_reach_the_writer():
    """Model, prompt, directives and room."""
    session = opened()
    chat(session, 3, words=LONG)
    say(session, "go on")
    wishes = {"model": "m", "instructions": "Only facts.", "directives": "ISO dates.", "room": 0.1}
    brief = brief_of(Extract(schema=SCHEMA, **wishes), session)
    assert (brief.model, brief.instructions, brief.directives, brief.room) == ("m", "Only facts.", ("ISO dates.",), 150)


@pytest.mark.parametrize(("setting", "value"), [("least", -1), ("room", 1.5)])
def test_a_setting_out_of_range_is_refused(setting, value):
    """With its name, its value and its range."""
    with pytest.raises(SettingError, match=f"setting '{setting}' is {value}; give"):
        Extract(**{setting: value})
