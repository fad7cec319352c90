"""The scale: weighs messages, texts and tools for one model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, Tool, ToolResult, ToolUse, Unknown
from windowsill.tokens.counters import Counter, Framing, function_tokens, json_text
from windowsill.tokens.media import (
    ImageRule,
    decoded_size,
    document_text,
    file_tokens,
    image_tokens,
    inline_data,
    read_file,
)


class Weight(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True, gc=False):
    """The weight of something, before any calibration; adding two gives the weight of both.

    Tokens are kept apart by kind of content, because the ratio between a vocabulary and what a provider bills differs
    by kind: a weight is counted once and stays right when the calibration learns.
    """

    prose: int = 0
    code: int = 0
    json: int = 0
    cjk: int = 0
    fixed: int = 0
    """Tokens that no calibration changes: pictures and documents by the provider's rule."""
    overhead: int = 0
    """Tokens of the framing around messages, calls and tools."""
    bytes: int = 0
    """Bytes on the wire."""
    media: int = 0
    """Pictures and documents."""
    media_bytes: int = 0
    """Their decoded size, all together."""

    def __add__(self, other: Weight) -> Weight:
        return Weight(
            self.prose + other.prose,
            self.code + other.code,
            self.json + other.json,
            self.cjk + other.cjk,
            self.fixed + other.fixed,
            self.overhead + other.overhead,
            self.bytes + other.bytes,
            self.media + other.media,
            self.media_bytes + other.media_bytes,
        )

    def __sub__(self, other: Weight) -> Weight:
        return Weight(
            self.prose - other.prose,
            self.code - other.code,
            self.json - other.json,
            self.cjk - other.cjk,
            self.fixed - other.fixed,
            self.overhead - other.overhead,
            self.bytes - other.bytes,
            self.media - other.media,
            self.media_bytes - other.media_bytes,
        )


Kind: TypeAlias = Literal["prose", "code", "json", "cjk"]

KINDS: tuple[Kind, ...] = ("prose", "code", "json", "cjk")

SAMPLE = 500
"""Characters looked at, at the start, in the middle and at the end."""

CJK_SHARE = 0.2
"""One such character is about one token, a Latin word about five characters: a fifth of the characters is half of the
tokens."""

JSON_SHARE = 0.04
"""Quotation marks, colons and commas among the characters of a text that opens and closes like JSON."""

CODE_SHARE = 0.035
"""Signs of code per character: dialogues and documents have up to 0.03, source code has about 0.055."""

FEW = 2
"""Signs that a short sentence may have: one pair of brackets."""

_CJK = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")
_JSON_SIGNS = b'":,'
_CODE_SIGNS = b"{}()[];=<>/_\\&$+^~\t"  # without the signs of Markdown, which is prose


def kind_of(text: str) -> Kind:
    """Guess the kind that most of `text` is."""
    sample = text
    if len(text) > 3 * SAMPLE:
        middle = len(text) // 2
        sample = text[:SAMPLE] + text[middle : middle + SAMPLE] + text[-SAMPLE:]
    size = len(sample)
    if not size:
        return "prose"
    if not sample.isascii() and len("".join(_CJK.findall(sample))) > CJK_SHARE * size:
        return "cjk"
    letters = sample.encode("ascii", "ignore")
    body = letters.strip()
    if body[:1] in (b"{", b"[") and body[-1:] in (b"}", b"]") and _count(letters, _JSON_SIGNS) > JSON_SHARE * size:
        return "json"
    return "code" if _count(letters, _CODE_SIGNS) > max(FEW, CODE_SHARE * size) else "prose"


def _count(text: bytes, signs: bytes) -> int:
    return len(text) - len(text.translate(None, signs))


Matrix: TypeAlias = tuple[tuple[float, ...], ...]

LOWEST, HIGHEST = 0.25, 4.0
"""No two vocabularies in use differ by more; a ratio beyond is a mistake in the data."""

SPREAD = 0.3
"""Standard deviation of a starting ratio: nearly all pairs of current tokenizers are within a third of each other, and
servers that count by a rule of their own are further off."""

WIDEST = 1.5
"""Standard deviation that a surprise may open a ratio to: all that `LOWEST` and `HIGHEST` allow."""

