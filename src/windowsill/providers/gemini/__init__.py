"""Google Gemini's `generateContent`, over REST and in the dictionaries of its Python SDK: the facts about its API."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from msgspec import Raw

from windowsill.history.repair_rules import Rules
from windowsill.messages import Role
from windowsill.providers.base import Api, ProviderSpec, StopReasons
from windowsill.providers.wire import NULL

T = TypeVar("T")

NAME_PATTERN = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"

SPEC = ProviderSpec(
    name="gemini",
    aliases=("google",),
    vendor="google",
    rules=Rules(
        format="gemini",
        user_first=True,
        alternate=True,
        takes_neighbours=True,
        joined_replies=True,
        system_apart=True,
        name_pattern=NAME_PATTERN,
        blank_text=False,
        named_results=True,
    ),
    stops=StopReasons(
        done="STOP",
        calls="STOP",
        length=frozenset({"MAX_TOKENS"}),
        refused=frozenset(
            {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"}
        ),
    ),
    messages_field="contents",
    system_field="systemInstruction",
    config_field="generationConfig",
    limit_fields=("maxOutputTokens",),
    sampling_fields={"top_p": "topP", "top_k": "topK"},
    stop_field="stopSequences",
    max_stops=5,
    # The other field for it, `parameters`, takes only a part of JSON Schema.
    tool_schema_field="parametersJsonSchema",
    stream_in_body=False,
    counts_thoughts=True,
    json_stream=True,
    id_field="responseId",
    operation="generate_content",
    api=Api(
        url="https://generativelanguage.googleapis.com",
        path="/v1beta/models/{model}:generateContent",
        stream_path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        url_variable="GOOGLE_GEMINI_BASE_URL",
        key_header="x-goog-api-key",
    ),
    routes=(
        r"/(?:models|tunedModels|endpoints)/(?P<model>[^/:]+):(?:generateContent|(?P<stream>streamGenerateContent))$",
    ),
    sdk_modules=("google.genai",),
)

ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user"}

BESIDE = frozenset({"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"})
"""Fields that say something about a part rather than being what it holds."""

PLACEHOLDER = "context_engineering_is_the_way_to_go"
"""Stands for the signature of a call that Gemini did not make."""

SKIP = "skip_thought_signature_validator"
"""The other spelling the API documents."""

_JOINT = re.compile(r"_([a-z])")


def camel(fields: dict[str, T]) -> dict[str, T]:
    """Return the fields under their names on the wire, without those that are null.

    The API takes `camelCase` and, as its Python SDK writes in dictionaries, `snake_case`: what came in either is kept
    as it came, and only a reader has to know that they are the same.
    """
    return {
        _JOINT.sub(lambda found: found.group(1).upper(), key) if "_" in key else key: value
        for key, value in fields.items()
        if value is not None and not (isinstance(value, Raw) and value == NULL)
    }


def spelling(fields: Iterable[str], name: str) -> str:
    """Return the name that one of these fields is written under: `name` in either spelling, or `name` itself."""
    return next((key for key in fields if name in camel({key: key})), name)
