"""OpenAI Responses: a conversation as a list of items."""

from __future__ import annotations

from windowsill.history.repair import Rules
from windowsill.providers.base import Api, ProviderSpec, StopReasons
from windowsill.providers.openai_responses import items
from windowsill.providers.openai_responses.items import detects
from windowsill.providers.openai_responses.rules import validate

__all__ = ["SPEC", "Responses", "detects"]

SPEC = ProviderSpec(
    name=items.NAME,
    aliases=("openai-responses",),
    rules=Rules(
        format=items.NAME,
        system_apart=True,
        system_inside=True,
        in_items=True,
        unique_ids=True,
        id_pattern=items.ID_PATTERN,
        bare_results=False,
    ),
    stops=StopReasons(
        done="completed",
        calls="completed",
        length=frozenset({"max_output_tokens"}),
        refused=frozenset({"content_filter"}),
        unfinished=frozenset({"incomplete", "failed", "cancelled", "in_progress", "queued"}),
    ),
    messages_field="input",
    system_field="instructions",
    limit_fields=("max_output_tokens",),
    tool_schema_field="parameters",
    counts_thoughts=True,
    api=Api(
        url="https://api.openai.com/v1",
        path="/responses",
        key_variables=("OPENAI_API_KEY",),
        url_variable="OPENAI_BASE_URL",
        key_header="authorization",
        key_prefix="Bearer ",
    ),
    routes=(r"/responses$",),
    sdk_modules=("openai.types.responses",),
    sdk_error="OpenAIError",
)


class Responses:
    """The format of `POST /v1/responses`."""

    name = items.NAME
    spec = SPEC
    rules = SPEC.rules

    read_message = staticmethod(items.read_message)
    read_body = staticmethod(items.read_body)
    read_reply = staticmethod(items.read_reply)
    read_system = staticmethod(items.read_system)
    read_tool = staticmethod(items.read_tool)
    render_message = staticmethod(items.render_message)
    render_system = staticmethod(items.render_system)
    render_tool = staticmethod(items.render_tool)
    render_body = staticmethod(items.render_body)
    validate = staticmethod(validate)
