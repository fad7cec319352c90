"""Google Gemini's `generateContent`, over REST and in the dictionaries of its Python SDK."""

from __future__ import annotations

from typing import Any

from windowsill.history.repair import Rules
from windowsill.messages import Message
from windowsill.providers.base import Api, ProviderSpec, StopReasons
from windowsill.providers.gemini import read, render, tools
from windowsill.providers.gemini.render import PLACEHOLDER, SKIP
from windowsill.providers.gemini.rules import validate
from windowsill.providers.gemini.tools import NAME, camel

__all__ = ["PLACEHOLDER", "SKIP", "SPEC", "Gemini", "detects"]

SPEC = ProviderSpec(
    name=NAME,
    aliases=("google",),
    vendor="google",
    rules=Rules(
        format=NAME,
        user_first=True,
        alternate=True,
        system_apart=True,
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


class Gemini:
    """The format of `POST /v1beta/models/{model}:generateContent`.

    `signature` is put on the first call of a content that Gemini did not sign, because another provider's model made
    it: Gemini 3 refuses such calls in the current turn without one. Pass `PLACEHOLDER` for these models; older ones
    need none.
    """

    name = NAME
    spec = SPEC
    rules = SPEC.rules

    def __init__(self, *, signature: str | None = None) -> None:
        self.signature = signature

    def render_message(self, message: Message) -> list[bytes]:
        """The native content for one message: exactly its own bytes when it is of this format and unchanged."""
        return render.render_message(message, self.signature)

    read_message = staticmethod(read.read_message)
    read_body = staticmethod(read.read_body)
    read_reply = staticmethod(read.read_reply)
    read_system = staticmethod(read.read_system)
    read_tool = staticmethod(tools.read_tool)
    render_system = staticmethod(render.render_system)
    render_tool = staticmethod(render.render_tool)
    render_body = staticmethod(render.render_body)
    validate = staticmethod(validate)


def detects(value: Any) -> bool:
    """Whether a decoded body, list, content or reply is clearly Gemini's."""
    if isinstance(value, list):
        return any(isinstance(each, dict) and _is_content(each) for each in value)
    if not isinstance(value, dict):
        return False
    fields = camel(value)
    if "contents" in fields:
        return "messages" not in fields
    return isinstance(fields.get("candidates"), list) or "usageMetadata" in fields or _is_content(fields)


def _is_content(value: dict[str, Any]) -> bool:
    """Whether it has parts as Gemini writes them: told by what they hold, where others have a `type`."""
    parts = value.get("parts")
    if not isinstance(parts, list) or value.get("role", "user") not in read.ROLES:
        return False
    return all(isinstance(part, dict) and "type" not in part for part in parts)
