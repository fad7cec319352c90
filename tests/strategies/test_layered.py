"""Layered: outputs beyond the evidence's share are masked, turns beyond memory's become a summary."""

import itertools

import msgspec
import pytest

from support.conversations import result, use
from support.sessions import TASK, kept, opened, problems, shown, talk, tokens_of
from windowsill import SettingError
from windowsill.budget import Budget
from windowsill.state.shares import ShareSettings
from windowsill.strategies import get
from windowsill.strategies.condense import Condense
from windowsill.strategies.layered import Layered

pytestmark = pytest.mark.unit

STEPS = 40


def mixed(words, output, tool="read", session=None):
    """A session whose steps have so many words beside an output of so many."""
    session = session or opened(budget=1_000_000)
    session.add({"role": "user", "content": TASK})
    for number in range(STEPS):
        session.add({"role": "assistant", "content": "so " * words})
        session.add({"role": "user", "content": "go on"})
        session.add({"role": "assistant", "content": [use(f"t{number}", tool)]})
        session.add({"role": "user", "content": [result(f"t{number}", f"{number} " + "word " * output)]})
    return session


def tight(view, **marks):
    """A budget whose high mark is just passed."""
    total = view.tokens()
    return Budget(**{"limit": total, "high": total - 1, "low": total // 2, "window": total, **marks})


def planned(view, phase="executing", strategy=None, **marks):
    return (strategy or Layered()).plan(view, tight(view, phase=phase, **marks))


def masked(plan):
    """The calls whose outputs a plan masks."""
    return [each.tool_use_id for proposal in plan.proposals if proposal.kind == "mask" for each in proposal.stand_ins]


def test_nothing_is_done_below_the_high_mark():
    """However much of it is evidence."""
    view = mixed(10, 100).view
    assert Layered().plan(view, tight(view, high=view.tokens())).proposals == ()


def test_outputs_are_masked_down_to_their_share_and_no_further():
    """The oldest first; what is left of evidence is what its share of the low mark allows."""
    view = mixed(200, 100).view
    plan = planned(view)
    calls = masked(plan)
    assert calls == [f"t{number}" for number in range(len(calls))]
    assert 0 < len(calls) < STEPS
    shares = ShareSettings().allocate(view.tokens(), phase="executing")
    share = view.tokens() // 2 * shares.evidence // (shares.evidence + shares.memory)
    outputs = [view.tokens(item) for item in view.items if item.results]
    over = sum(outputs) - share
    saved = view.tokens() - view.tokens_of(view.after(plan.proposals[0].spans))
    assert over <= saved < over + max(outputs)
    assert "above their share (executing)" in plan.proposals[0].reason


def test_the_phase_shifts_the_share():
    """A plan draws on evidence, looking back on memory: so fewer outputs are masked while planning."""
    view = mixed(200, 100).view
    counts = {phase: len(masked(planned(view, phase))) for phase in ("planning", "executing", "reflecting")}
    assert counts["planning"] < counts["executing"] <= counts["reflecting"]
    assert counts["planning"] < counts["reflecting"]


def test_the_size_of_the_model_shifts_the_share():
    """A large one gets more evidence than a small one of its family."""
    view = mixed(200, 100).view
    counts = [len(masked(planned(view, size=size))) for size in ("large", "balanced", "small")]
    assert counts[0] < counts[1] < counts[2]


def test_the_shares_of_the_state_are_those_of_the_conversation():
    """The more of its setting goes to evidence, the fewer outputs are above their share; then turns are summarised."""
    folds = []
    for base in ({"evidence": 1}, {}, {"evidence": 90, "memory": 5}):
        session = mixed(40, 60, session=opened(budget=7_000, strategy="layered", state={"shares": {"base": base}}))
        session.compose_sync()
        folds.append(session.folds[0])
    assert [fold.kind for fold in folds] == ["mask", "mask", "condense"]
    none, usual = (int(fold.reason.split("outputs were ")[1].split()[0].replace(",", "")) for fold in folds[:2])
    assert none > usual > 0


def test_a_phase_that_nobody_knows_is_the_first_one():
    """A session that keeps no state has none."""
    view = mixed(200, 100).view
    unknown = masked(planned(view, "dreaming"))
    assert masked(Layered().plan(view, tight(view))) == unknown == masked(planned(view, "initializing"))


def test_evidence_below_its_share_is_left_alone():
    """Then it is the turns that are too many, and they are summarised."""
    plan = planned(mixed(150, 15).view)
    assert masked(plan) == []
    (proposal,) = plan.proposals
    assert (proposal.kind, proposal.strategy) == ("condense", "layered")
    assert proposal.briefs


def test_the_latest_outputs_and_those_of_exempt_tools_stay():
    """However large their share is."""
    assert masked(planned(mixed(1, 100).view, low=0))[-1] == f"t{STEPS - 11}"
    assert masked(planned(mixed(1, 100).view, strategy=Layered(keep=3), low=0))[-1] == f"t{STEPS - 4}"
    assert masked(planned(mixed(1, 100, "todo_list").view, low=0)) == []
    assert masked(planned(mixed(1, 100).view, strategy=Layered(exempt=("re*",)), low=0)) == []


def test_the_parts_that_are_never_cut_leave_less_for_evidence():
    """Its share is of what is left for the conversation."""
    view = mixed(200, 100).view
    fixed = view.tokens() // 6
    more = masked(planned(view, limit=view.tokens() + fixed, high=view.tokens() + fixed - 1, fixed=fixed))
    assert len(more) > len(masked(planned(view)))


def test_where_no_summary_can_be_had_it_does_what_condense_does():
    """Under its own name."""
    view = mixed(150, 15).view
    (mine,) = Layered(keep=4).instead(view, tight(view)).proposals
    (theirs,) = Condense(keep=4).instead(view, tight(view)).proposals
    assert (mine.strategy, mine.kind, mine.spans) == ("layered", "truncate", theirs.spans)


def test_what_is_wished_for_the_summary_is_passed_on():
    """Instructions, the model and the room."""
    strategy = get("layered:instructions=Be brief.,model=openai:gpt-5,room=0.2,keep=4")
    (proposal,) = planned(mixed(150, 15).view, strategy=strategy).proposals
    (brief,) = proposal.briefs
    assert (brief.instructions, brief.model) == ("Be brief.", "openai:gpt-5")


@pytest.mark.parametrize("setting", ["keep=-1", "keep=10001", "told=0", "told=1.5", "room=2", "exempt=5"])
def test_a_value_out_of_range_is_refused(setting):
    """With the setting, the value and the range."""
    with pytest.raises(SettingError, match=setting.split("=")[0]):
        opened(strategy=f"layered:{setting}")


def test_an_empty_word_is_refused():
    """It would be found in every name."""
    with pytest.raises(SettingError, match="exempt"):
        Layered(exempt=("todo", " "))


def test_the_state_is_told_in_its_share_of_the_request():
    """A quarter where nobody says; in a pipeline as the stage says that tells it."""
    budget = Budget(limit=10_000, high=8_000, low=5_000)
    assert (Layered().layers(budget), Layered(told=0.1).layers(budget)) == (2_500, 1_000)
    line = get("mask+layered:told=0.2")
    assert line.layers(budget) == 2_000


def grown(strategy, turns=60):
    """A session that works under a strategy while its state changes, and the requests that it sent."""
    session = opened(strategy=strategy, budget=6_000)
    session.add({"role": "user", "content": TASK})
    session.state.set_goal("Mend the login page", ["all tests pass"])
    session.state.enter("planning")
    sent = []
    for number in range(turns):
        talk(session, 1, start=number, words=40 if number % 3 else 120)
        if number == 20:
            session.state.enter("executing")
        if number % 5 == 0:
            session.state.add_fact(f"The login page has {number} fields", source="login.py")
        payload = session.compose_sync(system="You mend software.")
        assert problems(payload) == []
        sent.append((payload.body(cache=False), len(session.folds)))
    return session, sent


@pytest.mark.parametrize("strategy", ["layered", "mask+layered", "layered:keep=2,told=0.1"])
def test_requests_fit_and_keep_their_beginning_while_the_state_changes(strategy):
    """Between two folds; the goal can be seen in each, and both kinds of folds come."""
    session, sent = grown(strategy)
    for body, _ in sent:
        assert tokens_of(session, body) <= 6_000
        assert b"<goal>Mend the login page</goal>" in body
    unfolded = [(before, after) for (before, folds), (after, more) in itertools.pairwise(sent) if folds == more]
    assert len(unfolded) > 40
    for before, after in unfolded:
        start, end = (msgspec.json.decode(body)["messages"] for body in (before, after))
        assert end[: len(start) - 1] == start[:-1]
    assert {fold.kind for fold in session.folds} >= {"mask"}


def test_every_fold_can_be_undone():
    """Then everything that was ever added is seen as it came."""
    session, _ = grown("layered")
    added = kept(session)
    assert len(session.folds) > 1
    for fold in reversed(session.folds):
        if fold.active:
            session.unfold(fold.id)
    assert not any(item.fold or item.cuts for item in session.view.items)
    assert len(shown(session)) == len(added) == len(kept(session))
    assert kept(session) == added
