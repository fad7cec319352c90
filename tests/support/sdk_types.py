"""The types in which the official clients read an answer."""

from __future__ import annotations

from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
from google.genai import types

SDK: dict[str, Any] = {
    "anthropic": anthropic.types.Message,
    "openai": openai.types.chat.ChatCompletion,
    "deepseek": openai.types.chat.ChatCompletion,
    "responses": openai.types.responses.Response,
    "gemini": types.GenerateContentResponse,
}
