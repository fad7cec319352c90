"""What a request asks for beside its messages crosses between providers under the names each has for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from windowsill import providers

pytestmark = pytest.mark.unit

NAMES = ["anthropic", "gemini", "openai", "responses"]
TOOLS: dict[str, list[Any]] = {
    "anthropic": [{"name": "read", "input_schema": {"type": "object"}}, {"name": "run", "input_schema": {}}],
    "gemini": [{"functionDeclarations": [{"name": "read"}, {"name": "run"}]}],
    "openai": [{"type": "function", "function": {"name": "read"}}, {"type": "function", "function": {"name": "run"}}],
    "responses": [{"type": "function", "name": "read"}, {"type": "function", "name": "run"}],
}
TASKS: dict[str, dict[str, Any]] = {
    "anthropic": {"messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "openai": {"messages": [{"role": "user", "content": "hi"}]},
    "responses": {"input": [{"type": "message", "role": "user", "content": "hi"}]},
}
FULL: dict[str, dict[str, Any]] = {
    "anthropic": {"max_tokens": 9, "temperature": 0.5, "top_p": 0.25, "stop_sequences": ["END"]},
    "gemini": {"generationConfig": {"maxOutputTokens": 9, "temperature": 0.5, "topP": 0.25, "stopSequences": ["END"]}},
    "openai": {"max_tokens": 9, "temperature": 0.5, "top_p": 0.25, "stop": ["END"]},
    "responses": {"max_output_tokens": 9, "temperature": 0.5, "top_p": 0.25},
}
CHOICES: dict[str, dict[str, Any]] = {
    "anthropic": {
        "auto": {"tool_choice": {"type": "auto"}},
        "none": {"tool_choice": {"type": "none"}},
        "required": {"tool_choice": {"type": "any"}},
        "one": {"tool_choice": {"type": "tool", "name": "run"}},
    },
    "gemini": {
        "auto": {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}},
        "none": {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
        "required": {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
        "one": {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["run"]}}},
    },
    "openai": {
        "auto": {"tool_choice": "auto"},
        "none": {"tool_choice": "none"},
        "required": {"tool_choice": "required"},
        "one": {"tool_choice": {"type": "function", "function": {"name": "run"}}},
    },
    "responses": {
        "auto": {"tool_choice": "auto"},
        "none": {"tool_choice": "none"},
        "required": {"tool_choice": "required"},
        "one": {"tool_choice": {"type": "function", "name": "run"}},
    },
}
pairs = pytest.mark.parametrize(
    ("source", "target"), [(one, other) for one in NAMES for other in NAMES if one != other]
)


def crossed(source: str, target: str, *, tools: bool = False, **fields: Any) -> dict[str, Any]:
    """Return what a request with these fields has beside messages and tools when it goes to another provider."""
    body = {**TASKS[source], **fields, **({"tools": TOOLS[source]} if tools else {})}
    over = msgspec.json.decode(providers.render_request(providers.read_request(body, format=source), format=target))
    return {key: each for key, each in over.items() if key not in {"messages", "input", "contents", "tools"}}


@pairs
def test_limits_sampling_and_stops_cross(source, target):
    """Each under its own name; Responses has no stop sequences to give or to take."""
    expected = FULL[target]
    if source == "responses":
        expected = msgspec.json.decode(msgspec.json.encode(expected))
        expected.get("generationConfig", expected).pop("stopSequences", None)
        expected = {key: each for key, each in expected.items() if key not in {"stop", "stop_sequences"}}
    assert crossed(source, target, **FULL[source]) == expected


@pairs
@pytest.mark.parametrize("kind", ["auto", "none", "required", "one"])
def test_simple_tool_choice_crosses(source, target, kind):
    """Whether the model may, must or must not call, or which tool it must, each in the words of the provider."""
    over = crossed(source, target, tools=True, max_tokens=9, **CHOICES[source][kind])
    (expected,) = CHOICES[target][kind].items()
    assert expected in over.items()


@pairs
@pytest.mark.parametrize("kind", ["auto", "one"])
def test_tool_choice_without_tools_stays_behind(source, target, kind):
    """Where no tool crosses, providers refuse a word about calling them."""
    over = crossed(source, target, **CHOICES[source][kind])
    assert over.keys().isdisjoint({"tool_choice", "toolConfig"})


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ("openai", {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}}),
        ("openai", {"tool_choice": {"type": "function", "function": {"name": "absent"}}}),
        ("responses", {"tool_choice": {"type": "file_search"}}),
        ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read", "run"]}}}),
        ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "MODE_UNSPECIFIED"}}}),
        ("gemini", {"toolConfig": {"retrievalConfig": {"languageCode": "en"}}}),
    ],
)
def test_choice_that_others_cannot_state_stays_behind(source, fields):
    """Nothing is better than something else."""
    for target in set(NAMES) - {source}:
        assert crossed(source, target, tools=True, **fields).keys().isdisjoint({"tool_choice", "toolConfig"})


@pytest.mark.parametrize("limit", ["max_completion_tokens", "max_tokens"])
def test_either_name_of_the_limit_is_read(limit):
    """OpenAI has two, of which the newer counts."""
    assert crossed("openai", "gemini", **{limit: 9}) == {"generationConfig": {"maxOutputTokens": 9}}
    assert crossed("openai", "responses", max_tokens=1, max_completion_tokens=9) == {"max_output_tokens": 9}


def test_spelling_of_the_sdk_is_read():
    """Names with underscores mean the same."""
    config = {"max_output_tokens": 9, "top_p": 0.25, "stop_sequences": ["END"]}
    choice = {"function_calling_config": {"mode": "any", "allowed_function_names": ["run"]}}
    over = crossed("gemini", "anthropic", tools=True, generation_config=config, tool_config=choice)
    assert over == {
        "max_tokens": 9,
        "top_p": 0.25,
        "stop_sequences": ["END"],
        "tool_choice": {"type": "tool", "name": "run"},
    }


def test_stream_has_no_meaning_in_a_body_of_gemini():
    """It stands in the address there; between the others it crosses."""
    assert crossed("openai", "gemini", stream=True) == {}
    assert crossed("openai", "responses", stream=True) == {"stream": True}


def test_what_is_null_says_nothing():
    """A field without a value is not carried."""
    nothing = {"temperature": None, "stop": None, "tool_choice": None, "max_completion_tokens": None}
    assert crossed("openai", "gemini", tools=True, **nothing) == {}
    assert crossed("gemini", "openai", generationConfig=None) == {}


def test_what_a_provider_would_refuse_is_brought_into_its_bounds():
    """Anthropic's scale ends at 1 and it wants a visible stop; OpenAI takes four of them, Gemini five."""
    hot = crossed("openai", "anthropic", temperature=1.5, stop=["\n", "END"], max_tokens=9)
    assert hot == {"max_tokens": 9, "temperature": 1, "stop_sequences": ["END"]}
    many = list("abcdef")
    assert crossed("anthropic", "openai", stop_sequences=many, max_tokens=9)["stop"] == many[:4]
    assert crossed("anthropic", "gemini", stop_sequences=many)["generationConfig"]["stopSequences"] == many[:5]
    assert crossed("openai", "gemini", stop="END") == {"generationConfig": {"stopSequences": ["END"]}}


