"""OpenAI Responses: rendered and mended."""

from __future__ import annotations

import msgspec
import pytest

from support.conversations import (
    call,
    result,
    text_block,
    thinking,
    tool,
    use,
)
from support.response_items import (
    COMPUTER,
    FILE,
    FORMAT,
    HI,
    ITEM,
    ITEMS,
    OK,
    PAIRS,
    PATCH_OUTPUT,
    PIXEL,
    SEARCH,
    crossed,
    custom,
    custom_output,
    edited,
    function,
    input_text,
    mended,
    output,
    read,
    reasoned,
    render,
    said,
    written,
)
from windowsill import providers
from windowsill.history.repair import repair
from windowsill.messages import Text

pytestmark = pytest.mark.unit


def test_edited_message_keeps_what_stands_around_its_blocks():
    """Fields of the item survive, and untouched parts keep their bytes."""
    item = {**written("a", "b"), "phase": "commentary", "x": 1}
    untouched = read(item).blocks[1]
    parts = [*written("c")["content"], item["content"][1]]
    assert render(edited(item, Text(text="c"), untouched)) == [{**item, "content": parts}]


def test_edited_message_keeps_parts_of_an_unknown_kind():
    """They stay parts of the message."""
    smell = {"type": "input_smell", "x": [1]}
    message = said(input_text("a"), smell, id="msg_1")
    assert render(edited(message, Text(text="b"), read(message).blocks[1])) == [
        {**message, "content": [input_text("b"), smell]}
    ]


def test_edited_call_and_output_keep_their_fields():
    """A new id or a shorter output is all that changes."""
    asked, answer = function("c0", id="fc_1", status="completed"), output("c0", "long", id="fco_1")
    renamed = msgspec.structs.replace(read(asked).calls[0], id="c1")
    assert render(edited(asked, renamed)) == [{**asked, "call_id": "c1"}]
    moved = msgspec.structs.replace(read(COMPUTER).calls[0], id="c1")
    assert render(edited(COMPUTER, moved)) == [{**COMPUTER, "call_id": "c1"}]
    short = msgspec.structs.replace(read(answer).results[0], content=(Text(text="short"),))
    assert render(edited(answer, short)) == [{**answer, "output": "short"}]


@pytest.mark.parametrize(("asked", "answer"), PAIRS, ids=lambda item: item["type"])
def test_edited_output_of_any_tool_is_still_one(asked, answer):
    """A masked output keeps the form its tool demands."""
    masked = msgspec.structs.replace(read(answer).results[0], content=(Text(text="(gone)"),), raw=None)
    (rendered,) = render(edited(answer, masked))
    ITEM.validate_python(rendered)
    assert providers.validate([HI, asked, rendered], format="responses") == []


@pytest.mark.parametrize(("asked", "answer"), PAIRS, ids=lambda item: item["type"])
def test_call_without_its_item_is_built_anew(asked, answer):
    """A call that was carried into another message is still of its kind."""
    carried = msgspec.structs.replace(read(asked), raw=None, edited=True)
    (rendered,) = render(carried)
    ITEM.validate_python(rendered)
    assert providers.validate([HI, rendered, answer], format="responses") == []


def test_anthropic_turn_becomes_items():
    """Thinking stays behind; words and calls are one item each, and so are the results."""
    turn = {"role": "assistant", "content": [thinking(), text_block("I"), text_block("look"), use("a"), use("b")]}
    user = {"role": "user", "content": [result("a", "one"), result("b", "bad", is_error=True), text_block("go on")]}
    arguments = '{"path":"a.py"}'
    assert crossed("anthropic", turn, user) == [
        {"role": "assistant", "content": "I\nlook"},
        function("a", arguments=arguments),
        function("b", arguments=arguments),
        output("a", "one"),
        output("b", "[error] bad"),
        {"role": "user", "content": "go on"},
    ]


def test_anthropic_picture_in_a_result_stays_in_it():
    """An output may hold pictures; what cannot be found from here becomes words."""
    inline = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    lost = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
    page = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "page"}}
    assert crossed("anthropic", {"role": "user", "content": [result("a", [inline, lost, page])]}) == [
        output("a", [{**PIXEL, "detail": "auto"}, input_text("(image file_1)"), input_text("page")])
    ]


def test_failed_result_with_a_picture_says_that_it_failed():
    """There is no field for it; a patch has one."""
    inline = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    assert crossed("anthropic", {"role": "user", "content": [result("a", [inline], is_error=True)]}) == [
        output("a", [input_text("[error]"), {**PIXEL, "detail": "auto"}])
    ]
    assert render(edited(PATCH_OUTPUT, *read(PATCH_OUTPUT).blocks)) == [PATCH_OUTPUT]


