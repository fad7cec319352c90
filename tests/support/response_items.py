"""Items of OpenAI's Responses for tests, and short ways to read, render and mend them."""

from __future__ import annotations

import msgspec
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from windowsill import providers
from windowsill.messages import Usage
from windowsill.providers.openai_responses.items import Responses

FORMAT = Responses()
ITEM = TypeAdapter(ResponseInputItemParam)
ITEMS = TypeAdapter(list[ResponseInputItemParam])

HI = {"role": "user", "content": "hi"}
OK = {"role": "assistant", "content": "ok"}


def function(id, /, name="read", arguments='{"path": "a.py"}', **more):
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments, **more}


def output(id, /, value="done", **more):
    return {"type": "function_call_output", "call_id": id, "output": value, **more}


def custom(id, value="select 1"):
    return {"type": "custom_tool_call", "call_id": id, "name": "sql", "input": value}


def custom_output(id, value="done"):
    return {"type": "custom_tool_call_output", "call_id": id, "output": value}


def reasoned(number=1, **more):
    summary = [{"type": "summary_text", "text": "hm"}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": "gAAA==", **more}


def said(*parts, **more):
    return {"type": "message", "role": "user", "content": list(parts), **more}


def written(*texts, id="msg_1"):
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": parts}


def input_text(text):
    return {"type": "input_text", "text": text}


PIXEL = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"}
FILE = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}
CLICK = {"type": "click", "button": "left", "x": 1, "y": 2}
COMPUTER = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "c0",
    "action": CLICK,
    "pending_safety_checks": [],
    "status": "completed",
}
SCREEN = {
    "type": "computer_call_output",
    "call_id": "c0",
    "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="},
}
COMMAND = {"type": "exec", "command": ["ls"], "env": {}}
LOCAL = {"type": "local_shell_call", "id": "ls_1", "call_id": "c0", "action": COMMAND, "status": "completed"}
LOCAL_OUTPUT = {"type": "local_shell_call_output", "id": "c0", "output": "a.py"}
SHELL = {"type": "shell_call", "call_id": "c0", "action": {"commands": ["ls"]}}
EXITED = {"type": "exit", "exit_code": 0}
SHELL_OUTPUT = {
    "type": "shell_call_output",
    "call_id": "c0",
    "output": [{"stdout": "a.py", "stderr": "", "outcome": EXITED}],
}
PATCH = {
    "type": "apply_patch_call",
    "call_id": "c0",
    "status": "completed",
    "operation": {"type": "delete_file", "path": "a.py"},
}
PATCH_OUTPUT = {"type": "apply_patch_call_output", "call_id": "c0", "status": "failed", "output": "no such file"}
PAIRS = [
    (function("c0"), output("c0")),
    (custom("c0"), custom_output("c0")),
    (COMPUTER, SCREEN),
    (LOCAL, LOCAL_OUTPUT),
    (SHELL, SHELL_OUTPUT),
    (PATCH, PATCH_OUTPUT),
]


def read(item):
    return FORMAT.read_message(msgspec.json.encode(item), "input[0]")


def render(message):
    return [msgspec.json.decode(each) for each in FORMAT.render_message(message)]


def edited(item, *blocks):
    return msgspec.structs.replace(read(item), blocks=blocks, edited=True)


def crossed(source, *messages):
    request = providers.read_request(list(messages), format=source)
    return [each for message in request.messages for each in render(message)]


def mended(*items):
    return providers.repair(list(items), format="responses")


FLAT = {"type": "function", "name": "read", "description": "reads", "parameters": {"type": "object"}, "strict": True}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5",
    "status": "completed",
    "output": [reasoned(), written("I look"), function("c0", id="fc_1", status="completed")],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 1},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 15,
    },
}
USED = Usage(input=3, output=5, cache_read=6, cache_write=1)
