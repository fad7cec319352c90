"""Anthropic Messages: the facts about its API."""

from __future__ import annotations

from windowsill.history.repair_rules import Rules
from windowsill.providers.base import Api, ProviderSpec, StopReasons

ID_PATTERN = r"[a-zA-Z0-9_-]+"
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

NAME_PATTERN = r"[a-zA-Z0-9_-]{1,128}"

SPEC = ProviderSpec(
    name="anthropic",
    vendor="anthropic",
    rules=Rules(
        format="anthropic",
        user_first=True,
        alternate=True,
        takes_neighbours=True,
        system_apart=True,
        unique_ids=True,
        id_pattern=ID_PATTERN,
        name_pattern=NAME_PATTERN,
        blank_text=False,
        signed_reasoning=True,
        reasoning_last=False,
        trailing_space=False,
        silent_errors=False,
        cache_markers=True,
    ),
    stops=StopReasons(
        done="end_turn",
        calls="tool_use",
        length=frozenset({"max_tokens", "model_context_window_exceeded"}),
        refused=frozenset({"refusal"}),
        paused=frozenset({"pause_turn"}),
    ),
    system_field="system",
    # Every model it serves can write this much.
    default_limit=4096,
    max_temperature=1,
    stop_field="stop_sequences",
    blank_stops=False,
    tool_schema_field="input_schema",
    context_management="edits",
    api=Api(
        url="https://api.anthropic.com",
        path="/v1/messages",
        key_variables=("ANTHROPIC_API_KEY",),
        url_variable="ANTHROPIC_BASE_URL",
        key_header="x-api-key",
        headers={"anthropic-version": "2023-06-01"},
    ),
    routes=(
        # The messages of a thread belong to another API of OpenAI's, and are no call of a model.
        r"^(?!.*/threads/).*/messages$",
        r"/publishers/anthropic/models/(?P<model>[^/:]+):(?:rawPredict|(?P<stream>streamRawPredict))$",
    ),
    sdk_modules=("anthropic",),
    sdk_error="AnthropicError",
)
