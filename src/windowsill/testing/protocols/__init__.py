"""The protocols of the local server: answers, streams and errors in the words of each provider."""

from __future__ import annotations

from windowsill.testing.protocols.anthropic import AnthropicMessages
from windowsill.testing.protocols.base import Protocol
from windowsill.testing.protocols.gemini import Gemini
from windowsill.testing.protocols.openai import OpenAIChat, OpenAIResponses
from windowsill.testing.provider_rules import Signer


def all_protocols(signer: Signer) -> tuple[Protocol, ...]:
    """Make every protocol, for one server: some of them remember what they answered."""
    return AnthropicMessages(), OpenAIChat(), OpenAIResponses(signer), Gemini()
