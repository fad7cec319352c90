"""Reading providers' overflow errors: they name the window that really holds."""

from __future__ import annotations

import re

LONGEST = 20_000
"""Characters of a message that are read; error messages quote whole requests at times."""

SMALLEST_WINDOW = 256
"""A smaller number in such a message is an error code, not a window."""

MOST_OVER = 20
"""A number further above the limit than this is no token count: a time, a request id."""

_NUMBER = r"(\d[\d,_]*)"
_NUMBERS = re.compile(_NUMBER)

# Each names the limit in its one group. The forms of Anthropic, OpenAI and those who speak its protocol (DeepSeek,
# vLLM, Groq), Gemini, llama.cpp, Mistral, xAI, Qwen, Kimi, Cohere, TGI, Copilot and LM Studio.
_LIMITS = tuple(
    re.compile(form.replace("N", _NUMBER), re.IGNORECASE)
    for form in (
        r"prompt is too long: \d[\d,_]* tokens > N maximum",
        r"exceed context limit: \d[\d,_]* \+ \d[\d,_]* > N",
        r"exceeds? the maximum number of tokens allowed \(?N",
        r"token count is \d[\d,_]* but model only supports up to N",
        r"maximum (?:context|prompt|model|input) length (?:is|of) (?:only )?N",
        r"configured limit of N tokens",
        r"exceeds? the available context size \(N",
        r"\"n_ctx\": ?N",
        r"with N maximum context length",
        r"range of input length should be \[\d+, ?N\]",
        r"exceeded model token limit:? N",
        r"tokens in the prompt exceeds? (?:the )?limit of N",
        r"max_new_tokens` must be <= N",
        r"prompt token count of \d[\d,_]* exceeds the limit of N",
        r"loaded with context length of only N",
        r"context (?:window|length) (?:is|of) N tokens",
    )
)

_SIGNS = re.compile(
    r"context[_ ]length[_ ]exceeded|exceed_context_size|model_context_window_exceeded|prompt (?:is )?too long"
    r"|input is too long for|too many input tokens|exceeds? the (?:model's )?context (?:window|length|limit)"
    r"|context window exceeds|exceeded max context length|longer than the maximum model length"
    r"|reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE,
)


def learn_window(message: str) -> int | None:
    """Read the limit in tokens that an overflow error names; `None` when it names none, or is another error."""
    text = message[:LONGEST]
    for form in _LIMITS:
        match = form.search(text)
        if match:
            limit = int(match[1].replace(",", "").replace("_", ""))
            return limit if limit >= SMALLEST_WINDOW else None
    return None


def learn_count(message: str) -> int | None:
    """Read the tokens the provider counted in the refused request: the next number above the limit, if any."""
    window = learn_window(message)
    if window is None:
        return None
    numbers = (int(found.replace(",", "").replace("_", "")) for found in _NUMBERS.findall(message[:LONGEST]))
    return min((number for number in numbers if window < number <= window * MOST_OVER), default=None)


def is_overflow(message: str) -> bool:
    """Tell whether an error says that the request did not fit the model's window."""
    return learn_window(message) is not None or _SIGNS.search(message[:LONGEST]) is not None
