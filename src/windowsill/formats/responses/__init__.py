"""OpenAI Responses: a conversation as a list of items."""

from __future__ import annotations

from windowsill.formats.responses import read, render
from windowsill.formats.responses.recognise import detects
from windowsill.formats.responses.validate import validate
from windowsill.history.repair import Rules

__all__ = ["RULES", "Responses", "detects"]

RULES = Rules(
    format=read.NAME,
    system_apart=True,
    system_inside=True,
    in_items=True,
    unique_ids=True,
    id_pattern=render.ID_PATTERN,
    bare_results=False,
    under="input",
)


class Responses:
    """The format of `POST /v1/responses`."""

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
