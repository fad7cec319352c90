"""Which kinds of items there are, and which of them belong together."""

from __future__ import annotations

from windowsill.messages import Role

FUNCTION = "function_call"
CUSTOM = "custom_tool_call"
COMPUTER = "computer_call"
LOCAL_SHELL = "local_shell_call"
SHELL = "shell_call"
PATCH = "apply_patch_call"

CALLS = frozenset({FUNCTION, CUSTOM, COMPUTER, LOCAL_SHELL, SHELL, PATCH})
"""Calls that the program answers."""

SUFFIX = "_output"
OUTPUTS = {call + SUFFIX: call for call in CALLS}
"""The items that answer them; an answer to a call of another kind is refused."""

SAID_BY_PROGRAM = frozenset(
    {"mcp_approval_response", "compaction_trigger", "configuration_update", "additional_tools", *OUTPUTS}
)
"""Items beside messages that the program writes; all others come from the provider."""

SAID_BY_PROVIDER = frozenset(
    {
        "reasoning",
        "compaction",
        "item_reference",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "tool_search_call",
        "tool_search_output",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_call",
        "program",
        "program_output",
        *CALLS,
    }
)

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}

INPUT_PARTS = frozenset({"input_text", "input_image", "input_file"})
OUTPUT_PARTS = frozenset({"output_text", "refusal"})
PARTS = {
    "user": INPUT_PARTS | {"input_audio"},
    "system": INPUT_PARTS,
    "developer": INPUT_PARTS,
    "assistant": OUTPUT_PARTS,
}
"""What each role may say."""

KNOWN_PARTS = frozenset().union(*PARTS.values())


def author(type: str) -> Role:
    """Whose an item is that is no message."""
    return "user" if type in SAID_BY_PROGRAM else "assistant"
