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

# Each names the limit in its one group, written N. They are the forms of Anthropic, of OpenAI and those who speak its
# protocol (DeepSeek, vLLM, SGLang, Groq, OpenRouter, Azure), of Gemini and Vertex, llama.cpp, Mistral, xAI, Qwen, Kimi,
# Cohere, TGI, Copilot, LM Studio, Cerebras, Fireworks, Together, Bedrock, watsonx, SambaNova, GitHub and others.
_LIMITS = tuple(
    re.compile(form.replace("N", _NUMBER).replace("#", r"\d[\d,_]*"), re.IGNORECASE)
    for form in (
        r"prompt is too long: # tokens > N maximum",
        r"exceed context limit: # \+ # > N",
        r"exceeds? the maximum number of tokens allowed \(?N",
        r"token count is # but model only supports up to N",
        r"context length (?:of|is) only N",
        r"max(?:imum)? (?:context|prompt|model) (?:length|limit|window|size)(?: is| of| of \S+ is|:)? (?:only )?\(?N",
        r"max(?:imum)? (?:allowed )?input length (?:is|of) N tokens",
        r"prompt length \(#\) exceeds maximum input length \(N",
        r"configured (?:limit of|context size is) N tokens",
        r"exceeds? the available context size \(N",
        r"\"n_ctx\": ?N",
        r"with N maximum context length",
        r"range of input length should be \[\d+, ?N\]",
        r"exceeded model token limit:? N",
        r"tokens in the prompt (?:exceeds? (?:the )?limit of|cannot exceed) N",
        r"max_new_tokens` must be <= N",
        r"`inputs` must have less than N tokens",
        r"prompt token count of # exceeds the limit of N",
        r"context (?:window|length) (?:is |of )?\(?N tokens",
        r"longer than the model's context length (?:of )?\(?N",
        r"current length is # while limit is N",
        r"size limit exceeded by # tokens.*?limit for this model is N tokens",
        r"max input tokens: N, request input token count",
        r"number of input tokens # cannot exceed the total tokens limit N",
        r"request body too large for .{1,99}? model\. max size: N tokens",
        r"is greater than max_seq_len N",
    )
)

_SIGNS = re.compile(
    r"context[_ ]length[_ ]exceeded|exceed_context_size|model_context_window_exceeded|ContextWindowExceeded"
    r"|(?:prompt|input) (?:is )?too long|prompt exceeds max(?:imum)? length|total length of all messages is too long"
    r"|too many (?:input )?tokens:|too many input tokens|input tokens exceeded|token limit exceeded"
    r"|tokens_limit_reached"
    r"|(?:exceeds?|exceeded|(?:longer|greater) than) (?:the |model's |maximum |max |available )*"
    r"(?:context|model) (?:window|length|limit|size)"
    r"|context window exceeds|reduce the length of the (?:messages|prompt|input)"
    # Too many bytes: fewer messages are the remedy here too.
    r"|request_too_large|request exceeds the maximum (?:size|allowed number of bytes)|request payload size exceeds"
    r"|(?:payload|request entity|content) too large",
    re.IGNORECASE,
)

_OTHER = re.compile(
    r"tokens per (?:minute|min|hour|day)\b|\bTP[MD]\b|rate[ _-]?limit|too many requests|throttl"
    r"|maximum (?:allowed )?(?:number of )?output|(?:string|array) (?:is )?too long|above_max_length"
    r"|invalid '(?!(?:messages|input|prompt|contents)\b)|\d (?:characters|chars)\b",
    re.IGNORECASE,
)
"""Words about another limit: that of a minute, of the answer, of one field, of the characters in a text."""


def learn_window(message: str) -> int | None:
    """Read the limit in tokens that an overflow error names; `None` when it names none, or is another error."""
    text = message[:LONGEST]
    if _OTHER.search(text):
        return None
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
    """Tell whether an error says that the request did not fit the model's window, or is too large to be sent."""
    text = message[:LONGEST]
    return learn_window(text) is not None or (_SIGNS.search(text) is not None and _OTHER.search(text) is None)
