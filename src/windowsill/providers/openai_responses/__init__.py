"""OpenAI Responses, a conversation as a list of items: the facts about its API, and the kinds of items."""

from __future__ import annotations

import msgspec

from windowsill.history.repair_rules import Rules
from windowsill.messages import Role
from windowsill.providers.base import ProviderSpec, StopReasons
from windowsill.providers.openai_chat import API, ID_PATTERN

NAME_PATTERN = r"[a-zA-Z0-9_-]{1,128}"

SPEC = ProviderSpec(
    name="responses",
    aliases=("openai-responses",),
    rules=Rules(
        format="responses",
        system_apart=True,
        system_inside=True,
        in_items=True,
        unique_ids=True,
        id_pattern=ID_PATTERN,
        name_pattern=NAME_PATTERN,
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
    history_fields=("previous_response_id", "conversation", "prompt"),
    system_field="instructions",
    limit_fields=("max_output_tokens",),
    tool_schema_field="parameters",
    counts_thoughts=True,
    context_management="compaction",
    no_store={"store": False},
    api=msgspec.structs.replace(API, path="/responses"),
    routes=(r"/responses$",),
    sdk_modules=("openai.types.responses",),
    sdk_error="OpenAIError",
)

FUNCTION = "function_call"
CUSTOM = "custom_tool_call"
COMPUTER = "computer_call"
LOCAL_SHELL = "local_shell_call"
SHELL = "shell_call"
PATCH = "apply_patch_call"
SEARCH = "tool_search_call"
"""A search for tools: a call where the program runs it (`execution` is `client`), else the provider's own business."""
SEARCH_OUTPUT = "tool_search_output"

CALLS = frozenset({FUNCTION, CUSTOM, COMPUTER, LOCAL_SHELL, SHELL, PATCH})
"""Calls that the program answers."""

SUFFIX = "_output"
OUTPUTS = {call + SUFFIX: call for call in CALLS}
"""The items that answer them; an answer to a call of another kind is refused."""

PROGRAM_ITEMS = frozenset(
    {"mcp_approval_response", "compaction_trigger", "configuration_update", "additional_tools", *OUTPUTS}
)
"""Items beside messages that the program writes; all others come from the provider."""

# fmt: off
PROVIDER_ITEMS = CALLS | frozenset({
    "reasoning", "compaction", "item_reference", "web_search_call", "file_search_call", "code_interpreter_call",
    "image_generation_call", "tool_search_call", "tool_search_output", "mcp_list_tools", "mcp_approval_request",
    "mcp_call", "program", "program_output",
})
# fmt: on

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}

INPUT_PARTS = frozenset({"input_text", "input_image", "input_file"})
OUTPUT_PARTS = frozenset({"output_text", "refusal"})
PARTS = {
    "user": INPUT_PARTS | {"input_audio"},
    "system": INPUT_PARTS,
    "developer": INPUT_PARTS,
    "assistant": OUTPUT_PARTS,
}
"""Parts that each role may say."""

KNOWN_PARTS = frozenset().union(*PARTS.values())


def author(type: str) -> Role:
    """Return whose an item is that is no message."""
    return "user" if type in PROGRAM_ITEMS else "assistant"
