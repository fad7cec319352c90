"""The work of repair grows with the conversation, not with its square."""

import pytest

from support.step_counts import count_steps
from windowsill import providers
from windowsill.history.repair import repair
from windowsill.messages import Message, Text, ToolResult, ToolUse
from windowsill.providers.gemini.read import TurnLinker

pytestmark = pytest.mark.unit

GO = Message(role="user", blocks=(Text(text="go"),))


def asked(*ids):
    return Message(role="assistant", blocks=tuple(ToolUse(id=id, name="read") for id in ids))


def came(id, text="done"):
    return Message(role="user", blocks=(ToolResult(tool_use_id=id, content=(Text(text=text),)),))


SHAPES = {
    "unanswered calls, one message each": lambda n: [GO, *(asked(f"c{number}") for number in range(n))],
    "unanswered calls of one message": lambda n: [GO, asked(*(f"c{number}" for number in range(n)))],
    "one id in every turn": lambda n: [GO, asked("c"), came("c")] * n,
    "one id for all calls of a message": lambda n: [GO, asked(*["c"] * n), *[came("c")] * n],
    "results tied by the name of the tool": lambda n: [
        GO,
        asked(*(f"read#{number}" for number in range(n))),
        *[came("read#0")] * n,
    ],
    "many results for one call": lambda n: [GO, asked("c"), *(came("c", f"part {number}") for number in range(n))],
    "results without calls": lambda n: [GO, *(came(f"c{number}") for number in range(n))],
    "late results": lambda n: [
        GO,
        asked(*(f"c{number}" for number in range(n))),
        GO,
        Message(role="assistant", blocks=(Text(text="ok"),)),
        *(came(f"c{number}") for number in range(n)),
    ],
}


@pytest.mark.parametrize("format", ["anthropic", "openai", "responses", "gemini"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_four_times_the_messages_are_about_four_times_the_steps(shape, format):
    """A square would be sixteen times."""
    rules = providers.get(format).rules
    small, large = shape(60), shape(240)
    few, many = count_steps(lambda: repair(small, rules)), count_steps(lambda: repair(large, rules))
    assert many < 7 * few


def test_contents_without_ids_are_tied_in_about_as_many_steps_each():
    """Each response takes the next call that waits, however many there are."""

    def tie(n):
        linker = TurnLinker()
        for message in [GO, asked(*(f"read#{number}" for number in range(n))), *[came("read#0")] * n]:
            linker.link(message)

    few, many = count_steps(lambda: tie(60)), count_steps(lambda: tie(240))
    assert many < 7 * few
