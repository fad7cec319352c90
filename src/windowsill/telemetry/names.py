"""Names of spans, attributes and metrics: those of OpenTelemetry's GenAI conventions, and our own.

The constants of OpenTelemetry's Python package are deprecated, as the conventions moved to a repository of their own;
so they are written down here.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

SCOPE: Final = "windowsill"


@cache
def version() -> str:
    """Return the version of Windowsill, or nothing where it runs without being installed."""
    from importlib import metadata  # noqa: PLC0415 - only needed where an SDK listens

    try:
        return metadata.version(SCOPE)
    except metadata.PackageNotFoundError:
        return ""


# Operations of the conventions.

CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_AGENT: Final = "invoke_agent"
RETRIEVAL: Final = "retrieval"

# Metrics: two of the conventions, then our own.

TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105 - the name of a metric, not a secret
OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
CACHE_HIT_RATIO: Final = "windowsill.cache.hit_ratio"
CHECKPOINTS: Final = "windowsill.checkpoints"
COMPOSE_DURATION: Final = "windowsill.compose.duration"
COST: Final = "windowsill.cost"
FOLDS: Final = "windowsill.folds"
FOLD_TOKENS_SAVED: Final = "windowsill.fold.tokens_saved"
TOKENS: Final = "windowsill.tokens"
UNFOLDS: Final = "windowsill.unfolds"

EVENT: Final = "gen_ai.client.inference.operation.details"
"""The event that carries message content apart from spans."""

# Attributes. `compacted` and `stream` are only ever true: the conventions want them left out otherwise. What a cache
# was written with has two names, of which programs that show traces read either.

REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_K: Final = "gen_ai.request.top_k"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"

_ATTRIBUTES: Final = {
    "compacted": "gen_ai.conversation.compacted",
    "error": "error.type",
    "input_messages": "gen_ai.input.messages",
    "kind": "windowsill.fold.kind",
    "model": "gen_ai.request.model",
    "operation": "gen_ai.operation.name",
    "output_messages": "gen_ai.output.messages",
    "port": "server.port",
    "provider": "gen_ai.provider.name",
    "query": "gen_ai.retrieval.query.text",
    "response_finish": "gen_ai.response.finish_reasons",
    "response_id": "gen_ai.response.id",
    "response_model": "gen_ai.response.model",
    "response_seconds": "gen_ai.response.time_to_first_chunk",
    "server": "server.address",
    "session": "gen_ai.conversation.id",
    "source": "gen_ai.data_source.id",
    "stream": "gen_ai.request.stream",
    "system_instructions": "gen_ai.system_instructions",
    "token_type": "gen_ai.token.type",
    "tool": "gen_ai.tool.name",
    "tool_arguments": "gen_ai.tool.call.arguments",
    "tool_call": "gen_ai.tool.call.id",
    "tool_result": "gen_ai.tool.call.result",
    "tool_type": "gen_ai.tool.type",
    "used_cache_creation": "gen_ai.usage.cache_creation.input_tokens",
    "used_cache_read": "gen_ai.usage.cache_read.input_tokens",
    "used_cache_write": "gen_ai.usage.cache_write.input_tokens",
    "used_input": "gen_ai.usage.input_tokens",
    "used_output": "gen_ai.usage.output_tokens",
}
"""Full names by the short words that our code uses; any other word gets `windowsill.` before it."""


def full_names(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes under their full names, without those that are `None`; a name with a dot is full already.

    The figures of a `decision` become one attribute each.
    """
    figures = {f"windowsill.decision.{word}": value for word, value in attributes.get("decision", {}).items()}
    return figures | {
        _ATTRIBUTES.get(word) or (word if "." in word else f"windowsill.{word}"): value
        for word, value in attributes.items()
        if value is not None and word != "decision"
    }


MEASURED: Final = frozenset(
    _ATTRIBUTES[word] for word in ("error", "model", "operation", "provider", "response_model", "tool")
)
"""Attributes of a span that its duration is recorded with. The session's id is not among them: every session would be a
time series of its own."""

_PROVIDERS: Final = {
    "google": "gcp.gemini",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "responses": "openai",
    "xai": "x_ai",
}
"""The conventions' names of providers that we name otherwise."""

_HOSTS: Final = {
    "openai.azure.com": "azure.ai.openai",
    "services.ai.azure.com": "azure.ai.inference",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "amazonaws.com": "aws.bedrock",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.moonshot.ai": "moonshot_ai",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
}
"""Providers that speak the format of another one, by the end of their host name."""


def provider_name(ours: str, host: str = "") -> str:
    """Return the conventions' name of a provider, from our name for it or the format it speaks, and from its host."""
    found = next((name for end, name in _HOSTS.items() if host.endswith(end)), None) if host else None
    return found or _PROVIDERS.get(ours, ours)
