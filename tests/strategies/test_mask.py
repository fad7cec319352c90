"""Mask: old tool outputs become a line, in batches, for good, and never a longer one."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import PNG, result, text_block, use
from support.examples import examples
from support.sessions import TASK, opened, problems, shown, talk, turn
from windowsill import SettingError
from windowsill.budget import Budget
from windowsill.history.proposals import check_fold
from windowsill.messages import ToolResult, ToolUse
from windowsill.outputs.show import TRIMMED
from windowsill.strategies import get
from windowsill.strategies.masks import Mask

pytestmark = pytest.mark.unit

PATH = "windowsill.strategies.masks:Mask"


def tight(view, share=0.5, **marks):
    total = view.tokens()
    return Budget(**{"limit": total, "high": total - 1, "low": int(total * share), "window": total, **marks})


def steps(*outputs):
    """A session: the task, and one call for each `(tool, content)`, answered by the model's next words."""
    session = opened(budget=1_000_000)
    session.add({"role": "user", "content": TASK})
    for number, (tool, content) in enumerate(outputs):
        session.add({"role": "assistant", "content": [use(f"t{number}", tool)]})
        session.add({"role": "user", "content": [result(f"t{number}", content)]})
    session.add({"role": "assistant", "content": "I have seen it all."})
    session.add({"role": "user", "content": "Then go on."})
    return session


def masked(plan):
    """The calls whose outputs a plan masks, in its order."""
    return [stand_in.tool_use_id for proposal in plan.proposals for stand_in in proposal.stand_ins]


def lines(plan):
    return [stand_in.content[0].text for proposal in plan.proposals for stand_in in proposal.stand_ins]


def test_the_placeholder_names_the_ref_and_the_size():
    """Where it can be read, and how many lines were there."""
    session = steps(("read", "a line of words\n" * 131 + "the last"), *[("read", "short")] * 3)
    view = session.view
    plan = Mask().plan(view, tight(view))
    assert lines(plan) == [f"[tool output trimmed; ref=o{view.items[2].seq}; 132 lines; read a.py]\na line of words"]


def test_the_placeholder_says_what_the_output_was():
    """The call, how it ended, its first line and the line that tells the failure."""
    session = opened(budget=1_000_000)
    session.add({"role": "user", "content": TASK})
    log = "collected 9 items\n" + "tests/test_a.py ok\n" * 300 + "ValueError: no such user\n1 failed\nExit code: 1"
    call = {"type": "tool_use", "id": "t0", "name": "Bash", "input": {"command": "pytest -q", "timeout": 9}}
    session.extend([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result("t0", log)]}])
    session.extend([{"role": "assistant", "content": "It fails."}, {"role": "user", "content": "Mend it."}])
    view = session.view
    (line,) = lines(Mask(keep=0).plan(view, tight(view)))
    assert line == (
        "[tool output trimmed; ref=o3; 304 lines; Bash pytest -q; exit code 1]\n"
        "collected 9 items ... ValueError: no such user"
    )
    session.mask("m3")
    assert view.read(view.items[2]).results[0].content[0].text == line


def test_the_oldest_go_first_until_the_low_mark_is_reached():
    """And no more than that."""
    view = steps(*[("read", f"output {number} " + "word " * 100) for number in range(10)]).view
    plan = Mask().plan(view, tight(view, 0.75))
    assert masked(plan) == ["t0", "t1", "t2", "t3", "t4"]
    assert view.tokens_of(view.after(plan.proposals[0].spans)) <= view.tokens() * 0.75


def test_the_latest_outputs_stay():
    """Three of them unless it is stated otherwise; everything else goes where the mark is out of reach."""
    view = steps(*[("read", "word " * 100)] * 8).view
    assert masked(Mask(batch=1).plan(view, tight(view, 0.01))) == ["t0", "t1", "t2", "t3", "t4"]
    assert masked(Mask(keep=7, batch=1).plan(view, tight(view, 0.01))) == ["t0"]
    assert masked(Mask(keep=0, batch=1).plan(view, tight(view, 0.01))) == [f"t{number}" for number in range(8)]