def test_name_in_a_choice_is_the_name_of_the_tool():
    """Where a tool has to be called otherwise, so has the choice."""
    tools = [{"type": "function", "function": {"name": "1.read"}}]
    choice = {"tool_choice": {"type": "function", "function": {"name": "1.read"}}}
    request = providers.read_request({**TASKS["openai"], "tools": tools, **choice}, format="openai")
    over = msgspec.json.decode(providers.render_request(request, format="gemini"))
    (declared,) = over["tools"][0]["functionDeclarations"]
    assert over["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == [declared["name"]] == ["_1_read"]


def test_settings_under_their_common_names():
    """Names that most providers share."""
    rest = providers.read_request({**TASKS["gemini"], **FULL["gemini"]}, format="gemini").rest
    found = {key: msgspec.json.decode(each) for key, each in providers.settings_of(rest).items()}
    assert found == {"max_tokens": 9, "temperature": 0.5, "top_p": 0.25}


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "max_tokens": st.integers(1, 9_999),
            "temperature": st.floats(0, 1),
            "top_p": st.floats(0, 1),
            "stop": st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=4),
            "tool_choice": st.sampled_from([each["tool_choice"] for each in CHOICES["openai"].values()]),
        },
    ),
    st.sampled_from(["anthropic", "gemini"]),
)
def test_there_and_back_is_the_same(fields, target):
    """What crossed comes back as it was, and Google's own types take what it became."""
    body = {**TASKS["openai"], "tools": TOOLS["openai"], "max_tokens": 1, **fields}
    over = providers.render_request(providers.read_request(body, format="openai"), format=target)
    if target == "gemini":
        types.GenerationConfig.model_validate(msgspec.json.decode(over)["generationConfig"])
    back = msgspec.json.decode(providers.render_request(providers.read_request(over, format=target), format="openai"))
    assert {key: back[key] for key in back if key not in {"messages", "tools"}} == {"max_tokens": 1, **fields}
