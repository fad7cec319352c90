"""The seam between Windowsill and a provider: its facts (`ProviderSpec`), and what a format can do (`Format`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import msgspec

from windowsill.errors import FormatError
from windowsill.history.repair import safe_name
from windowsill.history.repair_rules import Rules
from windowsill.messages import Message, Reply, Request, Role, Tool, Usage
from windowsill.models import Demands
from windowsill.providers.wire import (
    NULL,
    Fields,
    decode,
    encode,
    fields_decoder,
    join_body,
    read_each,
    read_items,
    take_out,
    text_decoder,
)

if TYPE_CHECKING:
    from windowsill.providers.streams import Stream


RawFields: TypeAlias = dict[str, bytes | msgspec.Raw]

LIMIT = "max_tokens"
"""The common name of the limit of an answer."""

THOUGHTS = 8_192
"""Tokens added to the limit of an answer where a provider counts the model's thoughts against it: what is not used is
not paid for, and without it a model that thinks has none left for words."""

UNWANTED = frozenset({
    "stream", "stream_options", "stop", "stop_sequences", "response_format", "output_format", "context_management", "n",
    "logprobs", "top_logprobs", "background",
})  # fmt: skip
"""Fields that would make an answer something else than one whole text, or need a header we do not have."""


class Problem(msgspec.Struct, frozen=True):
    """A rule of a provider that a request breaks, where, and what to do."""

    rule: str
    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.where}: {self.what} ({self.rule}); {self.remedy}"


class StopReasons(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a provider for why an answer ended."""

    done: str
    """It is complete."""
    calls: str
    """It is complete and calls tools."""
    length: frozenset[str] = frozenset()
    """It was cut off at a limit of tokens."""
    refused: frozenset[str] = frozenset()
    """The model or its provider would not give it."""
    paused: frozenset[str] = frozenset()
    """The provider wants to be asked again, as things are."""
    unfinished: frozenset[str] = frozenset()
    """It broke off, or is still being written."""


