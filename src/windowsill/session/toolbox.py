"""The tools of one session, ready to be offered and called."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from windowsill import providers
from windowsill.errors import InputError, NotFoundError, WindowsillError
from windowsill.messages import (
    GREP_TOOL,
    MESSAGE_TOOL,
    READ_TOOL,
    SEARCH_TOOL,
    STATUS_TOOL,
    Block,
    Document,
    Image,
    Message,
    Text,
    Tool,
    ToolResult,
    ToolUse,
)
from windowsill.outputs.grep import Query, grep
from windowsill.outputs.parts import MessageOutput, Output, encode_text
from windowsill.outputs.read import read
from windowsill.outputs.show import Limits, byte_size, characters_within, count_lines, result_text
from windowsill.providers.convert import message_text
from windowsill.session.audit import open_calls
from windowsill.text import count_of, cut_middle, time_text

if TYPE_CHECKING:
    from windowsill.search import Found
    from windowsill.session.session import Session


MOST_FOUND = 50
"""The most passages that one search gives: more is a reading of the history, not a search."""

MOST_LINES = 2_000

MOST_MEDIA = 4
"""Images and documents in one answer: each takes a thousand tokens or more."""

_Ref: TypeAlias = Annotated[str, Meta(description="The ref of the output, as the conversation shows it: ref=o12.")]
_Limit: TypeAlias = Annotated[int, Meta(ge=1, le=MOST_LINES, description="How many lines to show.")]
_Offset: TypeAlias = Annotated[int, Meta(ge=1, description="The first line to show, counted from 1.")]

PORTABLE = frozenset({"type", "description", "minimum", "maximum", "default"})
"""The keys of a parameter's schema that every provider takes."""

MOST_FOLDS = 20
"""Folds that are listed, the latest ones."""

BYTES_PER_TOKEN = 4
"""Bytes of a token of text, roughly: an answer is limited in bytes, a window in tokens."""

LEAST_ANSWER = 256
"""Tokens of an answer in the smallest window: less would show nothing, and no output can be read in fewer bytes."""

ANSWER_SHARE = 8
"""One answer takes at most this part of the window: reading back must not push out what is worked on."""

LONGEST_REFUSAL = 1_000
"""Characters of an answer about a mistake: it names what was passed, which may be of any size."""

_AS_SHOWN = re.compile(r"""[\s"'`]*(?:ref(?:_id)?\s*=)?[\s"'`]*(.*?)[\s"'`]*""", re.DOTALL)
"""A ref the way a model copies it from the conversation, with what stands around it there."""


