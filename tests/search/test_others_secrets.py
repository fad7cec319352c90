"""What an archive shows of other sessions holds none of their secrets."""

from __future__ import annotations

import base64
import json
import random

import pytest

from support.archives import asked, said
from windowsill import Session
from windowsill.messages import Message, Text, ToolResult, ToolUse
from windowsill.search import Archive

pytestmark = pytest.mark.unit

DIGITS = random.Random(1)
LINES = [base64.b64encode(DIGITS.randbytes(48)).decode() for _ in range(50)]
KEY = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *LINES, "-----END RSA PRIVATE KEY-----"])
QUESTIONS = ("private key server", "deploy note", "end of the note", LINES[20][:10], LINES[30], "BEGIN RSA")


@pytest.mark.parametrize("before", [0, 10, 60])
@pytest.mark.parametrize("kind", ["words", "result", "call", "stored"])
def test_no_piece_of_a_private_key_is_shown_to_another_session(kind, before):
    """The key is taken out of the whole message, before it is cut into passages."""
    note = "\n".join([*(f"deploy note {n} of the server" for n in range(before)), "key:", KEY, "end of the note"])
    message = {
        "words": Message(role="user", blocks=(Text(text=note),)),
        "result": Message(role="user", blocks=(ToolResult(tool_use_id="t", name="read", content=(Text(text=note),)),)),
        "call": Message(
            role="assistant", blocks=(ToolUse(id="t", name="write", arguments=json.dumps({"text": note})),)
        ),
        "stored": "nothing here",
    }[kind]
    store = said(message, id="theirs", project="p")
    if kind == "stored":
        with Archive(store, "theirs") as archive:
            archive.store([note])
    said("hello", store=store, id="mine", project="p")
    texts = [
        text
        for question in QUESTIONS
        for k in (1, 20)
        for text in asked(store, question, k, session="mine", scope="project")
    ]
    assert not [line for line in LINES if any(line[:20] in text for text in texts)]
    assert any("[secret: private-key]" in text for text in texts)
    own = [text for question in QUESTIONS for text in asked(store, question, 20, session="theirs")]
    assert any(LINES[20] in text for text in own), "a session sees its own words as they are"


def test_a_search_tool_shows_no_secret_of_another_session():
    """`history_search` and `retrieve` show the same."""
    store = said("the password = hunter2xyz of the blue server", id="theirs", project="p")
    with Session.open("mine", store=store, model="gpt-4o", project="p", scope="project") as session:
        session.add("hello")
        shown = session.tools.call("history_search", {"query": "blue server"}).text
        assert "[secret: password]" in shown
        assert "hunter2xyz" not in shown


def test_a_budget_holds_for_what_is_shown():
    """A sign may be longer than the secret in its place."""
    store = said(*(f"pwd='a{n}c{n}' blue" for n in range(20)), id="theirs", project="p")
    said("hello", store=store, id="mine", project="p")
    with Archive(store, "mine", scope="project", count=len) as archive:
        found = archive.retrieve("blue", budget=60)
        assert found
        assert sum(len(each.text) for each in found) <= 60
