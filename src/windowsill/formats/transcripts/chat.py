"""Conversations of agents whose own wire format is none of ours: built as messages, written in OpenAI's chat form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from windowsill.formats.foreign import is_web, split_data_url
from windowsill.formats.openai.read import NAME
from windowsill.formats.openai.render import render_message
from windowsill.formats.transcripts.charges import Charge, charge
from windowsill.formats.transcripts.transcript import Recorded
from windowsill.formats.wire import any_decoder, encode
from windowsill.messages import Block, Image, Message, Role, ToolResult


class Turn(msgspec.Struct, kw_only=True):
    """One message of the conversation; blocks are added to it as they come. Without any it is a call and no message."""

    role: Role
    blocks: list[Block]
    at: float | None = None
    usage: bytes | None = None
    key: str | None = None
    """What tells the call from the others of its family; see `Charge.key`."""
    model: str | None = None
    prompt: bool = False
    """Whether a person wrote it."""

    @property
    def answers(self) -> bool:
        """Whether it brings nothing but results."""
        return bool(self.blocks) and all(isinstance(block, ToolResult) for block in self.blocks)


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a conversation that is a session of its own."""

    suffix: str
    turns: Sequence[Turn]


class Course:
    """A conversation as it went: it may be cut back, and it may begin again with a summary."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._told: list[Told] = []
        self._part = 1
        self._branches = 0

    def rewind(self, length: int) -> None:
        """Go back to the first so many messages; answers that are left become a session of their own."""
        if _answered(self.turns[length:]):
            self._branches += 1
            self._told.append(Told(suffix=f"-branch-{self._branches}", turns=tuple(self.turns)))
        self.turns = self.turns[:length]

    def begin_again(self, turns: Iterable[Turn]) -> None:
        """Go on with other messages in place of those before: the agent compacted."""
        if self.turns:
            self._told.append(Told(suffix=self._suffix, turns=tuple(self.turns)))
            self._part += 1
        self.turns = list(turns)

    def sessions(self, id: str, family: str | None = None) -> list[Recorded]:
        """Every stretch as a session; the first part goes by the plain id.

        `family` is what forks of one conversation have in common: the calls they share are the same calls.
        """
        last = Told(suffix=self._suffix, turns=self.turns)
        parts = [each for each in (*self._told, last) if "-branch-" not in each.suffix]
        branches = [each for each in self._told if "-branch-" in each.suffix]
        return [_recorded(f"{id}{each.suffix}", each.turns, family or id) for each in (*parts, *branches)]

    @property
    def _suffix(self) -> str:
        return f"-part-{self._part}" if self._part > 1 else ""


def _answered(turns: Iterable[Turn]) -> bool:
    return any(turn.role == "assistant" and turn.blocks for turn in turns)


def _recorded(id: str, turns: Sequence[Turn], family: str) -> Recorded:
    rendered: list[tuple[Turn, bytes]] = []
    charges: list[Charge | None] = []
    for turn in turns:
        charges.append(_charge(turn, len(rendered) if turn.blocks else None, family))
        rendered += [(turn, native) for native in _natives(turn)]
    models = [turn.model for turn in turns if turn.model]
    return Recorded(
        id=id,
        format=NAME,
        model=max(models, key=models.count) if models else None,
        messages=tuple(native for _, native in rendered),
        times=tuple(turn.at for turn, _ in rendered),
        usage=tuple(turn.usage for turn, _ in rendered),
        charges=tuple(each for each in charges if each is not None),
    )


def _charge(turn: Turn, message: int | None, family: str) -> Charge | None:
    key = None if turn.key is None else f"{family}/{turn.key}"
    used = None if turn.usage is None else any_decoder.decode(turn.usage)
    return charge(used, model=turn.model, message=message, key=key)


def _natives(turn: Turn) -> list[bytes]:
    if not turn.blocks:
        return []
    return render_message(Message(role=turn.role, blocks=tuple(turn.blocks)))


def usage(*, prompt: int, answer: int, cached: int) -> bytes:
    """What was used, as OpenAI writes it."""
    told = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    return encode({**told, "prompt_tokens_details": {"cached_tokens": cached}})


def picture(url: str) -> Image | None:
    """A picture at an address that everybody can find, or that holds it; `None` for another."""
    inline = split_data_url(url)
    if inline is not None:
        return Image(media_type=inline[0], data=inline[1])
    return Image(url=url) if is_web(url) else None