KINSHIP = 0.7
"""Correlation between kinds at the start: a tokenizer that is finer on prose is finer on code too, so that what is
learnt from one kind carries over to those not seen yet."""

NOISE = 0.1
"""Relative spread of single requests around a true ratio, as seen on recorded sessions of a coding agent."""

NOISE_FLOOR = 10.0
"""Tokens of spread that even a short request has: framing that nobody publishes."""

MEMORY = 0.995
"""Forgetting factor: the last 200 observations count, so that a tokenizer that changed is learnt anew."""

TRUST = 2.0
"""Standard deviations beyond which a surprise moves the ratio no further, and opens it for the next observation."""

SMALLEST = 50
"""Fewer counted tokens than this say nothing about a ratio."""

NONSENSE = 1_000_000_000
"""More tokens than this were never in one request."""

ERROR_SPAN = 50
"""Predictions that the shown error is averaged over."""

WORST_ERROR = 100.0
"""Percent at which one prediction's error is cut, so that one nonsense usage does not hide the others."""


def _prior() -> Matrix:
    variance = SPREAD * SPREAD
    size = range(len(KINDS))
    return tuple(tuple(variance * (1.0 if i == j else KINSHIP) for j in size) for i in size)


class Calibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """Billed tokens for each counted token, by kind, and how far off the last predicted totals were."""

    prose: float = 1.0
    code: float = 1.0
    json: float = 1.0
    cjk: float = 1.0
    media: float = 1.0
    """The share of the tokens of pictures and documents, by the published rule, that the provider counts."""
    observations: int = 0
    error: float = 0.0
    """Mean absolute error of the totals predicted before each observation, in percent."""
    fixed: bool = False
    """True for an exact tokenizer: the ratios stay, only the error is followed."""
    covariance: Matrix = ()

    @classmethod
    def starting(cls, ratio: float | Mapping[str, float]) -> Calibration:
        """Return a calibration that knows only the model's starting ratio, for all kinds or by kind."""
        by_kind = ratio if isinstance(ratio, Mapping) else dict.fromkeys(KINDS, ratio)
        prose, code, json, cjk = (_clip(float(by_kind.get(kind, 1.0))) for kind in KINDS)
        return cls(prose, code, json, cjk, covariance=_prior())

    @classmethod
    def exact(cls) -> Calibration:
        """Return the calibration of a tokenizer that needs none."""
        return cls(fixed=True)

    def estimate(self, weight: Weight) -> float:
        """Estimate the tokens a provider would bill for `weight`."""
        return (
            self.prose * weight.prose
            + self.code * weight.code
            + self.json * weight.json
            + self.cjk * weight.cjk
            + self.media * weight.fixed
            + weight.overhead
        )

    def estimates(self, weights: Iterable[Weight]) -> list[float]:
        """Estimate each of many weights: plans ask for thousands of them, and a call for each would be felt."""
        prose, code, json, cjk, media = self.prose, self.code, self.json, self.cjk, self.media
        return [
            prose * weight.prose
            + code * weight.code
            + json * weight.json
            + cjk * weight.cjk
            + media * weight.fixed
            + weight.overhead
            for weight in weights
        ]

    def observe(
        self, counted: Weight, reported: int, *, total: tuple[float, int] | None = None, doubt: float = 0.0
    ) -> Calibration:
        """Learn that a provider reported `reported` tokens for what we count as `counted`.

        Give the difference between two requests where there are two: what both contain, known or not, then cancels
        out. `total` is what was predicted and reported for the whole request, of which the error is shown; `doubt` are
        tokens that `reported` may have besides.
        """
        counts = (counted.prose, counted.code, counted.json, counted.cjk)
        if sum(map(abs, counts)) > NONSENSE or abs(reported) > NONSENSE:
            return self
        predicted = self.estimate(counted)
        foreseen, billed = total or (predicted, reported)
        if not 0 < billed <= NONSENSE:
            return self
        seen = self.observations + 1
        off = min(WORST_ERROR, 100.0 * abs(foreseen - billed) / billed)
        judged = msgspec.structs.replace(
            self, observations=seen, error=self.error + (off - self.error) / min(seen, ERROR_SPAN)
        )
        if self.fixed or not _says_a_ratio(counts, reported - counted.fixed - counted.overhead, doubt):
            return judged
        (prose, code, json, cjk), covariance = self._learn(counts, reported - predicted, doubt)
        return msgspec.structs.replace(judged, prose=prose, code=code, json=json, cjk=cjk, covariance=covariance)

    def _learn(self, counts: tuple[int, ...], surprise: float, doubt: float) -> tuple[list[float], Matrix]:
        before = self.covariance or _prior()
        start = (self.prose, self.code, self.json, self.cjk)
        gain = [sum(cell * count for cell, count in zip(row, counts, strict=True)) for row in before]
        known = max(0.0, sum(count * value for count, value in zip(counts, gain, strict=True)))
        size = sum(abs(count) * ratio for count, ratio in zip(counts, start, strict=True))
        noise = (NOISE * size + NOISE_FLOOR) ** 2 + doubt**2
        limit = TRUST * math.sqrt(known + noise)
        step = max(-limit, min(limit, surprise)) / (known + noise)
        ratios = [_clip(ratio + step * value) for ratio, value in zip(start, gain, strict=True)]
        kinds = range(len(start))
        if abs(surprise) > limit:
            # A surprise that was cut is nonsense, or the ratio is another one: the next observation decides. What may
            # be a constant of the provider's opens nothing.
            wider = 1.0 if doubt else (surprise / limit) ** 2
            after, most = [[cell * wider for cell in row] for row in before], WIDEST
        else:
            after = [[(before[i][j] - gain[i] * gain[j] / (known + noise)) / MEMORY for j in kinds] for i in kinds]
            # Forgetting must not grow the doubt about kinds that never come beyond what it was at the start.
            most = SPREAD
        shrink = [min(1.0, max(most, math.sqrt(before[i][i])) / math.sqrt(max(after[i][i], 1e-12))) for i in kinds]
        return ratios, tuple(tuple(after[i][j] * shrink[i] * shrink[j] for j in kinds) for i in kinds)

    def lowered(self, counted: Weight, reported: int) -> Calibration:
        """Return the calibration that explains a report below the estimate: nobody takes tokens away.

        Pictures and documents are taken to weigh less first: their rule is the surest to be off, and text that comes
        next is not counted too low for it. Only what they cannot explain is taken from the text.
        """
        surplus = self.estimate(counted) - reported
        if surplus <= 0:
            return self
        media = min(surplus, counted.fixed)
        text = self.estimate(counted) - counted.fixed - counted.overhead
        factor = 1 - (surplus - media) / text if text > surplus - media else 1.0
        return msgspec.structs.replace(
            self,
            media=1 - media / counted.fixed if media else 1.0,
            **{kind: _clip(getattr(self, kind) * factor) for kind in KINDS},
        )


