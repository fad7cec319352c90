"""The names under which things are told: OpenTelemetry's GenAI conventions, and our own beside them.

The constants of OpenTelemetry's Python package are deprecated, as the conventions moved to a repository of their own;
so they are written down here.
"""

from __future__ import annotations

from typing import Final

SCOPE: Final = "windowsill"
OURS: Final = "windowsill."
"""What stands before a name that no convention has."""

# Attributes of the conventions.

CONVERSATION_COMPACTED: Final = "gen_ai.conversation.compacted"
"""Only ever true: where nothing was folded it is left out."""
CONVERSATION_ID: Final = "gen_ai.conversation.id"
DATA_SOURCE_ID: Final = "gen_ai.data_source.id"
ERROR_TYPE: Final = "error.type"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OPERATION_NAME: Final = "gen_ai.operation.name"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_K: Final = "gen_ai.request.top_k"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
RETRIEVAL_QUERY: Final = "gen_ai.retrieval.query.text"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - the name of an attribute, not a secret
TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
USAGE_CACHE_CREATION: Final = "gen_ai.usage.cache_creation.input_tokens"
USAGE_CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_WRITE: Final = "gen_ai.usage.cache_write.input_tokens"
"""The newer name of `USAGE_CACHE_CREATION`; both are told while programs that show traces read either."""
USAGE_INPUT: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT: Final = "gen_ai.usage.output_tokens"

# Operations of the conventions.

CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
GENERATE_CONTENT: Final = "generate_content"
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
"""The event that carries content where it is wanted apart from spans."""


class Keys(dict[str, str]):
    """Attribute names by the short words of our code; a word that is not in the table is one of ours."""

    def __missing__(self, word: str) -> str:
        """`tokens` is `windowsill.tokens`; a name with a dot is whole already."""
        name = self[word] = word if "." in word else OURS + word
        return name


KEYS: Final = Keys(
    compacted=CONVERSATION_COMPACTED,
    error=ERROR_TYPE,
    model=REQUEST_MODEL,
    operation=OPERATION_NAME,
    port=SERVER_PORT,
    provider=PROVIDER_NAME,
    server=SERVER_ADDRESS,
    session=CONVERSATION_ID,
    source=DATA_SOURCE_ID,
    tool=TOOL_NAME,
    kind="windowsill.fold.kind",
    strategy="windowsill.strategy",
)

MEASURED: Final = frozenset({ERROR_TYPE, OPERATION_NAME, PROVIDER_NAME, REQUEST_MODEL, RESPONSE_MODEL, TOOL_NAME})
"""Attributes of a span that its duration is told with. A session's id is not among them: every session would be a time
series of its own."""

_PROVIDERS: Final = {
    "google": "gcp.gemini",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "responses": "openai",
    "xai": "x_ai",
}
"""What the conventions call those that we name otherwise."""

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
"""Those who speak another's format, by the end of their host's name."""


def provider_name(ours: str, host: str = "") -> str:
    """What the conventions call a provider, from our name for it or the format it speaks, and its host if known."""
    found = next((name for end, name in _HOSTS.items() if host.endswith(end)), None) if host else None
    return found or _PROVIDERS.get(ours, ours)
