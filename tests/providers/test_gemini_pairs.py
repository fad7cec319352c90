"""Calls and responses without ids: each response goes with its call, wherever the conversation goes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windowsill
from support.examples import examples
from support.gemini_contents import HI, model, text, user
from support.sessions import opened
from windowsill import providers
from windowsill.providers.gemini.messages import Gemini
from windowsill.providers.gemini.read import TurnLinker

pytestmark = pytest.mark.unit


def asked(name: str, number: int, id: str | None) -> dict[str, Any]:
    return {"functionCall": {**({} if id is None else {"id": id}), "name": name, "args": {"n": number}}}


def answered(name: str, number: int, id: str | None, words: str = "") -> dict[str, Any]:
    inner = {"name": name, "response": {"output": f"{number} {words}"}}
    return {"functionResponse": inner if id is None else {"id": id, **inner}}


@st.composite
def turns(draw: st.DrawFn, *, most: int = 4, words: str = "") -> list[dict[str, Any]]:
    """Turns of parallel calls, many of one tool, all in one content or one each, as streams write them.

    Responses come in any order, but in that of the calls where only the order tells them apart.
    """
    contents = [HI]
    number = 0
    for turn in range(draw(st.integers(1, most))):
        batch = []
        for place in range(draw(st.integers(1, 4))):
            name = draw(st.sampled_from(["read", "read", "run", "read.all"]))
            # Whoever gives ids gives them to all calls of a tool.
            id = f"t{turn}_{place}" if name == "run" else None
            batch.append((name, number, id))
            number += 1
        order = draw(st.permutations(batch))
        unnamed = {name: iter([each for each in batch if each[0] == name]) for name, _, id in batch if id is None}
        replies = [next(unnamed[each[0]]) if each[2] is None else each for each in order]
        calls = [asked(*each) for each in batch]
        responses = [answered(*each, words) for each in replies]
        contents += [model(*calls)] if draw(st.booleans()) else [model(each) for each in calls]
        contents += [user(*responses)] if draw(st.booleans()) else [user(each) for each in responses]
    return [*contents, model(text("done"))]


def pairs_of_openai(messages: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """The numbers that calls and the results with their ids carry, turn by turn."""
    found, calls = [], {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            calls[call["id"]] = msgspec.json.decode(call["function"]["arguments"])["n"]
        if message["role"] == "tool":
            found.append((calls.pop(message["tool_call_id"]), int(message["content"].split()[0])))
    return found


def pairs_of_gemini(contents: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """The same, tied by id, or by name and order, as Gemini does it."""
    found, calls = [], []
    for content in contents:
        for part in content["parts"]:
            if "functionCall" in part:
                calls.append(part["functionCall"])
            if answer := part.get("functionResponse"):
                call = next(
                    each for each in calls if each["name"] == answer["name"] and each.get("id") == answer.get("id")
                )
                calls.remove(call)
                found.append((call["args"]["n"], int(answer["response"]["output"].split()[0])))
    return found


def numbers(contents: list[dict[str, Any]]) -> list[int]:
    return [part["functionCall"]["args"]["n"] for each in contents for part in each["parts"] if "functionCall" in part]


def crossed(messages: Any, target: str) -> dict[str, Any]:
    """The mended conversation as a body of another format."""
    session = opened(budget=None, window=10**6, format="gemini")
    session.extend(messages)
    return session.compose_sync(params={}).to(target)


@given(turns(), st.booleans())
def test_each_result_goes_with_its_call_to_another_provider(contents, together):
    """Read as a whole or content by content, one result for every call, and none with another's."""
    messages = providers.read_request(contents, format="gemini").messages if together else contents
    found = pairs_of_openai(crossed(messages, "openai")["messages"])
    assert sorted(found) == [(number, number) for number in numbers(contents)]


@given(turns())
def test_each_response_stays_with_its_call(contents):
    """What Gemini gets is tied the same way, and nothing had to be mended but the order of contents."""
    session = opened(budget=None, window=10**6, format="gemini")
    session.extend(contents)
    payload = session.compose_sync()
    assert windowsill.validate(payload.to(), "gemini") == []
    assert {each.kind for each in payload.report.repairs} <= {"role_order_mended", "late_moved"}
    assert sorted(pairs_of_gemini(payload.messages)) == [(number, number) for number in numbers(contents)]


@given(turns())
def test_contents_that_come_one_by_one_are_tied_like_the_whole(contents):
    """One after the other, contents read alone get the ids they would get in the conversation."""
    whole = providers.read_request(contents, format="gemini").messages
    linker = TurnLinker()
    found = [linker.link(Gemini().read_message(msgspec.json.encode(each), "")) for each in contents]
    assert tuple(found) == whole


@settings(max_examples=examples(0.6))
@given(turns(most=12, words="word " * 60), st.sampled_from(["anthropic", "gemini", "openai"]))
def test_folds_take_calls_and_responses_together(contents, target):
    """In a small window, composed before every step of the model, what is still shown is whole and rightly tied."""
    session = opened(budget=900, format="gemini")
    before = "assistant"
    for message in providers.read_request(contents, format="gemini").messages:
        if message.role == "assistant" != before:
            payload = session.compose_sync(params={"max_tokens": 9})
            assert {each.kind for each in payload.report.repairs} <= {"role_order_mended", "late_moved"}
        session.add(message)
        before = message.role
    body = payload.to(target)
    assert windowsill.validate(body, target) == []
    if target == "gemini":
        shown = pairs_of_gemini(body["contents"])
    else:
        over = providers.render_request(providers.read_request(body, format=target), format="openai")
        shown = pairs_of_openai(msgspec.json.decode(over)["messages"])
    assert all(one == other for one, other in shown)