def _says_a_ratio(counts: tuple[int, ...], reported: float, doubt: float) -> bool:
    """Tell whether ratios that exist can explain a report: the rest is a part that the provider added or took away."""
    if sum(map(abs, counts)) < SMALLEST:
        return False
    ends = [(count * LOWEST, count * HIGHEST) for count in counts]
    slack = NOISE_FLOOR + doubt
    return sum(map(min, ends)) - slack <= reported <= sum(map(max, ends)) + slack


def _clip(ratio: float) -> float:
    return max(LOWEST, min(HIGHEST, ratio))


RULES = 2
"""Raised when messages are weighed by other rules: what was weighed by the old ones is weighed again."""

ENVELOPE = 48
"""Bytes of the JSON around one block or message that was made here: braces, keys, role, type."""

LARGEST_FIELD = 1_000
"""Bytes from which on a block of an unknown kind is looked into for an encoded file."""

SLACK = 200
"""Bytes around a block or message that no model sees: keys, types, flags and marks of a cache."""

REST_BYTES = 3
"""Bytes for each token of what no rule is known for: this undercounts no language."""

USUAL_ID, USUAL_NAME = 64, 40
"""Characters of ids and names of arguments up to which the framing of a call contains them."""

OPAQUE_CHARS = 4
"""Characters for each token of encrypted reasoning, which nobody but the provider can count."""