def test_outputs_that_the_model_has_not_answered_to_stay():
    """However many there are, whatever `keep` is."""
    session = opened(budget=1_000_000)
    talk(session, 3, words=100)
    for message in turn(9, words=100, calls=4):
        session.add(message)
    view = session.view
    assert masked(Mask(keep=0).plan(view, tight(view, 0.01))) == ["t0_0", "t1_0", "t2_0"]


def test_outputs_of_exempt_tools_stay():
    """O9: plans, skills and questions to the user by default; names and patterns by setting."""
    text = "word " * 100
    view = steps(
        ("TodoWrite", text), ("update_plan", text), ("ask_user", text), ("Bash", text), *[("read", "x")] * 3
    ).view
    assert masked(Mask(batch=1).plan(view, tight(view, 0.01))) == ["t3"]
    assert masked(Mask(exempt=("bash", "todo*"), batch=1).plan(view, tight(view, 0.01))) == ["t1", "t2"]


def test_exempt_outputs_are_not_counted_among_the_latest():
    """Or a few plans at the end would leave nothing else."""
    text = "word " * 100
    view = steps(*[("read", text)] * 5, *[("TodoWrite", text)] * 3).view
    assert masked(Mask(batch=1).plan(view, tight(view, 0.01))) == ["t0", "t1"]


def test_call_ids_that_repeat_in_every_turn_change_nothing():
    """Many servers name the calls of each turn alike: which outputs go depends on their places, not on the ids."""

    def planned(ids):
        session = opened(budget=1_000_000)
        session.add({"role": "user", "content": TASK})
        for number, id in enumerate(ids):
            session.add({"role": "assistant", "content": [use(id, "update_plan" if number % 4 == 3 else "read")]})
            session.add({"role": "user", "content": [result(id, f"output {number} " + "word " * 100)]})
        session.add({"role": "assistant", "content": "I have seen it all."})
        session.add({"role": "user", "content": "Then go on."})
        plan = Mask().plan(session.view, tight(session.view, 0.5))
        return [span.message for proposal in plan.proposals for span in proposal.spans]

    assert planned(["call_0"] * 12) == planned([f"call_{number:02}" for number in range(12)]) != []


