"""The names of the tools that Windowsill itself offers to a model."""

READ_TOOL = "tool_output_cache"
GREP_TOOL = "tool_output_cache_grep"
SEARCH_TOOL = "history_search"
MESSAGE_TOOL = "history_read"
STATUS_TOOL = "context_status"

OWN_TOOLS = frozenset({READ_TOOL, GREP_TOOL, SEARCH_TOOL, MESSAGE_TOOL, STATUS_TOOL})

ECHOES = frozenset({SEARCH_TOOL, MESSAGE_TOOL, STATUS_TOOL})
"""Those whose answers only repeat what the history holds; an output that is read may stand nowhere else in it."""
