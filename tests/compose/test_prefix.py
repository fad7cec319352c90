"""How much of a request equals the start of the one before."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations import result, text_block
from windowsill import Session
from windowsill.compose.render import same_blocks, same_start

pytestmark = pytest.mark.unit


def message(*content, role="user"):
    whole = {"role": role, "content": content[0] if isinstance(content[0], str) else content}
    return json.dumps(whole, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("before", "now", "count"),
    [
        ([], [b"a"], 0),
        ([b"a"], [], 0),
        ([b"a", b"b"], [b"a", b"b", b"c"], 2),
        ([b"a", b"b", b"c"], [b"a", b"b"], 2),
        ([b"a", b"b", b"c"], [b"a", b"x", b"c"], 1),
        ([b"x", b"b"], [b"a", b"b"], 0),
    ],
)
def test_the_messages_at_the_start_that_are_the_same_are_counted(before, now, count):
    """Up to the first that differs, whatever comes after it."""
    assert same_start(before, now) == count


@given(st.lists(st.binary(max_size=2)), st.lists(st.binary(max_size=2)))
def test_what_is_the_same_is_a_common_start_and_the_longest(before, now):
    """Neither more nor less."""
    count = same_start(before, now)
    assert before[:count] == now[:count]
    assert before[count : count + 1] != now[count : count + 1] or min(len(before), len(now)) == count


def test_a_message_that_grew_by_a_block_shares_its_start():
    """A marker joined to the task leaves the task's own block cached."""
    task, more = text_block("the task " * 10), text_block("a marker " * 10)
    share = same_blocks(message(task), message(task, more))
    assert share == pytest.approx(0.5, abs=0.05)


def test_the_share_is_of_the_new_message():
    """A message of which only the end went is whole at its start."""
    task, more = text_block("the task"), text_block("a marker")
    assert same_blocks(message(task, more), message(task)) == 1.0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (message("a"), message("b")),
        (message("a"), message("a", role="assistant")),
        (message(text_block("x"), text_block("a")), message(text_block("y"), text_block("a"))),
        (message(result("a", "one")), message(result("a", "two"))),
        (b'{"role": "user"}', b'{"role": "user"}'),
        (b'{"role": "assistant", "content": null}', b'{"role": "assistant", "content": null}'),
    ],
)
def test_nothing_is_shared(old, new):
    """When the first block differs, the role does, or there is no content to share."""
    assert same_blocks(old, new) == 0.0


def test_the_same_message_is_shared_whole():
    """A string and one text block are the same to a cache."""
    assert same_blocks(message("a"), message(text_block("a"))) == 1.0


pieces = st.lists(st.sampled_from("abc").map(text_block), min_size=1, max_size=5)


@given(pieces, pieces)
def test_a_share_is_a_share(old, new):
    """Between nothing and all, and all only where the old one begins with the new one."""
    share = same_blocks(message(*old), message(*new))
    assert 0.0 <= share <= 1.0
    assert (share == 1.0) is (old[: len(new)] == new)


def requests(count, **parts):
    """The notes of as many requests, each with the parts that functions of its number return."""
    session = Session.open("s", model="claude-sonnet-4-5", store=":memory:")
    session.add("hi")
    return [
        session.compose_sync(**{name: part(number) for name, part in parts.items()}).report.notes
        for number in range(count)
    ]


def reader(number, name="read"):
    return {"name": name, "description": f"Reads {number}.", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        (
            {"system": lambda number: f"You are a clerk. It is 10:0{number}. Be kind."},
            "the system prompt changes at character 28 ('a clerk. It is 10:04. Be kind.')",
        ),
        (
            {"system": lambda _: "You are a clerk.", "tools": lambda n: [reader(0, "write"), reader(n)]},
            "the definition of tool 'read' changes",
        ),
    ],
    ids=["system", "tools"],
)
def test_a_start_that_changes_with_every_request_is_told(parts, place, caplog):
    """In the notes while it lasts, and once in the log, with the first place that differs."""
    notes = requests(5, **parts)
    assert [any("no prompt cache" in note for note in each) for each in notes] == [False, False, False, True, True]
    assert notes[-1] == (f"no prompt cache can serve these requests: {place}, each time",)
    assert len([each for each in caplog.records if "no prompt cache" in each.getMessage()]) == 1


@pytest.mark.parametrize(
    "system",
    [lambda _: "the same", lambda number: "one" if number < 4 else "two", lambda number: "abbccd"[number]],
    ids=["never", "once", "every other"],
)
def test_a_start_that_stays_for_a_while_is_not_told(system, caplog):
    """Another phase, another set of tools: the requests between them begin alike."""
    assert requests(6, system=system) == [()] * 6
    assert "no prompt cache" not in caplog.text
