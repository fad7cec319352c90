"""OpenAI Chat Completions, and the many servers that speak it."""

from __future__ import annotations

from windowsill.formats.openai import read, render
from windowsill.formats.openai.validate import validate
from windowsill.history.repair import Rules

RULES = Rules(format=read.NAME, result_media=False, bare_results=False)


class OpenAI:
    """The format of `POST /v1/chat/completions`."""

    name = read.NAME
    rules = RULES

    read_message = staticmethod(read.read_message)
    read_body = staticmethod(read.read_body)
    read_reply = staticmethod(read.read_reply)
    read_system = staticmethod(read.read_system)
    read_tool = staticmethod(read.read_tool)
    render_message = staticmethod(render.render_message)
    render_system = staticmethod(render.render_system)
    render_tool = staticmethod(render.render_tool)
    render_body = staticmethod(render.render_body)
    validate = staticmethod(validate)
