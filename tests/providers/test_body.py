"""What a request has beside its messages: the model, the limit of the answer, and whether to stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.agent_models import FORMATS, asking
from windowsill import providers
from windowsill.providers.http import endpoint
from windowsill.providers.request_fields import complete_body, limit_field
from windowsill.providers.wire import take_out

pytestmark = pytest.mark.unit

FIELDS = {
    "anthropic": "max_tokens",
    "openai": "max_completion_tokens",
    "deepseek": "max_tokens",
    "responses": "max_output_tokens",
    "gemini": "maxOutputTokens",
}


def made(format: str, *, max_output: int = 500, stream: bool = True, model: str = "m", **params: Any) -> dict[str, Any]:
    """The decoded body of a composed request."""
    return json.loads(raw(format, max_output=max_output, stream=stream, model=model, **params))


def raw(format: str, *, max_output: int = 500, stream: bool = True, model: str = "m", **params: Any) -> bytes:
    body = asking(format=format, **params).payload.body(format)
    return complete_body(body, format, model=model, max_output=max_output, limit_field=FIELDS[format], stream=stream)


def limits(body: dict[str, Any]) -> dict[str, Any]:
    """Every limit that a body states, wherever."""
    found = {**body, **body.get("generationConfig", {})}
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
    return {name: found[name] for name in names if name in found}


@pytest.mark.parametrize("format", FORMATS)
def test_limit_under_its_name(format: str) -> None:
    """The most tokens of an answer stand under the one name the format has for it."""
    assert limits(made(format)) == {FIELDS[format]: 500}


@pytest.mark.parametrize(
    ("format", "stated"),
    [
        ("anthropic", {"max_tokens": 100}),
        ("openai", {"max_tokens": 100}),
        ("openai", {"max_completion_tokens": 100}),
        ("deepseek", {"max_tokens": 100}),
        ("responses", {"max_output_tokens": 100}),
        ("gemini", {"generationConfig": {"maxOutputTokens": 100, "temperature": 0.5}}),
    ],
)
def test_stated_limit(format: str, stated: dict[str, Any]) -> None:
    """A limit that the request states keeps its name, and is lowered where there is less room."""
    own = stated.get("generationConfig", stated)
    name = next(iter(own))
    assert limits(made(format, **stated)) == {name: 100}
    assert limits(made(format, max_output=40, **stated)) == {name: 40}


def test_gemini_keeps_its_settings() -> None:
    """The limit is put among what is configured already, in either spelling."""
    body = made("gemini", generation_config={"temperature": 0.5, "max_output_tokens": 900})
    assert body["generation_config"] == {"temperature": 0.5, "max_output_tokens": 500}
    assert "generationConfig" not in body


@pytest.mark.parametrize(("format", "expected"), [("anthropic", {"max_tokens": 4096}), ("openai", {}), ("gemini", {})])
def test_no_limit(format: str, expected: dict[str, int]) -> None:
    """Without a limit none is stated, except to Anthropic, who demands one."""
    assert limits(made(format, max_output=0)) == expected


@pytest.mark.parametrize("format", ["openai", "deepseek"])
def test_streamed_chat_tells_its_usage(format: str) -> None:
    """A chat is asked for its usage, unless the request says otherwise; its other options stay."""
    assert made(format)["stream_options"] == {"include_usage": True}
    stated = made(format, stream_options={"include_usage": False, "include_obfuscation": False})["stream_options"]
    assert stated == {"include_usage": False, "include_obfuscation": False}


@pytest.mark.parametrize("format", ["anthropic", "responses"])
def test_other_streams_have_no_options(format: str) -> None:
    """Elsewhere such a field would be refused."""
    assert "stream_options" not in made(format)
    assert made(format)["stream"] is True


@pytest.mark.parametrize("format", FORMATS)
def test_not_streamed(format: str) -> None:
    """What is not to be streamed says nothing of streams, whatever the request said."""
    asked = asking(format=format, stream=True, stream_options={"include_usage": True}).payload.body(format)
    body = json.loads(complete_body(asked, format, model="m", max_output=5, limit_field=FIELDS[format], stream=False))
    assert "stream" not in body
    assert ("stream_options" in body) is (format == "gemini")


def test_gemini_streams_by_its_address() -> None:
    """Its body has no field for it; the path is another one."""
    assert "stream" not in made("gemini", stream=True)
    where = endpoint("gemini:gemini-2.5-pro@http://127.0.0.1:1", environment={})
    assert where.address("gemini-2.5-pro", stream=True) == (
        "http://127.0.0.1:1/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    )
    assert where.address("gemini-2.5-pro").endswith("gemini-2.5-pro:generateContent")


@pytest.mark.parametrize("format", FORMATS)
def test_messages_stay_byte_for_byte(format: str) -> None:
    """A prompt cache sees the same bytes, whatever is put beside them."""
    under = providers.get(format).spec.messages_field
    before, after = asking(format=format).payload.body(format), raw(format)
    assert take_out(after, under)[1] == take_out(before, under)[1]


@pytest.mark.parametrize("format", ["anthropic", "openai", "responses", "deepseek"])
def test_model(format: str) -> None:
    """The model that is asked is named; where nobody names one, that of the request stays."""
    assert made(format, model="another")["model"] == "another"
    assert made(format, model="")["model"] == json.loads(asking(format=format).payload.body(format))["model"]


def test_gemini_names_no_model() -> None:
    """It stands in the address."""
    assert "model" not in made("gemini")


@pytest.mark.parametrize(
    ("format", "model", "name"),
    [
        ("openai", "gpt-5", "max_completion_tokens"),
        ("openai", "some-local-model", "max_tokens"),
        ("openai", "", "max_tokens"),
        ("deepseek", "deepseek-reasoner", "max_tokens"),
        ("anthropic", "claude-sonnet-5", "max_tokens"),
        ("responses", "gpt-5", "max_output_tokens"),
        ("gemini", "gemini-2.5-pro", "maxOutputTokens"),
    ],
)
def test_name_of_the_limit_without_an_address(format: str, model: str, name: str) -> None:
    """OpenAI's own models know another name than most who speak as they do."""
    assert limit_field(format, model) == name


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("openai:gpt-5", "max_completion_tokens"),
        ("openai:qwen3@http://127.0.0.1:1/v1", "max_tokens"),
        ("anthropic:claude-sonnet-5", "max_tokens"),
        ("responses:gpt-5@http://127.0.0.1:1/v1", "max_output_tokens"),
        ("gemini:gemini-2.5-pro", "maxOutputTokens"),
    ],
)
def test_name_of_the_limit_at_an_address(spec: str, name: str) -> None:
    """Only OpenAI itself is sure to know its newer name."""
    assert endpoint(spec, environment={}).limit_field == name


def test_a_body_that_says_everything_already_is_sent_as_it_is():
    """Byte for byte: what was recorded is what is sent."""
    body = b'{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, "model": "gpt-4o"}'
    assert complete_body(body, "openai", model="gpt-4o", max_output=5, limit_field="max_tokens", stream=False) is body