def test_thinking_alone_does_not_leave_nothing():
    """A message never vanishes by crossing over."""
    assert crossed("anthropic", {"role": "assistant", "content": [thinking()]}) == [
        {"role": "assistant", "content": "(empty message)"}
    ]


def test_chat_crosses_both_ways():
    """Instructions, calls, outputs and files find their place, and come back the same."""
    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}}
    chat = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [text_block("hi"), file]},
        {"role": "assistant", "content": None, "tool_calls": [call("c0")]},
        tool("c0", "out"),
        {"role": "assistant", "content": "done"},
    ]
    body = {"model": "m", "max_tokens": 5, "messages": chat}
    over = providers.render_request(providers.read_request(body, format="openai"), format="responses")
    assert msgspec.json.decode(over) == {
        "model": "m",
        "instructions": "be brief",
        "max_output_tokens": 5,
        "input": [
            {"role": "user", "content": [input_text("hi"), FILE]},
            function("c0"),
            output("c0", "out"),
            {"role": "assistant", "content": "done"},
        ],
    }
    back = providers.render_request(FORMAT.read_body(over), format="openai")
    assert msgspec.json.decode(back)["messages"] == chat


def test_several_system_prompts_become_one_text():
    """`instructions` is one text."""
    systems = [FORMAT.read_system("be brief"), read({"role": "developer", "content": [input_text("be kind")]})]
    assert FORMAT.render_system(systems) == b'"be brief\\n\\nbe kind"'
    assert FORMAT.render_system(systems[:1]) == b'"be brief"'
    assert FORMAT.render_system([]) is None


def test_parallel_calls_of_one_turn_need_no_mending():
    """Reasoning, words, several calls and then their outputs stand as they came."""
    items = [HI, reasoned(), written("I look"), function("a"), function("b"), output("b"), output("a"), OK]
    found = mended(*items)
    assert (found.messages, found.repairs) == (items, ())


def test_system_message_inside_stays_where_it_is():
    """Also one that came from another format."""
    chat = [HI, OK, {"role": "system", "content": "now in French"}, HI]
    request = providers.read_request(chat, format="openai")
    found = repair(request.messages, FORMAT.rules)
    assert [each for message in found.messages for each in render(message)] == chat


@pytest.mark.parametrize(("asked", "answer"), PAIRS, ids=lambda item: item["type"])
def test_missing_output_is_of_the_kind_its_call_demands(asked, answer):
    """The stand-in is an item the provider accepts for this call."""
    found = mended(HI, asked, OK)
    assert [each.kind for each in found.repairs] == ["missing_supplied"]
    assert found.messages[-1]["type"] == answer["type"]
    ITEMS.validate_python(found.messages)
    assert providers.validate(found.messages, format="responses") == []


@pytest.mark.parametrize(
    ("asked", "answer", "expected"),
    [
        (custom("c0"), output("c0"), custom_output("c0")),
        (function("c0"), custom_output("c0"), output("c0")),
        (function("c0"), tool("c0"), output("c0")),
    ],
)
def test_output_of_the_wrong_kind_becomes_that_of_its_call(asked, answer, expected):
    """A program that answers every call in the same way is understood."""
    messages = [
        read(HI),
        read(asked),
        providers.read_added(answer, format="openai" if "role" in answer else "responses").messages[0],
    ]
    assert [render(message)[0] for message in repair(messages, FORMAT.rules).messages] == [HI, asked, expected]


def test_output_that_is_missing_in_its_item_is_filled():
    """An output must say something, if only empty text."""
    found = mended(HI, function("a"), output("a", None))
    assert found.messages == [HI, function("a"), output("a", "")]
    assert [each.kind for each in found.repairs] == ["empty_filled"]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([HI, reasoned()], [HI]),
        ([HI, reasoned(1), reasoned(2), HI, OK], [HI, HI, OK]),
        ([HI, SEARCH, reasoned()], [HI, SEARCH]),
    ],
)
def test_reasoning_that_leads_nowhere_is_left_out(items, expected):
    """A reply that was cut short leaves reasoning behind, which is refused alone."""
    found = mended(*items)
    assert found.messages == expected
    assert {each.kind for each in found.repairs} == {"orphan_removed"}


def test_item_that_says_nothing_is_left_out():
    """A turn goes on without it, and so does a view that took the reasoning away."""
    found = mended(HI, {"role": "assistant", "content": []}, function("a"), output("a"))
    assert found.messages == [HI, function("a"), output("a")]
    hollow = edited(reasoned())
    left = repair([read(HI), hollow, read(OK)], FORMAT.rules).messages
    assert [render(message) for message in left] == [[HI], [OK]]


def test_call_id_that_is_too_long_is_renamed_with_its_output():
    """Other providers have longer ids."""
    long = "x" * 65
    _, asked, answer = mended(HI, function(long), output(long)).messages
    assert asked["call_id"] == answer["call_id"]
    assert len(asked["call_id"]) <= 64
