"""Calls the command line inside this process, and conversations to call it with."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from windowsill.cli.main import run


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def call(*arguments: object, input: bytes = b"", terminal: bool = False) -> Done:
    """Run `windowsill ARGUMENTS`; its exit code, standard output and standard error.

    The streams are real files: what the command starts can write to them, and an answer can be waited for.
    """
    kind = Terminal if terminal else io.TextIOWrapper
    with _file(io.TextIOWrapper) as stdin, _file(kind) as out, _file(kind) as err:
        stdin.buffer.write(input)
        stdin.seek(0)
        before, sys.stdin = sys.stdin, stdin
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = run([str(each) for each in arguments])
        finally:
            sys.stdin = before
        return Done(code, _text(out), _text(err))


def _file(kind: type[io.TextIOWrapper]) -> io.TextIOWrapper:
    return kind(TemporaryFile(), encoding="utf-8")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.buffer.seek(0)
    return stream.buffer.read().decode()


def saved(path: Path, value: Any) -> Path:
    """Write a value as JSON; the path."""
    path.write_text(json.dumps(value))
    return path


def anthropic_turns(count: int, *, words: int = 60) -> list[dict[str, Any]]:
    """A task and `count` tool calls, each reading the file that the output before named."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the treasure. Start with cave-0.txt."}]
    for number in range(count):
        use = {"type": "tool_use", "id": f"call_{number}", "name": "read", "input": {"path": f"cave-{number}.txt"}}
        text = f"the next is cave-{number + 1}.txt " + f"pebble-{number} " * words
        messages.append({"role": "assistant", "content": [use]})
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"call_{number}", "content": text}]}
        )
    messages.append({"role": "assistant", "content": "It is empty."})
    return messages


def openai_turns(count: int, *, words: int = 60) -> list[dict[str, Any]]:
    """The same conversation in OpenAI's form, with a system message."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You read files."},
        {"role": "user", "content": "Find the treasure. Start with cave-0.txt."},
    ]
    for number in range(count):
        function = {"name": "read", "arguments": json.dumps({"path": f"cave-{number}.txt"})}
        use = {"id": f"call_{number}", "type": "function", "function": function}
        text = f"the next is cave-{number + 1}.txt " + f"pebble-{number} " * words
        messages.append({"role": "assistant", "content": None, "tool_calls": [use]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
    messages.append({"role": "assistant", "content": "It is empty."})
    return messages
