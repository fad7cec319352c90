import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.models import is_overflow, learn_window

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("message", "window"),
    [
        ("prompt is too long: 215000 tokens > 200000 maximum", 200_000),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease it", 200_000),
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
            128_000,
        ),
        (
            "Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in 300,004 tokens.",
            272_000,
        ),
        ("The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("The input token count is 40000 but model only supports up to 32767", 32_767),
        ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 4_096),
        ("the request exceeds the available context size (8192 tokens)", 8_192),
        ('{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}', 4_096),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4_096),
        ("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", 4_096),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            32_768,
        ),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072),
        ("Range of input length should be [1, 129024]", 129_024),
        ("Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)", 262_144),
        ("too many tokens: total number of tokens in the prompt exceeds limit of 4081", 4_081),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens", 4_096),
        ("prompt token count of 140000 exceeds the limit of 128000", 128_000),
    ],
)
def test_overflow_errors_teach_the_window(message, window):
    """The limit in each provider's overflow error is read (T8)."""
    assert learn_window(message) == window
    assert is_overflow(message)


@pytest.mark.parametrize(
    "message",
    [
        "Error code: 400 - {'error': {'code': 'context_length_exceeded'}}",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "Input is too long for requested model.",
        "prompt too long; exceeded max context length by 12 tokens",
        "invalid params, context window exceeds limit (2013)",
        "context_length_exceeded: maximum context length is 12",
        "Please reduce the length of the messages or completion.",
    ],
)
def test_overflow_without_a_number(message):
    """An overflow that names no limit is one, and teaches none."""
    assert is_overflow(message)
    assert learn_window(message) is None


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Rate limit reached for gpt-4o: Limit 30000, Used 29000, Requested 5000 tokens per min",
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 55000",
        "Request exceeds the maximum allowed number of bytes. The maximum request size is 32 MB.",
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
        "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after",
        "Overloaded",
    ],
)
def test_other_errors_are_no_overflow(message):
    """Rate limits, request sizes, output limits and broken requests teach no window."""
    assert not is_overflow(message)
    assert learn_window(message) is None


@given(st.text(max_size=500))
def test_any_message_is_read(message):
    """No message makes reading fail."""
    assert learn_window(message) is None or learn_window(message) >= 256