class _Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments that a model passes to one tool."""


class ReadOutput(_Arguments, frozen=True, kw_only=True):
    """Show lines of a tool output that was trimmed or cut, with their numbers, and its images; all is kept."""

    ref_id: _Ref
    offset: _Offset = 1
    limit: _Limit = 200
    column: Annotated[int, Meta(ge=1, description="Where in the first line to begin, for a very long line.")] = 1


class GrepOutput(_Arguments, frozen=True, kw_only=True):
    """Search a tool output that was trimmed or cut; matching lines come with their numbers."""

    ref_id: _Ref
    pattern: Annotated[str, Meta(description="A regular expression (RE2), or the text itself with fixed.")]
    context: Annotated[int, Meta(ge=0, le=50, description="Lines to show before and after each match.")] = 0
    ignore_case: Annotated[bool, Meta(description="Take upper and lower case for the same.")] = False
    fixed: Annotated[bool, Meta(description="Take the pattern literally.")] = False
    limit: Annotated[int, Meta(ge=1, le=1_000, description="How many matches to show.")] = 50
    offset: Annotated[int, Meta(ge=1, description="The line to begin at, to page through the matches.")] = 1


class SearchHistory(_Arguments, frozen=True, kw_only=True):
    """Search everything that was ever said or shown in this session, hidden from view or not."""

    query: Annotated[str, Meta(description="Words, names, paths or a question.")]
    k: Annotated[int, Meta(ge=1, le=MOST_FOUND, description="How many passages to show.")] = 5


class ReadHistory(_Arguments, frozen=True, kw_only=True):
    """Show one message of the history whole, by its id, hidden from view or not."""

    message_id: Annotated[str, Meta(description="The id of the message, as history_search shows it: m12.")]
    offset: _Offset = 1
    limit: _Limit = 200


class ContextStatus(_Arguments, frozen=True, kw_only=True):
    """Tell how full the context window is and what was folded away to fit it."""


KINDS: dict[str, type[_Arguments]] = {
    READ_TOOL: ReadOutput,
    GREP_TOOL: GrepOutput,
    SEARCH_TOOL: SearchHistory,
    MESSAGE_TOOL: ReadHistory,
    STATUS_TOOL: ContextStatus,
}

TOOLS: tuple[str, ...] = tuple(KINDS)
"""The names of the tools, in the order they are offered."""


def definition(name: str) -> Tool:
    """Define a tool as it is offered to a model."""
    kind = KINDS[name]
    ((_, found),) = msgspec.json.schema_components([kind])[1].items()
    properties = {
        name: {key: value for key, value in parameter.items() if key in PORTABLE}
        for name, parameter in found["properties"].items()
    }
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": found["required"],
        "additionalProperties": False,
    }
    return Tool(name=name, description=(kind.__doc__ or "").strip(), schema=schema)


def status(session: Session) -> str:
    """Describe how full the window is, and the folds, in a few lines."""
    used, limit = session.composer.fill
    view = session.view
    hidden = sum(item.hides for item in view.items if item.fold)
    folds = [fold for fold in session.folds if fold.active and not fold.inside]
    lines = [
        f"{used:,} of {limit:,} tokens are used ({used / limit:.0%}); the window has {session.model.window:,}.",
        f"{sum(not item.fold for item in view.items):,} messages are in view, {hidden:,} are folded away.",
    ]
    if folds:
        lines.append(f"{len(folds):,} folds apply{':' if len(folds) <= MOST_FOLDS else f'; the last {MOST_FOLDS}:'}")
        for fold in folds[-MOST_FOLDS:]:
            spans = [span for span in fold.spans if span.active]
            count = sum(span.messages for span in spans)
            where = spans[0].first if spans[0].first == spans[-1].last else f"{spans[0].first} to {spans[-1].last}"
            lines.append(
                f"- {fold.id}: {fold.kind}, {count_of(count, 'message')} ({where}), "
                f"saved {fold.saved:,} tokens; {fold.reason}"
            )
    return "\n".join(lines)


class Answer(msgspec.Struct, frozen=True):
    """The answer of a tool; a mistake in the call is an answer that says how to do better."""

    text: str
    is_error: bool = False
    media: tuple[Image | Document, ...] = ()
    """Images and documents of what was read, to be shown beside the text."""

    @property
    def content(self) -> tuple[Block, ...]:
        """The blocks of a tool result with this answer."""
        return (Text(text=self.text), *self.media)


class Toolbox:
    """Tools with which a model reads and searches what left its window."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._runners: dict[str, Callable[[Any], str | Answer]] = {
            READ_TOOL: self._read_output,
            GREP_TOOL: self._grep_output,
            SEARCH_TOOL: self._search,
            MESSAGE_TOOL: self._read_message,
            STATUS_TOOL: lambda _: status(self._session),
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> Toolbox:
        # SDKs copy what a call is configured with, the functions in it too; they are of this session all the same.
        del memo
        return self

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The definitions, as `compose(tools=...)` takes them."""
        return tuple(definition(name) for name in TOOLS)

    def definitions(self, format: str | None = None) -> list[dict[str, Any]]:
        """Return the definitions in a provider's format; without one, in the session's."""
        rendered = providers.get(format or self._session.composer.format)
        return [msgspec.json.decode(rendered.render_tool(tool)) for tool in self.tools]

    def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> Answer:
        """Run a tool. Whatever a model may get wrong is answered, not raised."""
        try:
            wanted = _typed(name, arguments)
            # The agent that fills the session may be another process.
            self._session.journal.refresh()
            found = self._runners[name](wanted)
            return found if isinstance(found, Answer) else Answer(found)
        except WindowsillError as error:
            # What was passed stands in the middle; the remedy is at the end.
            return Answer(cut_middle(f"Error: {error}", LONGEST_REFUSAL), is_error=True)

    def answer(self, calls: Iterable[ToolUse] | None = None) -> Message | None:
        """Run those calls that are of these tools, and return the message with their results; `None` when none is.

        Without `calls`, they are those of the last reply that have no result yet.
        """
        results = tuple(
            ToolResult(tool_use_id=call.id, name=call.name, content=found.content, is_error=found.is_error)
            for call in ((call for _, call in open_calls(self._session.journal)) if calls is None else calls)
            if call.name in self._runners
            for found in [self.call(call.name, call.arguments)]
        )
        return Message(role="user", blocks=results) if results else None

    # The same as plain functions, which SDKs that take functions for tools can be given.

    def tool_output_cache(self, ref_id: str, offset: int = 1, limit: int = 200, column: int = 1) -> str:
        """Show lines of a tool output that was trimmed or cut, with their numbers. Nothing of it is lost."""
        return self.call(READ_TOOL, {"ref_id": ref_id, "offset": offset, "limit": limit, "column": column}).text

    def tool_output_cache_grep(
        self,
        ref_id: str,
        pattern: str,
        context: int = 0,
        ignore_case: bool = False,  # noqa: FBT001, FBT002 - models pass it by name
        fixed: bool = False,  # noqa: FBT001, FBT002 - models pass it by name
        limit: int = 50,
        offset: int = 1,
    ) -> str:
        """Search a tool output that was trimmed or cut; matching lines come with their numbers."""
        values = {"ref_id": ref_id, "pattern": pattern, "context": context, "ignore_case": ignore_case}
        return self.call(GREP_TOOL, {**values, "fixed": fixed, "limit": limit, "offset": offset}).text

    def history_search(self, query: str, k: int = 5) -> str:
        """Search everything that was ever said or shown in this session, hidden from view or not."""
        return self.call(SEARCH_TOOL, {"query": query, "k": k}).text

    def history_read(self, message_id: str, offset: int = 1, limit: int = 200) -> str:
        """Show one message of the history whole, by its id, hidden from view or not."""
        return self.call(MESSAGE_TOOL, {"message_id": message_id, "offset": offset, "limit": limit}).text

    def context_status(self) -> str:
        """Tell how full the context window is and what was folded away to fit it."""
        return self.call(STATUS_TOOL).text

    @property
    def functions(self) -> list[Callable[..., str]]:
        """The tools as plain functions."""
        return [getattr(self, name) for name in TOOLS]

    # What they do

    @property
    def _most(self) -> int:
        """Tokens that an answer may have."""
        return max(LEAST_ANSWER, self._session.model.window // ANSWER_SHARE)

    @property
    def _limits(self) -> Limits:
        usual = self._session.outputs.limits
        return Limits(line=usual.line, bytes=min(usual.bytes, self._most * BYTES_PER_TOKEN))

    def _read_output(self, wanted: ReadOutput) -> Answer:
        output = self._output(wanted.ref_id)
        text = read(output, wanted.offset, wanted.limit, wanted.column, self._limits)
        return Answer(text, media=_media_of(output.blocks, wanted.offset, wanted.limit))

    def _grep_output(self, wanted: GrepOutput) -> str:
        query = Query(
            pattern=wanted.pattern,
            before=wanted.context,
            after=wanted.context,
            ignore_case=wanted.ignore_case,
            fixed=wanted.fixed,
            limit=wanted.limit,
            offset=wanted.offset,
        )
        return grep(self._output(wanted.ref_id), query, self._limits, time.monotonic)

    def _output(self, ref: str) -> Output:
        found = _AS_SHOWN.fullmatch(ref)
        return self._session.outputs.open(found[1] if found else ref)

    def _search(self, wanted: SearchHistory) -> str:
        if not wanted.query.strip():
            raise InputError("the query is empty", remedy="pass words, names or a question")
        found = self._session.archive.retrieve(wanted.query, wanted.k)
        texts = [f"{_source(each)}\n{each.text}" for each in found]
        return "\n\n".join(self._fitting(texts)) or "Nothing was found. Try other words, or fewer."

    def _fitting(self, texts: Sequence[str]) -> Iterator[str]:
        """Return the texts that fit into an answer; if none does, as much of the best as there is room for."""
        left = most = self._most * BYTES_PER_TOKEN
        for text in texts:
            size = byte_size(text)
            if size <= left:
                left -= size
                yield text
        if texts and left == most:
            yield f"{texts[0][: characters_within(texts[0], most)]}..."

    def _read_message(self, wanted: ReadHistory) -> Answer:
        try:
            message = self._session.message(wanted.message_id)
        except NotFoundError:
            raise NotFoundError(
                f"there is no message {wanted.message_id!r}", remedy="history_search shows the ids of messages"
            ) from None
        head = f"[{message.id}] {message.role}, {time_text(message.at)}"
        text = message_text(message)
        if len(message.blocks) == 1 and message.results:
            # Lines are counted as a search counts them, from the first of the output itself.
            title, _, text = text.partition("\n")
            head = f"{head} {title}"
        whole = MessageOutput(message.id, encode_text(text))
        shown = f"{head}\n{read(whole, wanted.offset, wanted.limit, 1, self._limits)}"
        inside = [block.content if isinstance(block, ToolResult) else (block,) for block in message.blocks]
        return Answer(shown, media=_media_of(tuple(chain.from_iterable(inside)), 1, MOST_LINES))


def _typed(name: str, arguments: Mapping[str, Any] | str | None) -> Any:
    if name not in KINDS:
        raise NotFoundError(f"there is no tool {name!r}", remedy=f"the tools are {', '.join(TOOLS)}")
    kind = KINDS[name]
    try:
        values = msgspec.json.decode(arguments.strip() or "{}") if isinstance(arguments, str) else arguments
        if values is None or isinstance(values, Mapping):
            values = {key: value for key, value in (values or {}).items() if value is not None}
        # Models write numbers and switches as text now and then, and null for what they leave out.
        return msgspec.convert(values, kind, strict=False)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeEncodeError, RecursionError) as error:
        takes = ", ".join(kind.__struct_fields__) or "no arguments"
        raise InputError(f"{name} cannot be called so: {error}", remedy=f"it takes {takes}") from None


def _media_of(blocks: Sequence[Block], offset: int, limit: int) -> tuple[Image | Document, ...]:
    """Return the first images and documents among the lines from `offset` on that `read` shows of these blocks."""
    line, found = 1, []
    for block in blocks:
        if isinstance(block, Image | Document) and (block.data or block.url) and offset <= line < offset + limit:
            # The answer is a message of its own, in no provider's format.
            found.append(msgspec.structs.replace(block, raw=None))
        line += count_lines(result_text(ToolResult(tool_use_id="", content=(block,)))) or 1
    return tuple(found[:MOST_MEDIA])


def _source(found: Found) -> str:
    lines = f", lines {found.lines[0]}-{found.lines[1]}" if found.lines else ""
    tool = f" {found.tool}" if found.tool else ""
    return f"[{found.message_id}] {found.role}{tool}, {time_text(found.at)}{lines}"