class Api(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a provider, and the header that says who asks."""

    url: str
    path: str
    """`{model}` in it stands for the name of the model."""
    stream_path: str = ""
    """The path of a streamed answer, where it is another one."""
    key_variables: tuple[str, ...]
    """Environment variables that hold the key, the first one set winning."""
    url_variable: str
    """Environment variable that holds another address."""
    key_header: str
    key_prefix: str = ""
    """Text before the key in its header."""
    headers: dict[str, str] = {}


class ToolChoice(msgspec.Struct, frozen=True):
    """The choice of tools left to the model: `auto`, `none`, `required`, or the `one` named."""

    mode: str
    name: str = ""


class ProviderSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about one provider's API. Whoever needs a name of a field, a limit or an address reads it here."""

    name: str
    aliases: tuple[str, ...] = ()
    rules: Rules
    """Demands on a conversation."""
    stops: StopReasons
    vendor: str = ""
    """The provider, as the table of models names it, whose models are asked in this format."""

    messages_field: str = "messages"
    """The field of a request body that holds the conversation."""
    history_fields: tuple[str, ...] = ()
    """Fields that bring what stands before the messages, or in their place, from the provider's own store."""
    system_field: str = ""
    """The field of the system prompt; empty where that is a message."""
    config_field: str = ""
    """The object in a body that holds limit and sampling; empty where they are fields of the body itself."""
    limit_fields: tuple[str, ...] = ("max_tokens",)
    """Names of the most tokens an answer may have, the newest first."""
    default_limit: int = 0
    """The limit to state where a request has none, for a provider that demands one."""
    sampling_fields: dict[str, str] = {}
    """Common name of a sampling setting (`temperature`, `top_p`, `top_k`) -> the name here, where it is another."""
    max_temperature: float | None = None
    stop_field: str = ""
    """The field of stop sequences; empty where there is none."""
    max_stops: int | None = None
    """Most stop sequences: the provider refuses a request with more."""
    blank_stops: bool = True
    """A stop sequence may be nothing but white space."""
    tool_schema_field: str
    """The field of a tool definition that holds the JSON Schema of its arguments."""
    stream_in_body: bool = True
    """A field of the body asks for a stream; otherwise the address does."""
    stream_usage_option: bool = False
    """A streamed answer reports its usage only when `stream_options` asks for it."""
    counts_thoughts: bool = False
    """The reasoning of the model counts against the limit of the answer, and no budget for it is stated beside."""

    json_stream: bool = False
    """A stream may come as plain JSON, without events."""
    plain_reasoning: bool = False
    """Reasoning stands unsigned beside a message, where some models refuse it."""
    context_management: Literal["", "edits", "compaction"] = ""
    """The form of the field `context_management`; empty where the provider has none."""
    no_store: dict[str, bool] = {}
    """Fields by which a request asks the provider not to keep it."""

    id_field: str = "id"
    """The field of a response that holds its id."""
    operation: str = "chat"
    """The name of a call in telemetry."""

    api: Api | None = None
    """`None` for a dialect that is asked at the addresses of another format."""
    routes: tuple[str, ...] = ()
    """Expressions for the paths of model calls; groups `model` and `stream` where the path says these."""
    sdk_modules: tuple[str, ...] = ()
    """Modules of the provider's own package whose objects are in this format; the longest match counts."""
    sdk_error: str = ""
    """The base of the errors of that package."""

    def sampling_field(self, name: str) -> str:
        """Return the name of a sampling setting here."""
        return self.sampling_fields.get(name, name)

    def limit_field(self, *, newest: bool = True) -> str:
        """Return the name of the limit of an answer; servers that imitate a provider may know the oldest one only."""
        return self.limit_fields[0 if newest else -1]

    def limit_setting(self, limit: int, field: str = "") -> dict[str, Any]:
        """Return the fields of a body that limit its answer to so many tokens."""
        stated = {field or self.limit_field(): limit}
        return {self.config_field: stated} if self.config_field else stated


class _Definition(msgspec.Struct, gc=False):
    name: str | None = None
    type: str | None = None
    description: str | None = None


_definition = msgspec.json.Decoder(_Definition)
_schema = msgspec.json.Decoder(dict[str, Any] | None)


class Linker:
    """Puts results under the ids of the calls they answer, in a format whose results may lack them."""

    def link(self, message: Message) -> Message:
        """Return the next message of a conversation with the ids that it has there."""
        raise NotImplementedError


class Format:
    """A provider's way to write a conversation: a base with defaults, one subclass a provider.

    Reading takes broken conversations; repair mends them. A message, block or tool keeps the bytes it came as, and
    goes out as these bytes while it is unchanged and of the same format.
    """

    spec: ClassVar[ProviderSpec]
    stream: ClassVar[type[Stream]]
    """Puts a streamed answer together."""
    linker: ClassVar[type[Linker] | None] = None
    """Finds the ids of results, where they may lack them."""

    @property
    def name(self) -> str:
        """The name it is called by."""
        return self.spec.name

    @property
    def rules(self) -> Rules:
        """The provider's demands on a conversation."""
        return self.spec.rules

    def continues(self, fields: Mapping[str, msgspec.Raw]) -> bool:
        """Tell whether a request with these fields goes on from messages that the provider keeps."""
        return any(bytes(fields.get(name, NULL)) != b"null" for name in self.spec.history_fields)

    def with_demands(self, demands: Demands) -> Format:
        """Return this format as a model with these demands takes it."""
        return self

    def is_own(self, format: str) -> bool:
        """Tell whether bytes of `format` can be sent as they are."""
        return format == self.spec.name

    def detects(self, value: Any) -> bool:
        """Tell whether a decoded body, message list, message or reply is clearly of this format."""
        return False

    # Reading

    def read_message(self, raw: bytes, where: str) -> Message:
        """Read one native message; `where` names its place in an error."""
        raise NotImplementedError

    def read_reply(self, body: bytes) -> Reply:
        """Read a provider's response, with its usage."""
        raise NotImplementedError

    def read_usage(self, raw: bytes) -> Usage:
        """Read the object in which a provider reports what it used."""
        raise NotImplementedError

    def read_tool(self, raw: bytes, where: str) -> Tool:
        """Read one tool definition; a tool that the provider runs itself goes by its type."""
        inner = self.unwrap_tool(raw, where)
        wire = decode(_definition, inner, where)
        name = wire.name or wire.type
        if name is None:
            raise FormatError("a tool without a name", where=where, remedy="give it a name")
        fields = decode(fields_decoder, inner)
        schema = decode(_schema, fields.get(self.spec.tool_schema_field, NULL), where) or {}
        return Tool(name=name, description=wire.description or "", schema=schema, format=self.name, raw=raw)

    def unwrap_tool(self, raw: bytes, where: str) -> bytes:
        """Return the part of a tool definition that has its name, description and schema."""
        return raw

    def read_body(self, body: bytes) -> Request:
        """Read a request body, or a plain list of messages."""
        if body.lstrip()[:1] == b"[":
            return Request(format=self.name, messages=read_each(body, "", self.read_message), bare=True)
        field = self.spec.messages_field
        fields, items = take_out(body, field)
        if items is not None:
            messages = read_items(items, field, self.read_message)
        elif field in fields or any(each in fields for each in self.spec.history_fields):
            messages = self.read_conversation(bytes(fields.pop(field, NULL)), field)
        else:
            raise FormatError(
                f"a request body without {field}", remedy=f"pass a body with `{field}`, or the list itself"
            )
        system = self.take_field(fields, self.spec.system_field) if self.spec.system_field else None
        tools = self.read_tools(fields)
        model = self.take_field(fields, "model")
        return Request(
            format=self.name,
            messages=messages,
            system=None if system is None else self.read_system_value(bytes(system)),
            tools=tools,
            model=None if model is None else decode(text_decoder, model, "model"),
            rest=fields,
        )

    def read_conversation(self, raw: bytes, where: str) -> tuple[Message, ...]:
        """Read the field of a body that holds the messages, where it is no plain list."""
        return read_each(raw, where, self.read_message)

    def read_tools(self, fields: Fields) -> tuple[Tool, ...]:
        """Take the tool definitions out of the fields of a body."""
        raw = self.take_field(fields, "tools")
        return () if raw is None else read_each(raw, "tools", self.read_tool)

    def take_field(self, fields: Fields, name: str) -> msgspec.Raw | None:
        """Take a field out of a body; null is the same as absent."""
        value = fields.pop(name, None)
        return None if value is None or value == NULL else value

    def read_system(self, value: Any) -> Message:
        """Read a system prompt: text, or what the format has in its place."""
        where = self.spec.system_field or "system"
        return value if isinstance(value, Message) else self.read_system_value(encode(value, where))

    def read_system_value(self, raw: bytes) -> Message:
        """Read the JSON of a system prompt."""
        raise NotImplementedError

    def split_tool(self, tool: Tool, where: str) -> tuple[Tool, ...]:
        """Return the tools of one definition, where it may hold several."""
        return (tool,)

    def is_portable(self, tool: Tool) -> bool:
        """Tell whether a tool of this format can be defined for another provider."""
        return True

    def tool_layout(self, definitions: Sequence[bytes]) -> msgspec.Raw | None:
        """Return the value of `tools` where it says more than the tools in it, to go out as it came; else `None`."""
        return None

    # Rendering

    def render_message(self, message: Message) -> list[bytes]:
        """Render one message as native ones: exactly its own bytes when it is of this format and unchanged."""
        raise NotImplementedError

    def render_system(self, systems: Sequence[Message]) -> bytes | None:
        """Render system prompts as one value, for `render_body`; `None` when there is nothing to say."""
        raise NotImplementedError

    def render_reply(self, message: Message, *, model: str, usage: Usage | None = None, whole: bool = True) -> bytes:
        """Render a response that holds this message; one that is not `whole` does not say that it ended."""
        raise NotImplementedError

    def render_usage(self, usage: Usage, reasoning: int = 0) -> dict[str, Any]:
        """Return the object in which the provider reports a usage; `reasoning` is a part of the output."""
        raise NotImplementedError

    def render_tool_choice(self, choice: ToolChoice) -> dict[str, Any]:
        """Return the fields of a body that say whether the model may call a tool."""
        raise NotImplementedError

    def text_only(self, fields: dict[str, Any], *, limit: int, limit_field: str, tools: bool) -> dict[str, Any]:
        """Change the decoded fields of a request so that one whole text comes back; `tools` says that it has some.

        The text may have `limit` tokens, but never more than the request allowed, for which the window has room.
        """
        known = self.spec.limit_fields
        name = next((key for key in known if fields.get(key)), limit_field)
        kept = {key: value for key, value in fields.items() if key not in UNWANTED and key not in known}
        kept[name] = at_most(fields.get(name), limit + self.thinking_tokens(fields))
        return {**kept, **self.spec.no_store, **(self.render_tool_choice(ToolChoice("none")) if tools else {})}

    def thinking_tokens(self, fields: dict[str, Any]) -> int:
        """Return the tokens that the model may think, as far as they count against the limit of its answer."""
        return THOUGHTS if self.spec.counts_thoughts else 0

    def render_tool(self, tool: Tool) -> bytes:
        """Render a tool definition."""
        if self.is_own(tool.format) and tool.raw is not None:
            return tool.raw
        fields: dict[str, Any] = {"name": self.tool_name(tool.name)}
        if tool.description:
            fields["description"] = tool.description
        schema = {"type": "object", **tool.schema}
        return encode(self.wrap_tool({**fields, self.spec.tool_schema_field: schema}))

    def tool_name(self, name: str) -> str:
        """Return the name of a tool in characters that the provider takes."""
        return safe_name(name)

    def wrap_tool(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a tool definition around its name, description and schema."""
        return fields

    def with_schema(self, raw: bytes, schema: dict[str, Any]) -> bytes | None:
        """Return a tool definition of this format with another schema, every other field as it came.

        `None` for a tool that has no schema.
        """
        fields = decode(fields_decoder, raw)
        return encode({**fields, self.spec.tool_schema_field: schema})

    def render_body(
        self,
        *,
        messages: Sequence[bytes],
        system: bytes | None,
        tools: Sequence[bytes],
        model: str | None,
        rest: Mapping[str, msgspec.Raw],
    ) -> bytes:
        """Render a request body around rendered parts, which are joined, not encoded again.

        The fields that a prompt cache looks at first stand first.
        """
        fields = self.body_fields(tools, model, rest)
        if system is not None and self.spec.system_field:
            fields[self.spec.system_field] = system
        elif system is not None:
            messages = [system, *messages]
        return join_body(fields, messages, self.spec.messages_field.encode())

    def body_fields(self, tools: Sequence[bytes], model: str | None, rest: Mapping[str, msgspec.Raw]) -> RawFields:
        """Return the fields of a body beside its messages and its system prompt."""
        fields: RawFields = {} if model is None else {"model": encode(model)}
        known = self.spec.limit_fields
        for key, value in rest.items():
            fields[self.spec.limit_field() if key == LIMIT and LIMIT not in known else key] = value
        return {**fields, "tools": b"[" + b",".join(tools) + b"]"} if tools else fields

    def fit_fields(
        self, fields: dict[str, msgspec.Raw], messages: Sequence[bytes], *, bound_reasoning: bool = False
    ) -> dict[str, msgspec.Raw]:
        """Return the other fields of a body without what the provider would refuse beside these messages."""
        return fields

    # Checking

    def validate(self, body: Any) -> list[Problem]:
        """Return what the provider would refuse in a decoded request body or message list, in order."""
        field = self.spec.messages_field
        if isinstance(body, list):
            found = [*self.check_messages(body, "", {})]
        elif isinstance(body, dict):
            found = [*self.check_body(body), *self.check_messages(body.get(field), field, body)]
        else:
            found = [Problem("body", "", "neither an object nor a list", f"pass a request body or its {field}")]
        return [msgspec.structs.replace(each, rule=f"{self.name}.{each.rule}") for each in found]

    def check_body(self, body: dict[str, Any]) -> Iterator[Problem]:
        """Find what the provider would refuse in a body besides its messages; rules go by their names alone here."""
        raise NotImplementedError

    def check_messages(self, messages: Any, where: str, body: Mapping[str, Any]) -> Iterator[Problem]:
        """Find what the provider would refuse in the messages; `body` is empty where there are only messages."""
        raise NotImplementedError


def check_strict(schema: Any, where: str) -> Iterator[Problem]:
    """Find what OpenAI refuses in the schema of a strict tool: every field is required, and no other may come."""
    if isinstance(schema, list):
        for each in schema:
            yield from check_strict(each, where)
    if not isinstance(schema, dict):
        return
    fields = schema.get("properties")
    if schema.get("type") == "object" or isinstance(fields, dict):
        if schema.get("additionalProperties") is not False:
            what = "a strict schema with an object that lets other fields in"
            yield Problem("strict-schema", where, what, 'give it "additionalProperties": false')
        missing = sorted((fields or {}).keys() - set(schema.get("required") or ()))
        if missing:
            what = f"a strict schema that does not require {', '.join(missing)}"
            yield Problem("strict-schema", where, what, "require every field; let optional ones be null")
    inner = [*(fields or {}).values(), *(schema.get("$defs") or {}).values(), schema.get("items"), schema.get("anyOf")]
    yield from check_strict(inner, where)


def check_tools(
    tools: Any, check: Callable[[Any, str], Iterable[Problem]], inner: Callable[[Any], Any] = lambda tool: tool
) -> Iterator[Problem]:
    """Check each tool definition, and find those that have the name of an earlier one; `inner` is the part with it."""
    seen: set[str] = set()
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        where, named = f"tools[{index}]", inner(tool)
        yield from check(tool, where)
        name = named.get("name") if isinstance(named, dict) else None
        if isinstance(name, str):
            if name in seen:
                what = f"a second tool of the name {name!r}"
                yield Problem("unique-tools", where, what, "give each tool a name of its own")
            seen.add(name)


def role_of(name: str | None, roles: Mapping[str, Role], format: str, where: str) -> Role:
    """Return the role that a format calls so; `FormatError` for one that it does not have."""
    if (found := roles.get(name or "")) is not None:
        return found
    raise FormatError(
        f"no such role as {name!r} in format {format!r}",
        where=f"{where}.role".removeprefix("."),
        remedy=f"use one of {', '.join(roles)}; name the format if it is another one",
    )


def usage_of(prompt: int | None, output: int | None, *, read: int | None, written: int | None) -> Usage:
    """Return the usage of a provider that counts what its cache read and wrote into the prompt."""
    read, written = read or 0, written or 0
    fresh = max((prompt or 0) - read - written, 0)
    return Usage(input=fresh, output=output or 0, cache_write=written, cache_read=read)


def at_most(stated: Any, wanted: int) -> int:
    """Return a limit that is not above the stated one, where that is a number."""
    return min(stated, wanted) if isinstance(stated, int) else wanted


def without_format(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """Return fields without the `format` in one of them, which asks for something else than text."""
    inner = {key: value for key, value in (fields.get(name) or {}).items() if key != "format"}
    rest = {key: value for key, value in fields.items() if key != name}
    return {**rest, **({name: inner} if inner else {})}
