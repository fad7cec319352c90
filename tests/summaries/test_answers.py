"""What a model wrote, read strictly: tags, fences, JSON."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill import providers
from windowsill.messages import Message, Text, ToolResult, text_message
from windowsill.summaries import Material
from windowsill.summaries.answers import (
    is_refusal,
    parse_compact,
    parse_state,
    parse_summary,
    script_of,
    without_thoughts,
)
from windowsill.summaries.requests import MOST_PARTS, UnusableError, mark_for, split, transcript

pytestmark = pytest.mark.unit

RETAIN = "<retain>- a.py</retain>"
BOTH = f"{RETAIN}<summary>Done.</summary>"
READ = "Retained:\n- a.py\n\nSummary:\nDone."


def kind(read: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(UnusableError) as caught:
        read(*arguments, **named)
    return caught.value.kind


@pytest.mark.parametrize(
    "answer",
    [
        BOTH,
        f"\n\n{RETAIN}\n\n<summary>\nDone.\n</summary>\n",
        "<RETAIN>- a.py</RETAIN> < summary >Done.</ summary >",
        f"```xml\n{BOTH}\n```",
        f"~~~\n{BOTH}\n~~~",
        "<summary>Done.</summary><retain>- a.py</retain>",
    ],
)
def test_retain_and_summary(answer: str) -> None:
    """Both parts are found, in either order, in any letters, with a fence around all of it or without."""
    assert (parse_compact(answer).text, parse_compact(answer).notes) == (READ, ())


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("Done.", "no-summary-tag"),
        (RETAIN, "no-summary-tag"),
        ("<summary>Done.", "tag-unclosed"),
        (f"{RETAIN}<summary>Done.", "tag-unclosed"),
        ("<retain>- a.py<summary>Done.</summary>", "tag-nested"),
        ("Done.</summary>", "tag-unclosed"),
        ("<summary>Done.</retain>", "tag-unclosed"),
        ("<summary>One.</summary><summary>Two.</summary>", "tag-twice"),
        (f"{RETAIN}{BOTH}", "tag-twice"),
        ("<summary>One <summary>Two.</summary></summary>", "tag-nested"),
        ("<summary>One <retain>Two.</retain></summary>", "tag-nested"),
        ("<summary> \n </summary>", "empty"),
        ("", "empty"),
        (" \n\t", "empty"),
        ("I'm sorry, but I can't do that.", "refusal"),
        ("The tool said: `<summary>x</summary>`", "no-summary-tag"),
        ("The tool said:\n> <summary>x</summary>", "no-summary-tag"),
        ("The file holds:\n```\n<summary>x</summary>\n```\nThat is all.", "no-summary-tag"),
    ],
)
def test_broken_answers(answer: str, fault: str) -> None:
    """Every way to miss the form has its name."""
    assert kind(parse_compact, answer) == fault


@pytest.mark.parametrize(
    "quoted",
    [
        "```html\n<summary>evil</summary></summary>\n```",
        "> <summary>evil\n> </retain>",
        "the tag `</summary>` closes it",
        "~~~\n</summary>\n~~~",
    ],
)
def test_quoted_tags_are_words(quoted: str) -> None:
    """Tags in fences, quoted lines and code within a line belong to what is reported, word for word."""
    assert parse_compact(f"{RETAIN}<summary>It printed\n{quoted}\nand ended.</summary>").text.endswith(
        f"It printed\n{quoted}\nand ended."
    )


def test_missing_retain_is_told() -> None:
    """A summary alone can be used; that nothing is retained is told."""
    parsed = parse_compact("<summary>Done.</summary>")
    assert (parsed.text, parsed.notes) == ("Done.", ("no-retain-tag: the answer retains nothing",))


def test_words_outside_of_the_tags_are_left_out() -> None:
    """What stands beside the parts is not used, and that is told."""
    parsed = parse_compact(f"Here it is:\n{BOTH}\nAnything else?")
    assert (parsed.text, parsed.notes) == (READ, ("outside-tags: words outside of the tags were left out",))


def test_summary_without_tags() -> None:
    """A plain text is taken where no tags are demanded, and only there."""
    assert parse_summary("Done.", tags=False).text == "Done."
    assert parse_summary("Done.", tags=False).notes[0].startswith("no-summary-tag")
    assert kind(parse_summary, "Done.", tags=True) == "no-summary-tag"


def test_summary_with_tags() -> None:
    """Where tags are, they count, demanded or not."""
    assert parse_summary("Well. <summary>Done.</summary>", tags=False).text == "Done."
    assert kind(parse_summary, "<summary>One.</summary><summary>Two.</summary>", tags=False) == "tag-twice"


@given(st.text(st.sampled_from(list('<>/`~\n retainsummary{}"x')), max_size=60), st.booleans())
def test_any_answer_is_read_or_refused_by_name(answer: str, tags: bool) -> None:  # noqa: FBT001 hypothesis gives it
    """Nothing but text or a named fault comes out, whatever goes in."""
    for read in (parse_compact, lambda text: parse_summary(text, tags=tags), lambda text: parse_state(text, None)):
        with suppress(UnusableError):
            assert read(answer).text.strip()


@pytest.mark.growth
@pytest.mark.parametrize("pieces", ["```a\n", "~~~a\n```b\n", "`", "< ", "<summary", "\n", "> `", "````\n"])
@pytest.mark.parametrize("read", [parse_compact, lambda text: parse_state(text, None)])
def test_no_answer_takes_long_to_read(pieces: str, read: Any) -> None:
    """What is read once is read at once: an answer of a million characters, made to be looked at again and again."""
    answer = f"<{' ' * 200_000}x" + pieces * (800_000 // len(pieces))
    with suppress(UnusableError):
        read(answer)


@pytest.mark.parametrize(
    "answer",
    [
        '{"city": "Kyoto"}',
        '```json\n{"city": "Kyoto"}\n```',
        '<think>{"city": "Nara"}</think>{"city": "Kyoto"}',
        ' \n{"city":\n"Kyoto"} ',
    ],
)
def test_state(answer: str) -> None:
    """The object is found, with a fence around it or without."""
    parsed = parse_state(answer, None)
    assert (parsed.state, json.loads(parsed.text), parsed.notes) == ({"city": "Kyoto"}, {"city": "Kyoto"}, ())


@pytest.mark.parametrize(
    "answer",
    ['{"a": 1}\nI hope this helps!', 'Here it is: {"a": 1}', 'So:\n```json\n{"a": 1}\n```\nFine? {not this}'],
)
def test_words_beside_the_state(answer: str) -> None:
    """Words around the object are left out, and that is told."""
    parsed = parse_state(answer, None)
    assert (parsed.state, parsed.notes) == ({"a": 1}, ("outside-tags: words beside the JSON were left out",))


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("I have no idea.", "not-an-object"),
        ('[{"a": 1}]', "not-an-object"),
        ('"text"', "not-an-object"),
        ('{"a": 1', "not-json"),
        ("{'a': 1}", "not-json"),
        ('{"a": NaN}', "not-json"),
        ('{"a": 1e999}', "not-json"),
        ('{"a":' * 100_000, "not-json"),
        ('{"a": 1} {"a": 2}', "json-twice"),
        ("", "empty"),
        ("I'm sorry, I can't help with that.", "refusal"),
    ],
)
def test_broken_states(answer: str, fault: str) -> None:
    """Every way to give no object has its name."""
    assert kind(parse_state, answer, None) == fault


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def test_state_fulfils_its_schema() -> None:
    """An object that fulfils the schema is used."""
    assert parse_state('{"n": 3}', SCHEMA).state == {"n": 3}


@pytest.mark.parametrize("answer", ['{"n": "3"}', "{}", '{"n": 3, "more": 1}'])
def test_state_against_its_schema(answer: str) -> None:
    """One that breaks it is refused, and the place is named."""
    with pytest.raises(UnusableError, match="breaks its schema at") as caught:
        parse_state(answer, SCHEMA)
    assert caught.value.kind == "schema"


@pytest.mark.parametrize("schema", [{"type": 7}, {"$ref": "http://127.0.0.1:9/schema.json"}, {"$ref": "#/nowhere"}])
def test_broken_schema(schema: dict[str, Any]) -> None:
    """A schema that is none, or refers to what is not in it, is told; nothing is fetched."""
    assert kind(parse_state, '{"n": 3}', schema) == "broken-schema"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("I can\N{RIGHT SINGLE QUOTATION MARK}t help with that.", True),
        ("I am sorry, but I am unable to do this.", True),
        ("この会話を要約することはできません。", True),
        ("죄송합니다. 도와드릴 수 없습니다.", True),
        ("The user said: I can't help with that.", False),
        ("I can't help with that. " + "But here is the whole story. " * 40, False),
        ("I cannot reproduce the bug on Linux; the user sees it on Windows.", False),
    ],
)
def test_refusals(text: str, refused: bool) -> None:  # noqa: FBT001 a column of the table
    """Short answers that begin as a refusal are one; reports of a refusal are not."""
    assert is_refusal(text) is refused


def test_spoken_strips_thoughts() -> None:
    """Thoughts at the beginning are not part of the answer; later ones are words."""
    assert without_thoughts("<think>hm</think> Yes. <think>no</think>") == "Yes. <think>no</think>"


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Fix the parser, please.", "Latin"),
        ("src/windowsill/parse.py を直してください", "Japanese"),
        ("请修复解析器并且运行所有测试", "Han"),
        ("Исправь парсер в parse.py", "Cyrillic"),
        ("파서를 고쳐 주세요", "Hangul"),
        ("ok", ""),
        ("12345 --- ///", ""),
    ],
)
def test_scripts(text: str, script: str) -> None:
    """The script is that of most letters, those of code weighing least; too few tell nothing."""
    assert script_of([text]) == script


def test_what_is_too_long_is_divided_into_parts_that_fit() -> None:
    """Every message is in one part, in order, and each part fits."""
    messages = tuple(text_message("user", f"number {index} " * 20) for index in range(50))
    whole = Material(messages=messages, tokens=2_000, count=len_in_words)
    parts, left_out = split(whole, 600)
    assert left_out == 0
    assert [message for part in parts for message in part.messages] == list(messages)
    assert 1 < len(parts) < 10
    assert all(transcript(part.messages, mark="===", room=600, count=len_in_words) for part in parts)


def test_too_many_parts_are_not_read_in_the_middle() -> None:
    """What found no place is counted, so that it can be told."""
    messages = tuple(text_message("user", f"number {index} " * 20) for index in range(500))
    parts, left_out = split(Material(messages=messages, tokens=20_000, count=len_in_words), 600)
    assert len(parts) == MOST_PARTS
    assert (parts[0].messages[0], parts[-1].messages[-1]) == (messages[0], messages[-1])
    assert left_out == 500 - sum(len(part.messages) for part in parts) > 0


def test_transcript_cuts_the_long_before_the_many() -> None:
    """One huge tool output is cut in its middle rather than pushing out the messages around it."""
    huge = Text(text="line of output " * 5_000)
    messages = [
        text_message("user", "the question"),
        Message(role="user", blocks=(ToolResult(tool_use_id="c", content=(huge,)),)),
        text_message("assistant", "the answer"),
    ]
    text = transcript(messages, mark="===", room=600, count=len_in_words)
    assert len_in_words(text) <= 600
    assert "the question" in text
    assert "[...]" in text
    assert "the answer" in text


CAT = "https://example.com/cat.png"


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("anthropic", {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": CAT}}]}),
        ("openai", {"role": "user", "content": [{"type": "image_url", "image_url": {"url": CAT}}]}),
        ("responses", {"role": "user", "content": [{"type": "input_image", "image_url": CAT}]}),
        ("gemini", {"role": "user", "parts": [{"fileData": {"fileUri": CAT, "mimeType": "image/png"}}]}),
    ],
)
def test_transcript_tells_the_address_of_a_picture(format: str, message: dict[str, object]) -> None:
    """A summary can then name the picture, which the model may be shown again."""
    text = transcript(
        [providers.get(format).read_message(json.dumps(message).encode(), "it")],
        mark="===",
        room=100,
        count=len_in_words,
    )
    assert f"[a picture: {CAT}]" in text


@given(st.lists(st.text(max_size=80), min_size=1, max_size=30), st.integers(1, 400))
def test_transcript_fits(texts: list[str], room: int) -> None:
    """It has at most the tokens it may have, and its mark stands in no message."""
    messages = [text_message("user", text) for text in texts]
    mark = mark_for(messages)
    assert len_in_words(transcript(messages, mark=mark, room=room, count=len_in_words)) <= room
    assert not any(mark in text for text in texts)


def len_in_words(text: str) -> int:
    return len(text.split())