def test_pictures_and_documents_in_outputs_go_too():
    """And the placeholder says what they were."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    view = steps(("shoot", [text_block("two\nlines"), image]), *[("read", "x")] * 3).view
    (line,) = lines(Mask().plan(view, tight(view, 0.01)))
    assert line == f"[tool output trimmed; ref=o{view.items[2].seq}; 2 lines, 1 image; shoot a.py]"


def test_an_output_that_is_no_longer_than_its_placeholder_stays():
    """O9: masking never grows the text."""
    view = steps(*[("read", "done")] * 10).view
    assert Mask(batch=1).plan(view, tight(view, 0.01)).proposals == ()


def test_pinned_outputs_stay():
    """A pin keeps a message as it is."""
    session = steps(*[("read", "word " * 100)] * 5)
    session.pin(session.view.items[2].id)
    view = session.view
    assert masked(Mask(batch=1).plan(view, tight(view, 0.01))) == ["t1"]


def test_less_than_a_batch_is_not_masked():
    """O9: each batch breaks the cached prefix; beyond the limit the plain cut takes over, which frees more."""
    view = steps(("read", "word " * 60), *[("read", "word " * 400)] * 3).view
    total = view.tokens()
    plan = Mask(batch=100).plan(view, tight(view))
    assert plan.proposals == ()
    assert plan.notes[0].endswith("tokens are no batch of 100")
    assert masked(Mask(batch=20).plan(view, tight(view))) == ["t0"]
    assert Mask(batch=100).plan(view, tight(view, limit=total - 1, high=total - 2)).proposals == ()


def test_a_batch_goes_on_beyond_the_low_mark_until_it_is_large_enough():
    """So that the next one is far off."""
    view = steps(*[("read", "word " * 100)] * 10).view
    budget = tight(view, 0.99)
    assert masked(Mask(batch=1).plan(view, budget)) == ["t0"]
    assert masked(Mask(batch=190).plan(view, budget)) == ["t0", "t1", "t2"]


def test_what_is_masked_stays_masked_and_the_next_batch_waits_for_the_high_mark():
    """O9: between two batches a request only grows at its end, and no output is masked twice."""
    session = opened(strategy=Mask(), budget=4_000)
    before, batches = [], 0
    for number in range(40):
        talk(session, 1, start=number, words=100)
        payload = session.compose_sync()
        assert payload.tokens <= 4_000
        assert problems(payload) == []
        if session.folds and session.folds[-1].strategy != "mask":
            break
        now = shown(session)
        if now[: len(before)] != before:
            batches += 1
        before = now
    assert batches == len(session.folds) > 0
    assert all(fold.saved >= 200 for fold in session.folds)


def test_batches_leave_room_for_many_turns_until_masked_lines_fill_the_window():
    """What is left to mask shrinks as lines add up; then the oldest are cut at once, not a little every turn."""
    session = opened(strategy="mask", budget=10_000)
    talk(session, 1)
    for number in range(1, 121):
        talk(session, 1, start=number, words=240)
        session.compose_sync()
    assert {fold.strategy for fold in session.folds} == {"mask", "sliding-window"}
    assert len(session.folds) <= 120 / 6


def test_a_masked_output_comes_back_whole():
    """Masking is a fold, and a fold can be removed."""
    session = opened(strategy=Mask(), budget=4_000)
    talk(session, 1, words=100)
    first = shown(session)
    talk(session, 29, start=1, words=100)
    session.compose_sync()
    assert TRIMMED.encode() in shown(session)[2][1]
    session.unfold(session.folds[0].id)
    assert shown(session)[: len(first)] == first


def test_a_placeholder_is_not_masked_again_nor_read():
    """Sticky: a second plan finds nothing, and need not look at what is masked."""
    session = steps(*[("read", "word " * 100)] * 8)
    session.mask(session.view.items[2].id, text=f"{TRIMMED} " + "with a very long tale of what was there " * 9 + "]")
    session.mask(session.view.items[4].id, text=f"{TRIMMED} a_tool_with_a_long_name, 1,000 lines, 113,113 tokens]")
    view, read = session.view, []
    reader = view.read
    view.read = lambda item: (read.append(item.results), reader(item))[1]
    assert masked(Mask().plan(view, tight(view, 0.01))) == ["t2", "t3", "t4"]
    assert ("t1",) not in read


def test_an_output_that_was_cut_before_is_named_by_its_whole_size():
    """The placeholder tells of the original, and what is saved is counted from it."""
    session = steps(("read", "\n".join(f"line {number}" for number in range(500))), *[("read", "x")] * 3)
    view = session.view
    session.mask(view.items[2].id, text="some of it " * 60)
    plan = Mask().plan(view, tight(view, 0.01))
    assert lines(plan) == [f"[tool output trimmed; ref=o{view.items[2].seq}; 500 lines; read a.py]\nline 0"]
    assert check_fold(view, plan.proposals[0]).spans[0].saves.overhead == plan.proposals[0].spans[0].saves.overhead


def edit(number, path, text="word " * 300):
    return {"type": "tool_use", "id": f"e{number}", "name": "write", "input": {"path": path, "content": text}}


def editing():
    """Reads of three files, of which the second is written again."""
    session = opened(budget=1_000_000)
    session.add({"role": "user", "content": TASK})
    for number, path in enumerate(("a.py", "b.py", "c.py")):
        session.add({"role": "assistant", "content": [{**use(f"t{number}"), "input": {"path": path}}]})
        session.add({"role": "user", "content": [result(f"t{number}", f"{path} " + "word " * 300)]})
    session.add({"role": "assistant", "content": [edit(0, "b.py")]})
    session.add({"role": "user", "content": [result("e0", "written " * 60)]})
    session.add({"role": "assistant", "content": "I have written it."})
    session.add({"role": "user", "content": "Then go on."})
    return session


def test_a_read_that_an_edit_made_stale_goes_first():
    """What it shows is no longer so; then the oldest."""
    view = editing().view
    assert masked(Mask(keep=0, batch=1).plan(view, tight(view, 0.9))) == ["t1"]
    assert masked(Mask(keep=0, batch=1).plan(view, tight(view, 0.5)))[:2] == ["t1", "t0"]


def test_arguments_can_be_cleared_along_with_outputs():
    """The text of a written file goes, its path stays; undone, the call is as it was."""
    session = editing()
    before = shown(session)
    view = session.view
    plan = Mask(keep=0, inputs=True).plan(view, tight(view, 0.01))
    cleared = [each for each in plan.proposals[0].stand_ins if isinstance(each, ToolUse)]
    assert [call.input for call in cleared] == [{"path": "b.py", "content": "[1,502 characters omitted]"}]
    fold = session.journal.fold(check_fold(view, plan.proposals[0]))
    assert problems(session.compose_sync()) == []
    session.unfold(fold.id)
    assert shown(session) == before


def test_settings_may_follow_the_name():
    """As text, as the command line gives them."""
    assert get(f"{PATH}:keep=5,batch=2k") == Mask(keep=5, batch="2k")


@pytest.mark.parametrize(("setting", "value"), [("keep", -1), ("exempt", ("",)), ("batch", "none"), ("batch", 0)])
def test_a_setting_out_of_range_is_refused(setting, value):
    """With its name."""
    with pytest.raises(SettingError, match=setting):
        Mask(**{setting: value})


@settings(max_examples=examples(0.6))
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 150)), min_size=1, max_size=15),
    st.floats(0.05, 0.95),
    st.integers(0, 5),
)
def test_a_plan_keeps_every_promise(turns, share, keep):
    """Only outputs go, each to fewer tokens; at the low mark or nothing more to mask; pure; the same again."""
    session = opened(budget=1_000_000)
    session.add({"role": "user", "content": TASK})
    for number, (calls, words) in enumerate(turns):
        for message in turn(number, words, calls):
            session.add(message)
    view = session.view
    budget = tight(view, share)
    before = msgspec.msgpack.encode(view.items)
    plan = Mask(keep=keep, batch=1).plan(view, budget)
    assert msgspec.msgpack.encode(view.items) == before
    assert plan == Mask(keep=keep, batch=1).plan(view, budget)
    order = [id for item in view.items for id in item.results]
    gone = masked(plan)
    assert gone == [id for id in order if id in gone]
    stays = max(0, len(order) - max(keep, turns[-1][0]))
    assert not set(gone) & set(order[stays:])
    spans = [span for proposal in plan.proposals for span in check_fold(view, proposal).spans]
    assert all(view.tokens_of(span.saves) > 0 for span in spans)
    assert all(isinstance(block, ToolResult) for proposal in plan.proposals for block in proposal.stand_ins)
    if view.tokens_of(view.after(spans)) > budget.low:
        short = {id for item in view.items if view.tokens(item) <= 40 * len(item.results) for id in item.results}
        assert set(order[:stays]) <= {*gone, *short}


def test_the_preview_of_one_long_line_is_its_beginning():
    """The end of what is looked at of it is no last word: a piece of its middle would tell nothing."""
    values = "[" + ", ".join(f'"Q{number:05}"' for number in range(2_000)) + "]"
    session = steps(("list", values), ("read", "word " * 20))
    (proposal,) = Mask(keep=1, batch=1).plan(session.view, tight(session.view)).proposals
    (line,) = (block.text for block in proposal.stand_ins[0].content)
    assert '["Q00000", "Q00001"' in line
    assert " ... " not in line