class Scale:
    """Weighs for one model. A message is weighed once; `tokens` is what its weight means today."""

    def __init__(
        self, counter: Counter, *, framing: Framing, images: ImageRule, calibration: Calibration | None = None
    ) -> None:
        self.counter = counter
        self.framing = framing
        self.images = images
        self.calibration = calibration or Calibration.exact()
        self.name = f"{counter.name}/{framing.name}/{images.name}/{RULES}"
        """The names of all that a weight depends on: two scales of one name weigh alike."""
        self.frame = Weight(overhead=framing.reply)
        """The weight of a request before its first message."""

    def weigh(self, message: Message) -> Weight:
        """Weigh one message, its framing included."""
        pan = _Pan(self)
        for block in message.blocks:
            pan.put(block)
        if message.raw is not None:
            pan.put_name(message.raw)
        size = pan.bytes + ENVELOPE
        if message.raw is not None and not message.edited:
            pan.put_rest(message.raw, size)
            size = len(message.raw)
        return pan.weight(self.framing.message, size)

    def weigh_text(self, text: str) -> Weight:
        """Weigh bare text, without any framing."""
        pan = _Pan(self)
        pan.put_text(text, kind_of(text))
        return pan.weight(0, pan.bytes)

    def count(self, text: str) -> int:
        """Count the tokens of a text that is a message of its own: as `tokens` of its weight, in half the steps."""
        ratio: float = getattr(self.calibration, kind_of(text))
        return math.ceil(ratio * self.counter.count(text) + self.framing.message)

    def weigh_tools(self, tools: Sequence[Tool]) -> Weight:
        """Weigh the tool definitions of a request."""
        if not tools:
            return Weight()
        framing, size, tokens = self.framing, 0, 0
        for tool in tools:
            text = json_text(tool)
            size += len(text.encode()) if tool.raw is None else len(tool.raw)
            if framing.definitions == "functions":
                tokens += function_tokens(tool, self.counter)
            else:
                tokens += self.counter.count(text)
        return Weight(json=tokens, overhead=framing.tools + framing.tool * len(tools), bytes=size)

    def tokens(self, weight: Weight) -> int:
        """Estimate the tokens the provider will count for `weight`, rounded up."""
        return math.ceil(self.calibration.estimate(weight))

    def each(self, weights: Iterable[Weight]) -> list[int]:
        """Estimate the tokens of each of many weights, rounded up."""
        return list(map(math.ceil, self.calibration.estimates(weights)))


