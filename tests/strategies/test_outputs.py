"""The tool output cache: what is shown of an output, and of all of them together."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import PNG, result, text_block, use
from support.examples import examples
from support.pointers import expand
from support.sessions import kept, opened
from support.tool_outputs import LONG, sent, working
from windowsill import Budget, InputError, Session, SettingError
from windowsill.store.memory import MemoryStore
from windowsill.strategies.outputs import Outputs

pytestmark = pytest.mark.unit


def test_a_long_output_is_cut_the_first_time_it_is_shown():
    """O2: at most 50 KiB, and the last line says how to read on; the whole is kept."""
    session = working(LONG, strategy="outputs:view=start")
    (text,) = sent(session)
    assert len(text) <= 50 * 1024
    last = text.splitlines()[-1]
    line = int(re.search(r"lines ([\d,]+)-4,000 are not shown", last)[1].replace(",", ""))
    assert f'tool_output_cache(ref_id="o3", offset={line}) reads on' in last
    assert session.tools.tool_output_cache("o3", offset=line, limit=1).startswith(f"{line:>6}\tline {line} of")
    assert LONG in session.message("m3").results[0].content[0].text


def test_a_long_line_is_cut():
    """O2: lines are shown up to 2,000 characters."""
    (text,) = sent(working("short\n" + "x" * 5_000 + "\nend"))
    short, cut, end, note = text.splitlines()
    assert (short, end, len(cut) <= 2_000) == ("short", "end", True)
    assert 'ref_id="o3"' in note


def test_a_ref_is_shown_only_where_its_tool_is_offered():
    """O8: the same session shows refs with the tool and none without it, and the recorded request is the one sent."""
    session = working(LONG, *["words of it\n" * 1_000] * 8)
    with_tools, without = sent(session), sent(session, tools=False)
    assert "ref=o5" in with_tools[1]
    assert not any("ref" in text for text in without)
    assert without[1].startswith("[tool output trimmed; 1,001 lines")
    for tools in (session.tools.tools, ()):
        session.add({"role": "user", "content": "Go on."})
        payload = session.compose_sync(tools=tools)
        assert session.request(session.calls[-1].id) == payload.body()


def test_records_are_limited_by_their_tokens():
    """A list of short values has few bytes a token: one that fills the window is shown in part, as a text would be."""
    values = [f"Q{number:04}" for number in range(1_170)]
    session = working(json.dumps(values), strategy="economy", window=6_000)
    (text,) = sent(session, tools=False)
    assert session.view.tokens() < 3_000
    assert "Q0000" in text
    assert "more of 1,170" in text
    assert json.loads(session.message("m3").results[0].content[0].text) == values


def test_all_outputs_together_stay_within_their_budget():
    """Checkpoint 1 of the tool output cache: past the budget the oldest are trimmed, the newest kept longest."""
    texts = sent(working(*[f"output {number} " + "words of it\n" * 1_000 for number in range(10)]))
    trimmed = [text.startswith("[tool output trimmed") for text in texts]
    assert trimmed == sorted(trimmed, reverse=True)
    assert trimmed.count(False) == 3


def test_outputs_of_calls_that_share_one_id_are_trimmed_as_well():
    """A server that names the call of every turn alike changes nothing."""
    texts = [f"output {number} " + "words of it\n" * 1_000 for number in range(10)]
    assert sent(working(*texts, id="call_0")) == sent(working(*texts))


def test_a_trimmed_output_is_a_placeholder_in_the_request():
    """Checkpoint 2 of the tool output cache: the rendered message says the ref, and that ref gives the whole."""
    session = working(*[f"output {number} " + "words of it\n" * 1_500 for number in range(6)])
    first = sent(session)[0]
    assert first == "[tool output trimmed; ref=o3; 1,501 lines; read a.py]\noutput 0 words of it"
    assert session.outputs.open("o3").blocks[0].text.startswith("output 0 ")


@pytest.mark.parametrize(("window", "tokens"), [(8_000, 20_000), (100_000, 25_000), (200_000, 50_000), (10**6, 60_000)])
def test_the_budget_is_a_quarter_of_the_window_within_bounds(window, tokens):
    """O3: clamp(window * 0.25, 20,000, 60,000)."""
    assert Outputs()._room(Budget(limit=window, high=window, low=window, window=window)) == tokens


def test_the_high_mark_can_be_left_to_the_next_strategy():
    """Past the high mark outputs within their own budget are trimmed, or left for what follows in a pipeline."""
    view = working(*["words of it\n" * 300] * 12, window=30_000).view
    tight = Budget(limit=20_000, high=10_000, low=5_000, window=30_000)
    assert Outputs().plan(view, tight).proposals
    assert not Outputs(at_high=False).plan(view, tight).proposals


def test_what_was_trimmed_stays_so_until_it_is_undone():
    """O9: sticky, and undone exactly."""
    session = working(*["words of it\n" * 1_000] * 10)
    before = sent(session)
    session.add({"role": "assistant", "content": "Go on."})
    session.add({"role": "user", "content": "Yes."})
    assert sent(session) == before
    for fold in reversed(session.folds):
        session.unfold(fold.id)
    assert [session.view.read(item).raw for item in session.view.items] == kept(session)


def test_plans_skills_and_questions_stay():
    """O9: outputs of exempt tools are neither cut nor trimmed, however long."""
    assert sent(working(LONG, *["words of it\n" * 1_000] * 10, name="TodoWrite"))[0] == LONG


def test_the_ends_of_an_output_can_be_shown():
    """M5: the first and last 50 lines, and how many were omitted between them."""
    (text,) = sent(working(LONG, strategy="outputs:view=ends"))
    lines = text.splitlines()
    assert (lines[49], lines[51]) == ("line 50 of the listing", "line 3951 of the listing")
    assert lines[50].startswith("[reduced: 3,900 lines omitted; ")


def test_pictures_stay_where_text_is_cut():
    """O5: a picture beside a long text is still shown, and is whole in the cache."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    session = working([text_block(LONG), image])
    body = session.compose_sync().body()
    assert PNG.encode() in body
    assert session.outputs.open("o3").blocks[1].data == PNG


