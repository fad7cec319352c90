"""OpenAI Chat Completions, and the many servers that speak it."""

from __future__ import annotations

from windowsill.history.repair import Rules
from windowsill.providers.base import Api, ProviderSpec, StopReasons
from windowsill.providers.openai_chat import messages
from windowsill.providers.openai_chat.rules import validate

STOPS = StopReasons(
    done="stop", calls="tool_calls", length=frozenset({"length"}), refused=frozenset({"content_filter"})
)

SPEC = ProviderSpec(
    name=messages.NAME,
    aliases=("openai-chat", "chat"),
    vendor="openai",
    rules=Rules(format=messages.NAME, result_media=False, bare_results=False),
    stops=STOPS,
    # Its newer models refuse the older name; many who speak as OpenAI does know no other.
    limit_fields=("max_completion_tokens", "max_tokens"),
    stop_field="stop",
    max_stops=4,
    tool_schema_field="parameters",
    stream_usage_option=True,
    counts_thoughts=True,
    api=Api(
        url="https://api.openai.com/v1",
        path="/chat/completions",
        key_variables=("OPENAI_API_KEY",),
        url_variable="OPENAI_BASE_URL",
        key_header="authorization",
        key_prefix="Bearer ",
    ),
    routes=(r"/chat/completions$",),
    sdk_modules=("openai",),
    sdk_error="OpenAIError",
)


class OpenAI:
    """The format of `POST /v1/chat/completions`."""

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
