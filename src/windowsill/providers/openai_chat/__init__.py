"""OpenAI Chat Completions, and the many servers that speak it: the facts about its API."""

from __future__ import annotations

from windowsill.history.repair_rules import Rules
from windowsill.providers.base import Api, ProviderSpec, StopReasons

NAME = "openai"
DEEPSEEK = "deepseek"
DIALECTS = frozenset({NAME, DEEPSEEK})
"""Formats that write the same messages, but for the reasoning beside them."""

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
"""Fields for the reasoning of a model, by server: DeepSeek, Kimi and GLM; vLLM and Groq; OpenRouter and MiniMax."""

ID_PATTERN = r"[\s\S]{1,64}"
"""Any text, but no longer than this: the API's limit was 40 once, and servers that speak as it does take more."""

NAME_PATTERN = r"[a-zA-Z0-9_-]{1,64}"

API = Api(
    url="https://api.openai.com/v1",
    path="/chat/completions",
    key_variables=("OPENAI_API_KEY",),
    url_variable="OPENAI_BASE_URL",
    key_header="authorization",
    key_prefix="Bearer ",
)

SPEC = ProviderSpec(
    name=NAME,
    aliases=("openai-chat", "chat"),
    vendor="openai",
    rules=Rules(
        format=NAME,
        dialects=DIALECTS,
        id_pattern=ID_PATTERN,
        name_pattern=NAME_PATTERN,
        result_media=False,
        bare_results=False,
    ),
    stops=StopReasons(
        done="stop", calls="tool_calls", length=frozenset({"length"}), refused=frozenset({"content_filter"})
    ),
    # Its newer models refuse the older name; many who speak as OpenAI does know no other.
    limit_fields=("max_completion_tokens", "max_tokens"),
    stop_field="stop",
    max_stops=4,
    tool_schema_field="parameters",
    stream_usage_option=True,
    counts_thoughts=True,
    plain_reasoning=True,
    api=API,
    routes=(r"/chat/completions$",),
    sdk_modules=("openai",),
    sdk_error="OpenAIError",
)
