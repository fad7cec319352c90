"""The synthetic trace: one system prompt, one task, turns of 1 to 3 parallel calls with results of about 1 KB."""

from __future__ import annotations

import json
import random

SYSTEM = "You are a careful coding agent. " * 20
TASK = "Find out why the nightly import fails and mend it. Keep the public interface as it is."

# fmt: off
_WORDS = [
    "account", "adapter", "balance", "branch", "buffer", "builder", "cache", "client", "column",
    "commit", "config", "context", "counter", "cursor", "database", "default", "delete", "device",
    "driver", "element", "engine", "entry", "error", "event", "factory", "field", "filter", "format",
    "function", "gateway", "handler", "header", "history", "import", "index", "input", "instance",
    "interface", "invoice", "item", "journal", "kernel", "key", "layer", "ledger", "library", "limit",
    "list", "loader", "lock", "manager", "market", "message", "method", "model", "module", "network",
    "number", "object", "offset", "operator", "option", "order", "output", "package", "page",
    "parser", "partition", "path", "pattern", "payment", "pipeline", "plugin", "policy", "process",
    "product", "profile", "property", "protocol", "query", "queue", "reader", "record", "reference",
    "region", "register", "release", "report", "request", "resource", "response", "result", "retry",
    "role", "route", "schedule", "schema", "scope", "segment", "selector", "sequence", "server",
    "service", "session", "setting", "signal", "snapshot", "socket", "source", "state", "statement",
    "status", "storage", "stream", "string", "structure", "subject", "summary", "support", "switch",
    "symbol", "system", "table", "target", "template", "thread", "timeout", "token", "tracker",
    "transaction", "transport", "trigger", "update", "user", "validator", "value", "vector",
    "version", "view", "warning", "window", "worker", "writer",
]
# fmt: on


def prose(rng: random.Random, size: int) -> str:
    """About `size` characters that read like the output of a tool."""
    lines, length = [], 0
    while length < size:
        line = f"{len(lines) + 1}: " + " ".join(rng.choices(_WORDS, k=9))
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)


def turns(count: int, *, seed: int = 7, result: int = 1_000, words: int = 700):
    """Make turns in OpenAI form: an assistant message with 1 to 3 calls, and one tool message for each."""
    rng = random.Random(seed)
    for number in range(count):
        calls = rng.choices((1, 2, 3), (5, 3, 2))[0]
        ids = [f"call_{number}_{place}" for place in range(calls)]
        assistant = {
            "role": "assistant",
            "content": prose(rng, words),
            "tool_calls": [
                {
                    "id": id,
                    "type": "function",
                    "function": {
                        "name": rng.choice(("read", "grep", "run")),
                        "arguments": json.dumps({"path": f"src/{rng.choice(_WORDS)}/{rng.choice(_WORDS)}.py"}),
                    },
                }
                for id in ids
            ],
        }
        results = [{"role": "tool", "tool_call_id": id, "content": prose(rng, result)} for id in ids]
        yield assistant, results
