"""Sessions in which a tool gave outputs, and what of them the next request shows."""

from support.conversations import result, use
from support.sessions import TASK, opened, problems

LONG = "\n".join(f"line {number} of the listing" for number in range(1, 4_001))
"""Above what one output may show."""


def working(*outputs, strategy="outputs", name="read", window=80_000, store=None, id="t{}"):
    """A session in which a tool gave these outputs."""
    session = opened(store, strategy=strategy, window=window, budget=window)
    session.add({"role": "user", "content": TASK})
    for number, output in enumerate(outputs):
        session.add({"role": "assistant", "content": [use(id.format(number), name)]})
        session.add({"role": "user", "content": [result(id.format(number), output)]})
    return session


def sent(session, *, tools=True):
    """The texts of the results in the next request."""
    payload = session.compose_sync(tools=session.tools.tools if tools else ())
    assert problems(payload) == []
    blocks = [block for message in payload.messages for block in message["content"] if isinstance(block, dict)]
    return [_text(block["content"]) for block in blocks if block["type"] == "tool_result"]


def _text(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
