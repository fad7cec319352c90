"""The state fills itself: what calls, answers and folds leave in it, without a model call."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.agents import at_once, engine
from support.examples import examples
from support.sessions import opened
from windowsill.agent import Engine, tool
from windowsill.agent.observations import observe_call
from windowsill.agent.tools import Outcome
from windowsill.messages import Text, ToolUse
from windowsill.state import State
from windowsill.state.changes import StateDocument
from windowsill.state.layers import Evidence
from windowsill.testing import Call, Scripted

pytestmark = pytest.mark.integration


@tool(category="read", repeatable=True)
def read_file(path: str) -> str:
    """Read a file."""
    return f"contents of {path}: " + "some words " * 200


@tool(category="write")
def write_file(path: str, text: str) -> str:
    """Write a file."""
    return f"wrote {len(text)} to {path}"


@tool(category="search", repeatable=True)
def web_search(query: str) -> str:
    """Search the web."""
    return f"1. About {query}: https://example.org/kiln\n2. More in src/kiln.py:12"


@tool(category="execute")
def run_tests(command: str) -> str:
    """Run tests."""
    return f"{command}\n12 passed, 3 failed\ncoverage: 87%"


TOOLS = [read_file, write_file, web_search, run_tests]


def worked(answers, *, budget=60_000, **more):
    session = opened(budget=budget)
    made = Engine(
        session,
        model=Scripted(answers, format="anthropic"),
        tools=TOOLS,
        **{"phases": ("executing",), "sleep": at_once, "approve": lambda *_: True, **more},
    )
    return made, made.run_sync("Mend the kiln.")


def test_calls_fill_evidence_and_work():
    """An observation, a search result with its sources, numbers, and the file that was changed."""
    made, result = worked(
        [
            Call("read_file", {"path": "a.py"}),
            Call("web_search", {"query": "kiln heat"}),
            Call("run_tests", {"command": "pytest -q"}),
            Call("write_file", {"path": "a.py", "text": "x"}),
            "The kiln is mended and warm.",
        ],
        categories={"executing": ("read", "write", "execute", "search")},
    )
    assert result.ok
    state = made.session.state.value
    assert [(each.tool, each.result[:16]) for each in state.evidence.observations] == [
        ("read_file", "contents of a.py"),
        ("run_tests", "pytest -q\n12 pas"),
    ]
    (found,) = state.evidence.retrieved
    assert (found.query, found.source) == ("kiln heat", "https://example.org/kiln, src/kiln.py:12")
    assert [each.source for each in state.evidence.citations] == ["https://example.org/kiln", "src/kiln.py:12"]
    numbers = {each.metric: (each.value, each.unit) for each in state.evidence.measurements}
    assert numbers == {"coverage": (87.0, "%"), "passed": (12.0, ""), "failed": (3.0, "")}
    (change,) = state.work.changes
    assert (change.target, change.type, change.applied) == ("a.py", "modify", True)
    assert [turn.text for turn in state.memory.short_term.turns] == [
        "Mend the kiln.",
        "The kiln is mended and warm.",
    ]


def test_what_stands_in_the_conversation_is_not_told_again():
    """Requests are the same as without it: every observation is there already, in its message."""
    made, _ = worked([*(Call("read_file", {"path": f"{place}.py"}) for place in range(6)), "Done."])
    told = [m.text for m in made.session.messages() if m.metadata.get("windowsill") == "state"]
    assert not any("observation" in text or "recent_turns" in text for text in told)


def test_a_failure_a_plan_and_a_memory_are_told_once():
    """The call and its result say it; the state says it again only when a fold hides them."""
    plan = [{"description": "heat the kiln", "status": "in_progress"}]
    script = [
        Call("update_plan", {"steps": plan}),
        Call("remember", {"kind": "fact", "text": "the kiln is at 900 degrees"}),
        Call("broken", {}),
        Call("update_plan", {"steps": [{**plan[0], "status": "completed"}]}),
    ]
    model = Scripted([*script, "Done."], format="anthropic")
    assert engine(model).run_sync("Mend it.").ok
    sent = msgspec.json.encode(model.requests[-1]).decode()
    assert {words: sent.count(words) for words in ("heat the kiln", "at 900 degrees", "it is broken")} == {
        "heat the kiln": 2,  # in two calls
        "at 900 degrees": 1,
        "it is broken": 1,
    }


def test_what_a_fold_hides_of_a_plan_and_a_failure_is_told_again():
    """The newest plan as it stands, and the failure with its tool."""
    plan = [{"description": "heat the kiln", "status": "in_progress"}]
    reads = [Call("look", {"path": f"{place}-" + "x" * 2_000}) for place in range(30)]
    script = [Call("update_plan", {"steps": plan}), Call("broken", {}), *reads, "Done."]
    model = Scripted(script, format="anthropic")
    running = engine(model, session=opened(budget=9_000))
    assert running.run_sync("Mend it.").ok
    assert running.session.folds
    told = [m.text for m in running.session.messages() if m.metadata.get("windowsill") == "state"]
    assert '<step id="1" status="in_progress">heat the kiln</step>' in told[-1]
    assert "it is broken</failure>" in told[-1]


def test_folds_leave_summaries_that_say_what_they_stand_for():
    """And the model is told of hidden changes and searches after a fold."""
    calls = [Call("write_file", {"path": f"mod{place}.py", "text": "x = 1\n" * 150}) for place in range(40)]
    made, result = worked([*calls, "Done."], budget=7_000)
    assert result.ok
    session, summaries = made.session, made.session.state.value.memory.episodic.summaries
    assert session.folds
    assert summaries
    assert all(each.text and each.condensed_from and each.id.startswith("f") for each in summaries)
    told = [m.text for m in session.messages() if m.metadata.get("windowsill") == "state"]
    assert any('target="mod' in text for text in told)


def test_a_result_that_was_sent_back_is_a_draft():
    """With its version; the next task begins without it."""
    running = engine(
        ["first try", "second try 42", "next"], validators={"it says 42": lambda text: "42" in text or "no 42"}
    )
    running.run_sync("Say 42.", criteria=["it says 42"])
    (draft,) = running.session.state.value.work.drafts
    assert (draft.content, draft.version) == ("first try", 1)


ANY = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=40),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from(["path", "command", "query", "text", "edits", "x"])


@given(st.dictionaries(NAMES, ANY, max_size=4), st.text(max_size=300), st.sampled_from(TOOLS))
@settings(max_examples=examples(0.6))
def test_whatever_a_call_holds_what_is_observed_can_be_written(arguments, text, called):
    """No argument and no output of a tool makes a change that the state refuses."""
    try:
        encoded = msgspec.json.encode(arguments).decode()
    except (ValueError, UnicodeEncodeError):
        return
    call = ToolUse(id="c", name=called.name, arguments=encoded)
    outcome = Outcome(call=call, blocks=(Text(text=text.encode(errors="replace").decode()),))
    StateDocument(State()).check(observe_call(called, "m1/c", outcome, 1, Evidence()), at=0.0, number=1)
