"""The reasons why a model gave no summary that can be used, each by its name."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from windowsill.errors import WindowsillError
from windowsill.messages import Usage
from windowsill.models import learn_window
from windowsill.providers.faults import FaultKind as ModelFaultKind
from windowsill.providers.faults import ModelError

FaultKind: TypeAlias = Literal[
    "no-key",  # there is none, or the provider does not accept it
    "no-model",  # nobody says which model is to write
    "prefix",  # the request that is about to be sent cannot be asked again
    "too-long",  # the request does not fit the model's window
    "rejected",  # the provider does not take the request
    "rate-limited",
    "server-error",
    "unreachable",
    "timeout",
    "unreadable",  # an answer that is not in the provider's format
    "failed",  # a function of the user's raised
    "empty",
    "refusal",
    "tool-calls",  # calls in the place of words
    "truncated",
    "no-summary-tag",
    "no-retain-tag",
    "tag-twice",
    "tag-nested",
    "tag-unclosed",
    "outside-tags",  # words beside what was asked for
    "not-json",
    "json-twice",
    "not-an-object",
    "schema",  # the object breaks the schema
    "broken-schema",  # the schema itself is not valid
    "larger",  # not smaller than what it replaces
    "over-room",
    "language",  # another script than the user's
    "ledger",  # no room for what code recorded
]
"""Every name a note of a model writer may begin with, after the stage it happened in."""


class UnusableError(WindowsillError):
    """The model gave no text that can be used. `kind` names the reason, `notes` hold those of earlier stages too."""

    def __init__(
        self,
        kind: FaultKind,
        what: str,
        *,
        remedy: str = "",
        notes: tuple[str, ...] = (),
        usage: Usage | None = None,
        window: int | None = None,
        **about: Any,
    ) -> None:
        self.kind = kind
        self.notes = notes
        self.usage = usage
        """The cost of the attempt."""
        self.window = window
        """The window in tokens that the provider named, where the request was too long."""
        super().__init__(what, remedy=remedy, **about)

    @classmethod
    def of(cls, error: ModelError) -> UnusableError:
        """Return the fault of a model call as the reason why there is no text."""
        return cls(_KINDS[error.kind], error.what, remedy=error.remedy, window=learn_window(error.provider_message))


_KINDS: dict[ModelFaultKind, FaultKind] = {
    "no-key": "no-key",
    "rate-limited": "rate-limited",
    "unreachable": "unreachable",
    "timeout": "timeout",
    "overflow": "too-long",
    "refused": "rejected",
    "server": "server-error",
    "malformed": "unreadable",
}


def note(stage: str, kind: FaultKind, what: str) -> str:
    """Write a fault as a note: where it happened, its name, and what it was."""
    return f"{stage}: {kind}: {what}" if stage else f"{kind}: {what}"
