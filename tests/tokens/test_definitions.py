import pytest

from windowsill.messages import Tool
from windowsill.tokens import Scale, Weight, counter, framing, image_rule
from windowsill.tokens.counters import DEEPEST, function_tokens

pytestmark = pytest.mark.unit

WEATHER = Tool(
    name="get_current_weather",
    description="Get the current weather in a given location",
    schema={
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
            "unit": {
                "type": "string",
                "description": "The unit of temperature to return",
                "enum": ["celsius", "fahrenheit"],
            },
        },
        "required": ["location"],
    },
)


def scale(name, vocabulary="o200k_base"):
    return Scale(counter(vocabulary), framing=framing(name), images=image_rule("generic"))


def test_published_example_of_openai():
    """The function of OpenAI's own example has the number of tokens the API reports for it."""
    for vocabulary, name, reported in (("o200k_base", "openai", 101), ("cl100k_base", "openai-legacy", 105)):
        words = counter(vocabulary)
        system = words.count("You are a helpful assistant that can answer to questions about the weather.")
        user = words.count("What's the weather like in San Francisco?")
        roles = words.count("system") + words.count("user")
        tools = scale(name, vocabulary)
        assert tools.tokens(tools.weigh_tools([WEATHER])) == reported - system - user - roles - 3 - 2 * 3


def test_nested_properties_are_counted():
    """What stands inside an object or a list is counted like what stands outside."""
    inner = {"type": "object", "properties": {"city": {"type": "string", "description": "Where to look"}}}
    flat = Tool(name="f", schema={"properties": {"a": {"type": "object"}}})
    for nested in (inner, {"type": "array", "items": inner}):
        deep = Tool(name="f", schema={"properties": {"a": nested}})
        assert function_tokens(deep, counter("o200k_base")) > function_tokens(flat, counter("o200k_base"))


def test_endless_nesting_ends():
    """A schema nested deeper than any real one is still counted."""
    schema = {"type": "string"}
    for _ in range(DEEPEST * 4):
        schema = {"type": "object", "properties": {"a": schema}}
    assert function_tokens(Tool(name="f", schema=schema), counter("o200k_base")) > DEEPEST


def test_schema_of_odd_values_is_counted():
    """A schema that breaks the rules of JSON Schema is counted, not refused."""
    tool = Tool(name="f", schema={"properties": {"a": True, "b": {"enum": "x"}, "c": {"items": [1]}}})
    assert function_tokens(tool, counter("o200k_base")) > 0


def test_anthropic_counts_the_json_and_its_own_prompt():
    """With Anthropic the definitions count as JSON, with 346 tokens once for the prompt about tools."""
    one, two = (scale("anthropic").weigh_tools([WEATHER] * n) for n in (1, 2))
    assert two.json == 2 * one.json
    assert two.overhead - one.overhead == 8
    assert one.overhead == 346 + 8


def test_no_tools_weigh_nothing():
    """A request without tools pays nothing for tools."""
    assert scale("anthropic").weigh_tools([]) == Weight()


def test_bytes_are_those_that_came():
    """A definition that came as bytes weighs these bytes on the wire."""
    assert scale("generic").weigh_tools([Tool(name="f", raw=b"x" * 77)]).bytes == 77
