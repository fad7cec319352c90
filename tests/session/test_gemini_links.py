"""Gemini's calls and responses mostly have no ids: what ties them is decided once, and holds after reopening."""

import pytest

from support.gemini_contents import answer, call, model, text, user
from support.sessions import opened
from windowsill import Session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

GO, NEXT = user(text("go")), user(text("next"))

CASES = {
    "one call": [GO, model(call("a")), user(answer("a", out=1)), NEXT],
    "two of one tool": [GO, model(call("a"), call("a")), user(answer("a", out=1)), user(answer("a", out=2)), NEXT],
    "calls in two contents": [GO, model(call("a")), model(call("a")), user(answer("a", out=1), answer("a", out=2))],
    "call with an id": [GO, model(call("a", id="x1")), user(answer("a", out=1)), NEXT],
    "words before the response": [GO, model(call("a", id="x1")), user(text("wait")), user(answer("a", out=1))],
    "response of another tool": [GO, model(call("a", id="x1")), user(answer("b", out=1)), NEXT],
    "orphan": [GO, user(answer("a", out=1)), model(call("a")), user(answer("a", out=2)), NEXT],
}


def bodies(payload):
    return {format: payload.body(format) for format in ("gemini", "openai", "anthropic", "responses")}


@pytest.mark.parametrize("composing", [False, True], ids=["composed at the end", "composed on the way"])
@pytest.mark.parametrize("contents", CASES.values(), ids=CASES)
def test_a_reopened_session_sends_what_the_running_one_sent(contents, composing):
    """In every format, and a past request can be shown as it was."""
    store = MemoryStore()
    session = opened(store, format="gemini", model="gemini-2.5-flash", budget=50_000)
    for content in contents:
        session.add(content)
        if composing:
            session.compose_sync()
    sent = bodies(session.compose_sync())
    request = session.calls[-1].id
    session.close()
    again = Session.open("s", store=store)
    assert again.request(request) == sent["gemini"]
    assert bodies(again.compose_sync()) == sent


def test_a_late_response_without_an_id_is_told_under_the_id_of_its_call():
    """Also after reopening: a request was sent before it came."""
    store = MemoryStore()
    session = opened(store, format="gemini", model="gemini-3-pro", budget=50_000)
    session.add(GO)
    session.add(model(call("read", id="x1")))
    session.compose_sync()
    session.close()
    session = Session.open("s", store=store)
    session.add(user(answer("read", out="THE RESULT")))
    assert "(result of tool call x1)" in str(session.compose_sync().to())
    assert "THE RESULT" in str(Session.open("s", store=store).compose_sync().to())