class _Pan:
    """Adds up the blocks of one message."""

    __slots__ = ("bytes", "cjk", "code", "count", "fixed", "json", "media", "media_bytes", "overhead", "prose", "scale")

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.count = scale.counter.count
        self.prose = self.code = self.json = self.cjk = 0
        self.fixed = self.overhead = self.bytes = self.media = self.media_bytes = 0

    def weight(self, overhead: int, size: int) -> Weight:
        return Weight(
            self.prose,
            self.code,
            self.json,
            self.cjk,
            self.fixed,
            self.overhead + overhead,
            size,
            self.media,
            self.media_bytes,
        )

    def put(self, block: Block) -> None:
        before = self.bytes
        self.bytes += ENVELOPE
        self._put_block(block)
        if block.raw is not None:
            self.put_rest(block.raw, self.bytes - before)

    def put_name(self, raw: bytes) -> None:
        """Count the name of who speaks, where a message has one."""
        if b'"name"' in raw:
            try:
                name = _name_of(raw)
            except (msgspec.DecodeError, UnicodeDecodeError):
                return
            if name:
                self.overhead += self.count(name) + 1
                self.bytes += len(name)

    def put_rest(self, raw: bytes, known: int) -> None:
        """Count what is sent beside the parts that were read, such as fields that this version does not know."""
        if len(raw) <= known + SLACK:
            return
        try:
            # Spaces and escaped letters are bytes that no model sees.
            size = len(msgspec.json.encode(msgspec.json.decode(raw)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            size = len(raw)
        if size > known + SLACK:
            self.overhead += (size - known) // REST_BYTES
            self.bytes += size - known

    def _put_block(self, block: Block) -> None:
        if isinstance(block, Text):
            self.put_text(block.text, kind_of(block.text))
        elif isinstance(block, ToolResult):
            self.overhead += self.scale.framing.result
            self._put_id(block.tool_use_id)
            for inner in block.content:
                self.put(inner)
        elif isinstance(block, ToolUse):
            self._put_call(block)
        elif isinstance(block, Reasoning):
            self._put_reasoning(block)
        elif isinstance(block, Image):
            self._put_media(block, image_tokens(block, self.scale.images))
        elif isinstance(block, Document):
            self._put_document(block)
        else:
            self._put_unknown(block)

    def put_text(self, text: str, kind: Kind) -> None:
        self._add(self.count(text), kind)
        self.bytes += _wire_bytes(text)

    def _add(self, tokens: int, kind: Kind) -> None:
        if kind == "prose":
            self.prose += tokens
        elif kind == "code":
            self.code += tokens
        elif kind == "json":
            self.json += tokens
        else:
            self.cjk += tokens

    def _put_id(self, id: str) -> None:
        self.bytes += len(id)
        if self.scale.framing.ids or len(id) > USUAL_ID:
            self.overhead += self.count(id)

    def _put_call(self, call: ToolUse) -> None:
        framing = self.scale.framing
        self.overhead += framing.call
        self._put_id(call.id)
        self.put_text(call.name, "json")
        self.bytes += _wire_bytes(call.arguments)
        values = _arguments(call) if framing.argument else None
        if values is None:
            self.json += self.count(call.arguments)
            return
        self.overhead += framing.argument * len(values)
        for name, value in values.items():
            if len(name) > USUAL_NAME:
                self.json += self.count(name)
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            self._add(self.count(text), "cjk" if kind_of(text) == "cjk" else "json")

    def _put_reasoning(self, block: Reasoning) -> None:
        if block.text:
            shown = self.count(block.text)
            self._add(
                math.ceil(shown * self.scale.framing.reasoning) if block.signature else shown, kind_of(block.text)
            )
            self.bytes += _wire_bytes(block.text)
        # A signature is proof, not prompt: providers bill the reasoning it signs, nothing for itself.
        self.bytes += len(block.signature or "")
        if block.data:
            self.overhead += -(-len(block.data) // OPAQUE_CHARS)
            self.bytes += len(block.data)

    def _put_document(self, block: Document) -> None:
        if block.title:
            self.put_text(block.title, kind_of(block.title))
        text = document_text(block)
        if text is None:
            self._put_media(block, file_tokens(block, self.scale.images))
        else:
            self.put_text(text, kind_of(text))

    def _put_media(self, block: Image | Document, tokens: int) -> None:
        self.fixed += tokens
        self.media += 1
        self.media_bytes += media_size(block)
        self.bytes += len(block.data or "") + len(block.url or "")

    def _put_unknown(self, block: Unknown) -> None:
        if block.raw is None:
            return
        self.bytes += len(block.raw)
        if len(block.raw) > LARGEST_FIELD and (found := read_file(block.raw)) is not None:
            # Sound and film are blocks of a kind of their own with some providers.
            self.fixed += file_tokens(found, self.scale.images)
        else:
            self.json += self.count(block.raw.decode("utf-8", "replace"))


class _Named(msgspec.Struct):
    name: Any = None


_decode_named = msgspec.json.Decoder(_Named).decode


def _name_of(raw: bytes) -> str:
    name = _decode_named(raw).name
    return name if isinstance(name, str) else ""


def _arguments(call: ToolUse) -> dict[str, Any] | None:
    try:
        return call.input
    except UnicodeEncodeError:  # half of a surrogate pair: no JSON, but still to be counted
        return None


def media_size(block: Image | Document) -> int:
    """Count the decoded bytes of a picture or document that travels inline; 0 for an address."""
    data = inline_data(block.data, block.url)
    return decoded_size(data) if data else 0


def _wire_bytes(text: str) -> int:
    """Count the bytes of a text inside JSON, quotes and escapes included."""
    try:
        return len(msgspec.json.encode(text))
    except UnicodeEncodeError:
        return len(msgspec.json.encode(text.encode("utf-8", "replace").decode()))
