"""OpenAI Responses: a conversation as a list of items."""

from __future__ import annotations

from windowsill.formats.base import Api, ProviderSpec, StopReasons
from windowsill.formats.responses import read, render
from windowsill.formats.responses.recognise import detects
from windowsill.formats.responses.validate import validate
from windowsill.history.repair import Rules

__all__ = ["SPEC", "Responses", "detects"]

SPEC = ProviderSpec(
    name=read.NAME,
    aliases=("openai-responses",),
    rules=Rules(
        format=read.NAME,
        system_apart=True,
        system_inside=True,
        in_items=True,
        unique_ids=True,
        id_pattern=render.ID_PATTERN,
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

    name = read.NAME
    spec = SPEC
    rules = SPEC.rules

    read_message = staticmethod(read.read_message)
    read_body = staticmethod(read.read_body)
    read_reply = staticmethod(read.read_reply)
    read_system = staticmethod(read.read_system)
    read_tool = staticmethod(read.read_tool)
    render_message = staticmethod(render.render_message)
    render_system = staticmethod(render.render_system)
    render_tool = staticmethod(render.render_tool)
    render_body = staticmethod(render.render_body)
    validate = staticmethod(validate)
