"""The facts about one model that the rest of Windowsill needs."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

Count: TypeAlias = Annotated[int, msgspec.Meta(gt=0)]
Ratio: TypeAlias = Annotated[float, msgspec.Meta(ge=0.25, le=4.0)]
Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0.0)]
Cache: TypeAlias = Literal["explicit", "automatic", "none"]
ReasoningContent: TypeAlias = Literal["required", "kept", "refused"]
SizeClass: TypeAlias = Literal["large", "balanced", "small"]


class Ratios(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Billed tokens for each counted token at the start, by kind of content."""

    prose: Ratio = 1.0
    code: Ratio = 1.0
    json: Ratio = 1.0
    cjk: Ratio = 1.0


class PriceList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices the user states, in dollars for a million tokens; cache prices follow from `input` when left out."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None


class Demands(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model demands of the messages of a request beyond what their format says."""

    bound_reasoning: bool = False
    """Signed reasoning comes only with the past it was written after."""
    no_reasoning: bool = False
    """A chat message comes without its reasoning."""
    signed_calls: bool = False
    """A call comes with a signature."""


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model is. `window`, `max_input` and `max_output` are three different limits."""

    name: str
    provider: str
    family: str
    window: Count
    """Tokens of a request and its answer together."""
    max_input: Count
    """Tokens of a request alone."""
    max_output: Count
    tokenizer: str
    """The name of a counter, or the path of a `tokenizer.json`."""
    exact: bool = False
    """Whether `tokenizer` is the model's own: nothing to calibrate then."""
    ratio: Ratios = Ratios()
    framing: str
    image_rule: str
    cache: Cache
    cache_minimum: Annotated[int, msgspec.Meta(ge=0)]
    """Tokens a prefix must have to be cached."""
    cache_lifetime: Annotated[int, msgspec.Meta(ge=0)]
    """Seconds a cached prefix lives without use."""
    binds_reasoning: bool = False
    """Whether signed reasoning is only accepted while everything before it is unchanged."""
    signs_calls: bool = False
    """Whether a call is only accepted with the model's signature, or with a word in its place."""
    reasoning_content: ReasoningContent = "kept"
    """What becomes of unsigned reasoning beside a message of an OpenAI-like format: the model wants it back with every
    message of the assistant; takes it as it came, or ignores it; or refuses a message that has it."""
    request_bytes: Count | None = None
    media_count: Count | None = None
    media_bytes: Count | None = None
    """Bytes one picture or document may have."""
    small_sibling: str | None = None
    """A cheap model of the same provider that can write summaries."""
    size: SizeClass = "balanced"
    prices: PriceList | None = None
    """Stated by the user; otherwise prices come from the price data."""

    @property
    def demands(self) -> Demands:
        """What the messages of a request must look like."""
        return Demands(
            bound_reasoning=self.binds_reasoning,
            no_reasoning=self.reasoning_content == "refused",
            signed_calls=self.signs_calls,
        )
