"""Everything that is sent counts: names, fields that nobody knows, schemas, giant keys and ids."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill import BudgetError, Session, fit, tokens

pytestmark = pytest.mark.unit

BIG = "word " * 20_000
"""Twenty thousand tokens."""

COOKBOOK = [
    (
        "system",
        None,
        "You are a helpful, pattern-following assistant that translates corporate jargon into plain English.",
    ),
    ("system", "example_user", "New synergies will help drive top-line growth."),
    ("system", "example_assistant", "Things working well together will increase revenue."),
    (
        "system",
        "example_user",
        "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
    ),
    ("system", "example_assistant", "Let's talk later when we're less busy about how to do better."),
    (
        "user",
        None,
        "This late pivot means we don't have time to boil the ocean for the client deliverable.",
    ),
]
"""The example of OpenAI's cookbook, for which the API reports 124 tokens with gpt-4o and 129 with gpt-4."""


def messages(rows):
    return [{"role": role, **({"name": name} if name else {}), "content": text} for role, name, text in rows]


@pytest.mark.parametrize(("model", "reported"), [("gpt-4o", 124), ("gpt-4", 129)])
def test_the_example_of_the_cookbook_has_the_tokens_that_the_api_reports(model, reported):
    """Roles and names are tokens too."""
    assert fit(messages(COOKBOOK), model=model).tokens == reported


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=40), st.sampled_from([None, "ann", "bob_the_builder"])), min_size=1)
)
def test_texts_of_openai_are_counted_by_its_published_rule(rows):
    """Three tokens a message, its role, its words, its name and one more, and three for the answer."""
    count = tokens.counter("o200k_base").count
    expected = 3 + sum(4 + count(text) + (count(name) + 1 if name else 0) for text, name in rows)
    assert fit(messages([("user", name, text) for text, name in rows]), model="gpt-4o").tokens == expected


def call(**fields):
    use = {"type": "tool_use", "id": "t1", "name": "set", "input": {}, **fields}
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": "ok"}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]


def document(**fields):
    source = {"type": "text", "media_type": "text/plain", "data": "x"}
    return [
        {"role": "user", "content": [{"type": "document", "source": source, **fields}, {"type": "text", "text": "?"}]}
    ]


@pytest.mark.parametrize(
    ("model", "history"),
    [
        ("claude-sonnet-4-5", call(input={BIG: 1})),
        ("claude-sonnet-4-5", call(input={f"{number} {BIG[:2_000]}": 1 for number in range(50)})),
        ("claude-sonnet-4-5", call(id="t" + BIG.replace(" ", "_"))),
        ("claude-sonnet-4-5", document(context=BIG)),
        ("gpt-5", [{"role": "user", "content": "hi", "name": BIG}]),
        ("gpt-5", [{"role": "user", "content": "hi", "extra": BIG}]),
        ("gpt-5", [{"role": "user", "content": "hi", "extra": {"deep": [{"er": BIG}]}}]),
    ],
    ids=["argument", "arguments", "id", "context", "name", "field", "nested field"],
)
def test_no_field_is_sent_without_being_counted(model, history):
    """A request within its budget is small on the wire too; where the field cannot be cut, an error says so."""
    counted = Session.open("all", model=model, store=":memory:")
    counted.extend(history)
    assert counted.view.tokens() > 18_000
    with suppress(BudgetError):
        body = fit(history, model=model, budget=8_000).body()
        assert tokens.counter("o200k_base").count(body.decode()) < 8_000


def test_spaces_and_escapes_are_no_fields():
    """A message that was spelled at length says no more than one that was not."""
    message = {"role": "user", "content": "こんにちは、世界。" * 100}
    spelled = [json.dumps([message], ensure_ascii=ascii, indent=indent) for ascii, indent in ((False, None), (True, 8))]
    assert len({fit(text, model="gpt-4o").tokens for text in spelled}) == 1


SCHEMA = {
    "type": "object",
    "properties": {f"field_{number}": {"type": "string", "description": "what was found"} for number in range(60)},
}


@pytest.mark.parametrize(
    ("format", "params"),
    [
        ("openai", {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}),
        ("responses", {"text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}}),
        ("gemini", {"generationConfig": {"responseJsonSchema": SCHEMA}}),
        ("anthropic", {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
    ],
)
def test_a_schema_for_the_answer_counts(format, params):
    """The model reads it; a field without one costs nothing."""
    session = Session.open("s", model="gpt-4o", format=format, store=":memory:")
    session.add("hi")
    plain = session.compose_sync(params={"temperature": 0.5}).tokens
    with_schema = session.compose_sync(params=params)
    written = tokens.counter("o200k_base").count(json.dumps(SCHEMA, separators=(",", ":")))
    assert with_schema.tokens - plain == pytest.approx(written, rel=0.05)
    assert sum(with_schema.report.parts.values()) == with_schema.tokens


def test_a_schema_that_leaves_no_room_is_named():
    """The error says which part is too large."""
    session = Session.open("s", model="gpt-4o", budget=900, store=":memory:")
    session.add("hi")
    with pytest.raises(BudgetError, match="schema of the answer"):
        session.compose_sync(params={"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}})
