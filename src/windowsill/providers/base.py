"""The seam between Windowsill and a provider: its facts (`ProviderSpec`), and what a format can do (`Format`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from windowsill.history.repair import Rules
from windowsill.messages import Message, Reply, Request, Tool


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
    """Where a provider is asked, and how a request says who asks."""

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


class Format(Protocol):
    """A provider's way to write a conversation. Reading takes broken conversations; repair mends them."""

    @property
    def spec(self) -> ProviderSpec:
        """The facts about the provider."""

    @property
    def name(self) -> str:
        """The name it is called by."""

    @property
    def rules(self) -> Rules:
        """What the provider demands."""

    def read_message(self, raw: bytes, where: str) -> Message:
        """One native message; `where` names its place in an error."""

    def read_body(self, body: bytes) -> Request:
        """A whole request body, or a plain list of messages."""

    def read_reply(self, body: bytes) -> Reply:
        """A provider's response, with what it used."""

    def read_system(self, value: Any) -> Message:
        """A system prompt: text, or what the format has in its place."""

    def read_tool(self, raw: bytes, where: str) -> Tool:
        """One tool definition."""

    def render_message(self, message: Message) -> list[bytes]:
        """The native messages for one message: exactly its own bytes when it is of this format and unchanged."""

    def render_system(self, systems: Sequence[Message]) -> bytes | None:
        """System prompts as one value, for `render_body`; `None` when there is nothing to say."""

    def render_tool(self, tool: Tool) -> bytes:
        """A native tool definition."""

    def render_body(
        self,
        *,
        messages: Sequence[bytes],
        system: bytes | None,
        tools: Sequence[bytes],
        model: str | None,
        rest: Mapping[str, msgspec.Raw],
    ) -> bytes:
        """A request body around rendered parts; they are joined, not encoded again."""

    def validate(self, body: Any) -> list[Problem]:
        """What the provider would refuse in a decoded request body or message list."""
