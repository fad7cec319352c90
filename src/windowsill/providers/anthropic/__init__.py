"""Anthropic Messages."""

from __future__ import annotations

from windowsill.history.repair import Rules
from windowsill.providers.anthropic import messages
from windowsill.providers.anthropic.rules import validate
from windowsill.providers.base import Api, ProviderSpec, StopReasons

SPEC = ProviderSpec(
    name=messages.NAME,
    vendor="anthropic",
    rules=Rules(
        format=messages.NAME,
        user_first=True,
        alternate=True,
        system_apart=True,
        unique_ids=True,
        id_pattern=messages.ID_PATTERN,
        blank_text=False,
        signed_reasoning=True,
        reasoning_last=False,
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


class Anthropic:
    """The format of `POST /v1/messages`."""

    name = messages.NAME
    spec = SPEC
    rules = SPEC.rules

    read_message = staticmethod(messages.read_message)
    read_body = staticmethod(messages.read_body)
    read_reply = staticmethod(messages.read_reply)
    read_system = staticmethod(messages.read_system)
    read_tool = staticmethod(messages.read_tool)
    render_message = staticmethod(messages.render_message)
    render_system = staticmethod(messages.render_system)
    render_tool = staticmethod(messages.render_tool)
    render_body = staticmethod(messages.render_body)
    validate = staticmethod(validate)
