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
        (
            "Please reduce the length of the messages or completion. Current length is 132784 while limit is 131000",
            131_000,
        ),
        ("The prompt is too long: 1000008, model maximum context length: 131071", 131_071),
        ("The input (1000016 tokens) is longer than the model's context length (131072 tokens).", 131_072),
        ("The input is longer than the model's context length of 2048", 2_048),
        ("Error: this request is above the maximum context limit of 8192", 8_192),
        (
            "too many tokens: size limit exceeded by 713295 tokens. The limit for this model is 288000 tokens.",
            288_000,
        ),
        ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.", 4_081),
        (
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens",
            131_072,
        ),
        (
            "Requested token count exceeds the model's maximum context length of 8192 tokens.",
            8_192,
        ),
        (
            "the model's context length is only 4096 tokens, resulting in a maximum input length of 4095 tokens",
            4_096,
        ),
        ("Input length 300000 exceeds the maximum allowed input length of 262144 tokens.", 262_144),
        ("Prompt has 150,000 tokens, but the configured context size is 128,000 tokens", 128_000),
        ("`inputs` must have less than 4096 tokens. Given: 5000", 4_096),
        ("Too many input tokens. Max input tokens: 8192, request input token count: 9000", 8_192),
        ("the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model", 4_096),
        (
            "The maximum context length of Meta-Llama-3.1-8B is 16384. However, answering will take 17000",
            16_384,
        ),
        ("Request body too large for gpt-4o model. Max size: 8000 tokens.", 8_000),
        ("Prompt length (5000) exceeds maximum input length (4096). Set log level to info", 4_096),
        ("Request length 5000 is greater than max_seq_len 4096", 4_096),
        (
            "However, the model is loaded with context length of only 4096 tokens, which is not enough.",
            4_096,
        ),
        (
            "litellm.ContextWindowExceededError: This model's maximum context length is 128000 tokens.",
            128_000,
        ),
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
        "the request exceeds the available context size, try increasing it",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        "Prompt exceeds max length",
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs",
        "input length and `max_tokens` exceed context limit",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
        "The total length of all messages is too long.",
        "the input length exceeds the context length",
        "input length exceeds maximum context length",
        "litellm.ContextWindowExceededError: the window of this model is full",
        '{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
        "Request exceeds the maximum allowed number of bytes. The maximum request size is 32 MB.",
        "Request payload size exceeds the limit: 20971520 bytes.",
        "<html><head><title>413 Request Entity Too Large</title></head></html>",
        "input is too long",
        "token limit exceeded for this model",
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
        "Throttling error: Too many tokens, please wait before trying again.",
        "Invalid 'metadata': maximum input length is 512 characters.",
        "Invalid 'metadata.note': maximum input length is 512",
        "Invalid 'user': input is too long, maximum length is 64",
        "Invalid 'messages[0].content': string too long. Expected a string with maximum length 1048576",
        "Invalid 'messages': array too long. Expected an array with maximum length 2048",
        "Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096, but got 8192 instead.",
        "max_tokens is too large: 200000. This model supports at most 128000 completion tokens",
        "too many tokens: max tokens must be less than or equal to 4096, the maximum output length for this model",
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5930624 bytes > 5242880 bytes",
        "Too many images in request. Maximum is 100.",
        "At least one of the image dimensions exceed max allowed size: 8000 pixels",
        "tools: too many tools, the maximum is 128",
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
