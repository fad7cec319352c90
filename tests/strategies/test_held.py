"""The task, the request being worked on and instructions given in the middle stay, word for word, in every strategy."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windowsill
from support.conversations import result, use
from support.examples import examples
from support.sessions import problems
from windowsill import Plan, Session, Strategy
from windowsill.history.folds import MessageSpan, Proposal
from windowsill.history.view import sum_weights
from windowsill.messages import text_message
from windowsill.store.memory import MemoryStore
from windowsill.strategies.registry import BUILT_IN

pytestmark = pytest.mark.contract

ALL = (*sorted(BUILT_IN), "mask+condense", "outputs+condense", "mask+importance+condense")
REQUEST = "Build it so that: " + " ".join(f"R{number} holds;" for number in range(400))


def opened(name, *, budget=20_000, model="claude-sonnet-4-5"):
    return Session.open("s", model=model, budget=budget, strategy=name, store=MemoryStore(), tokenizer="o200k_base")


def call(session, number, words=250):
    session.add({"role": "assistant", "content": [use(f"t{number}")]})
    session.add({"role": "user", "content": [result(f"t{number}", f"line {number} " + "word " * words)]})


@pytest.mark.parametrize("name", ALL)
def test_the_request_stays_while_its_tool_loop_runs(name):
    """A chat that began with a greeting: all 400 requirements are sent as they were given, at every step."""
    session = opened(name)
    session.extend([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello!"}])
    session.add({"role": "user", "content": REQUEST})
    for number in range(80):
        call(session, number)
        payload = session.compose_sync()
        assert REQUEST.encode() in payload.body()
    assert session.folds
    assert problems(payload) == []


@pytest.mark.parametrize("name", ALL)
def test_what_a_program_says_as_the_user_is_no_request(name):
    """A reminder in the loop does not take the place of the user's own words."""
    session = opened(name)
    session.extend([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello!"}])
    session.add({"role": "user", "content": REQUEST})
    for number in range(40):
        call(session, number, words=500)
        session.add({"role": "user", "content": "<system-reminder>The list of tasks is empty.</system-reminder>"})
        payload = session.compose_sync()
    assert REQUEST.encode() in payload.body()


FORMS = {
    "openai": ("gpt-5", {3: "developer", 10: "system"}),
    "anthropic": ("claude-sonnet-4-5", {3: "system", 10: "system"}),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("name", ALL)
def test_instructions_in_the_middle_survive_twenty_reductions(name, form):
    """They stay where they were given, word for word, and the request stays valid."""
    model, roles = form
    session = opened(name, budget=3_000, model=model)
    session.extend([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello!"}])
    rules = []
    turn = 0
    while len(session.folds) < 20 and turn < 600:
        session.add({"role": "user", "content": f"question {turn} " + "why " * 60})
        if turn in roles:
            rules.append(f"From message {turn} on answer in verse {turn}.")
            session.add({"role": roles[turn], "content": rules[-1]})
        payload = session.compose_sync()
        session.add({"role": "assistant", "content": f"answer {turn} " + "so " * 60})
        turn += 1
    assert len(session.folds) >= 20
    shown = [session.view.read(item).text for item in session.view.items if item.role == "system" and not item.fold]
    assert shown == rules
    assert all(rule.encode() in payload.body() for rule in rules)
    assert problems(payload) == []


class Greedy(Strategy):
    """Hides everything between the first and the last message, as a plug-in that knows nothing might."""

    name = "greedy"

    def plan(self, view, budget):
        del budget
        items = view.items[1:-1]
        stand_in = text_message("user", "-")
        span = MessageSpan(
            first=items[0].first,
            last=items[-1].last,
            hides=len(items),
            saves=sum_weights(item.weight for item in items) - view.weigh(stand_in),
            weight=view.weigh(stand_in),
        )
        fold = Proposal(kind="truncate", reason="all", strategy=self.name, spans=(span,), stand_ins=(stand_in,))
        return Plan(proposals=(fold,))


def test_a_plug_in_that_would_hide_the_request_is_refused():
    """The plain cut takes over, and the report says why."""
    session = opened(Greedy(), budget=4_000)
    session.extend([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello!"}])
    session.add({"role": "user", "content": REQUEST[:2_000]})
    session.add({"role": "assistant", "content": "Well, " + "so " * 4_000})
    session.add({"role": "user", "content": "<system-reminder>go on</system-reminder>"})
    payload = session.compose_sync()
    assert REQUEST[:2_000].encode() in payload.body()
    assert any("'greedy'" in note and "the request being worked on" in note for note in payload.report.notes)


def test_instructions_larger_than_the_window_give_way_last_and_it_is_told():
    """Too many to show: the rest of the talk went before them, and the note names them."""
    session = opened("sliding-window", budget=2_000, model="gpt-5")
    session.add({"role": "user", "content": "hello"})
    for number in range(60):
        session.add({"role": "developer", "content": f"Rule {number}: " + "always " * 60})
        session.add({"role": "assistant", "content": "yes"})
    session.add({"role": "user", "content": "what now?"})
    payload = session.compose_sync()
    assert payload.tokens <= 2_000
    assert b"what now?" in payload.body()
    assert b"Rule 59" in payload.body()
    assert any("instruction" in note for note in payload.report.notes)


@pytest.mark.parametrize("name", ["sliding-window", "condense", "priority"])
@settings(max_examples=examples(0.15))
@given(
    roles=st.lists(st.sampled_from(["developer", "user", "assistant", "system"]), min_size=1, max_size=60),
    budget=st.integers(600, 3_000),
)
def test_instructions_anywhere_leave_a_valid_request_that_fits(name, roles, budget):
    """However they are mixed with the talk."""
    session = opened(name, budget=budget, model="gpt-5")
    session.add({"role": "user", "content": "the task"})
    for number, role in enumerate(roles):
        session.add({"role": role, "content": f"{role} {number} " + "word " * (number * 7 % 50)})
        session.add({"role": "user", "content": f"go on {number}"})
        payload = session.compose_sync()
        assert payload.tokens <= budget
        assert windowsill.validate(payload.to()) == []
