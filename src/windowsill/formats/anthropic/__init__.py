"""Anthropic Messages."""

from __future__ import annotations

from windowsill.formats.anthropic import read, render
from windowsill.formats.anthropic.validate import validate
from windowsill.history.repair import Rules

RULES = Rules(
    format=read.NAME,
    user_first=True,
    alternate=True,
    system_apart=True,
    unique_ids=True,
    id_pattern=render.ID_PATTERN,
    blank_text=False,
    signed_reasoning=True,
    reasoning_last=False,
    silent_errors=False,
    cache_markers=True,
)


class Anthropic:
    """The format of `POST /v1/messages`."""

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