@given(st.lists(st.sampled_from(["word " * 400, LONG[:9_000], "x" * 9_000, "tiny", ""]), max_size=12))
@settings(max_examples=examples(0.25))
def test_every_ref_that_is_shown_resolves_to_the_whole(outputs):
    """Whatever is cut or trimmed, the ref in its place reads what the tool gave."""
    session = working(*outputs, strategy="outputs:budget=1500,bytes=4000,keep=1")
    shown = sent(session)
    for number, text in enumerate(shown):
        for ref in re.findall(r'ref(?:_id)?="?(o[\d.]+)', text):
            assert session.outputs.open(ref).blocks == session.message(f"m{3 + 2 * number}").results[0].content


@pytest.mark.parametrize("setting", ["low=0", "low=2", "keep=-1", "head=-1", "bytes=10", "line=1", "budget=-5"])
def test_a_value_out_of_range_is_refused(setting):
    """With the setting, the value and the range."""
    with pytest.raises(SettingError, match=f"'outputs.{setting.split('=')[0]}'"):
        opened(strategy=f"outputs:{setting}")


FILE = "\n".join(f"    value_{number} = compute(number={number}, total=total)" for number in range(60))


def test_lines_that_stand_in_view_become_a_pointer_to_them():
    """A file that is read again with a change shows the change, and where the rest stands; the whole is kept."""
    changed = FILE.replace("value_30 =", "value_thirty =")
    session = working(FILE, changed, strategy="outputs:repeats=true")
    first, second = sent(session)
    assert first == FILE
    assert second.splitlines() == [
        "[lines 1-30 as in o3 lines 1-30]",
        "    value_thirty = compute(number=30, total=total)",
        "[lines 32-60 as in o3 lines 32-60]",
    ]
    assert session.tools.tool_output_cache("o5", offset=45, limit=1).startswith("    45\t    value_44 = ")
    assert sent(session, tools=False)[1].splitlines()[0] == "[lines 1-30 were shown before]"


def test_pointers_lead_to_what_was_shown():
    """Expanded with the outputs they name, they give what the tool gave."""
    texts = [FILE, "new\n" + FILE, FILE[:900] + "\nother\n" + FILE[900:], FILE]
    session = working(*texts, strategy="outputs:repeats=true")
    whole = {f"o{3 + 2 * number}": text for number, text in enumerate(texts)}
    assert [expand(text, whole) for text in sent(session)] == texts


def test_a_kept_output_that_says_nothing_of_refs_is_sent_as_it_came():
    """The bytes of a message whose output is kept elsewhere are not touched where no tool is offered."""
    session = working()
    ref = session.outputs.keep(["a\n", "b\n"])
    session.add({"role": "assistant", "content": [use("k")]})
    session.add({"role": "user", "content": [result("k", "a\nb")]}, outputs={"k": ref})
    assert session.message("m3").results[0].ref == ref
    assert session.view.read(session.view.items[-1]).raw in session.compose_sync().body()
    assert session.tools.tool_output_cache("o3") == session.tools.tool_output_cache(ref.id) == "     1\ta\n     2\tb"


def test_outputs_of_calls_that_are_not_in_the_message_are_refused():
    """A ref for a call without a result here would be lost without a word."""
    session = working()
    session.add({"role": "assistant", "content": [use("k")]})
    with pytest.raises(InputError, match="there is no result of call 'x'"):
        session.add({"role": "user", "content": [result("k", "a")]}, outputs={"x": session.outputs.keep(["a"])})


def test_only_outputs_that_no_message_refers_to_are_collected():
    """O6: whatever a message of any branch refers to stays, also after a rewind and a fold."""
    clock = iter(range(0, 10**9, 10_000))
    session = Session.open("s", model="claude-sonnet-4-5", store=MemoryStore(), clock=lambda: float(next(clock)))
    session.add("go")
    kept, stray = session.outputs.keep(["needed\n"]), session.outputs.keep(["stray\n"])
    session.add({"role": "assistant", "content": [use("k")]})
    session.add({"role": "user", "content": [result("k", "needed")]}, outputs={"k": kept})
    session.rewind("m1")
    assert session.outputs.collect().outputs == (stray.id,)
    assert session.outputs.read(kept.id) == "     1\tneeded"


def test_what_somebody_had_shown_again_is_not_hidden_again():
    """After an undo the next request shows the output whole, also after reopening; others are still trimmed."""
    store = MemoryStore()
    session = working(LONG, *["words of it\n" * 800] * 9, store=store)
    sent(session)
    for fold in reversed(session.folds):
        session.unfold(fold.id)
    assert sent(session)[0] == LONG
    assert sent(opened(store, strategy="outputs", window=80_000, budget=80_000))[0] == LONG


def test_a_giant_that_the_composer_cut_says_its_ref():
    """In a window too small for one output, what is left of it says where the rest is read, if the tool is offered."""
    session = working("\n".join(f"row {number}" for number in range(3_000)), window=6_000, strategy="sliding-window")
    assert "omitted here; ref=o3]" in sent(session)[0]
    assert "ref=" not in sent(session, tools=False)[0]
