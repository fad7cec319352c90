"""What to retain and a summary in the place of all but the last turns, near the end of the window."""

import msgspec
import pytest

import windowsill
from support.conversations import result, text_block, use
from support.sessions import TASK, opened, talk
from support.strategies import BUDGET, WIDE, brief_of, chat, follow, shown
from windowsill import Budget, SettingError
from windowsill.history.repair import without_open_calls
from windowsill.messages import text_message
from windowsill.strategies.compact import RETAIN, SUMMARY, Compact
from windowsill.strategies.masks import Mask

pytestmark = pytest.mark.unit


def test_checkpoint_1_old_tool_outputs_are_trimmed_when_together_they_pass_the_limit():
    """Source 003: the oldest go first, the latest stay whole."""
    session = opened()
    talk(session, 30)
    follow(session, Mask())
    texts = [msgspec.json.encode(session.view.read(item)) for item in session.view.items if item.results]
    masked = [b"[tool output trimmed" in text for text in texts]
    assert masked == sorted(masked, reverse=True)
    assert masked[0]
    assert not any(masked[-3:])


def test_checkpoint_2_a_trimmed_tool_message_is_sent_as_its_placeholder():
    """Source 003: in the request, under the same call id."""
    session = opened(budget=100_000)
    talk(session, 30)
    follow(session, Mask())
    sent = session.compose_sync().to("anthropic")["messages"][2]["content"][0]
    assert sent["tool_use_id"] == "t0_0"
    assert "[tool output trimmed" in str(sent["content"])


def test_checkpoint_3_at_the_threshold_the_history_becomes_retain_and_summary():
    """Source 003: 0.8 of the window, the last turn in full, the task before it."""
    session, strategy = opened(), Compact()
    chat(session, 9)
    total = session.view.tokens()
    window = next(size for size in range(total, 2 * total) if int(0.8 * size) == total)
    reached = Budget(limit=total * 2, high=total * 2, low=total, window=window)
    below = msgspec.structs.replace(reached, window=window + 2)
    assert not strategy.due(session.view, below)
    assert strategy.plan(session.view, below).proposals == ()
    assert strategy.due(session.view, reached)
    (proposal,) = follow(session, strategy, reached, text="- green tea\n\nThe user asked why.")
    assert proposal.briefs[0].style == "compact"
    assert shown(session) == ["question 0 w", "fold", "question 8 w", "answer 8 so"]
    assert "- green tea" in session.view.read(session.view.items[1]).text


def test_checkpoint_4_a_trailing_call_breaks_a_request_for_a_summary_and_is_taken_off():
    """Source 003 and P4: with the call the provider refuses the instruction behind it; without, it does not."""
    said = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [text_block("looking"), use("open")]},
    ]
    asked = {"role": "user", "content": "Summarise."}
    broken = {"model": "m", "max_tokens": 5, "messages": [*said, asked]}
    assert windowsill.validate(broken, "anthropic")
    session = opened()
    for message in said:
        session.add(message)
    mended = [*without_open_calls(list(session.messages())), text_message("user", "Summarise.")]
    render = windowsill.providers.get("anthropic").render_message
    messages = [msgspec.json.decode(each) for message in mended for each in render(message)]
    assert windowsill.validate({"model": "m", "max_tokens": 5, "messages": messages}, "anthropic") == []
    assert [message.text for message in mended] == ["hello", "looking", "Summarise."]


def test_the_instruction_and_the_answer_never_enter_the_history():
    """S6: the history holds what was said, and one fold."""
    session = opened()
    chat(session, 25)
    before = [message.raw for message in session.messages()]
    follow(session, Compact(), text="the answer of the model")
    assert [message.raw for message in session.messages()] == before
    assert shown(session).count("fold") == 1


def test_a_second_compaction_covers_the_first():
    """What was retained is there for the writer to work on; nothing is nested."""
    session = opened()
    chat(session, 15)
    follow(session, Compact(), text="first text")
    chat(session, 15, start=15)
    follow(session, Compact(), text="second text")
    folds = [item for item in session.view.items if item.fold]
    assert [item.hides for item in folds] == [30 + 30 - 3]
    assert "second text" in session.view.read(folds[0]).text


def test_the_steps_of_one_long_turn_go_down_to_the_low_mark():
    """An agent that works on one task has only one turn: its latest steps stay, and the task."""
    session = opened()
    talk(session, 40)
    follow(session, Compact())
    assert shown(session)[:2] == [TASK[:12], "fold"]
    assert BUDGET.low / 2 < session.view.tokens() <= BUDGET.low


def test_the_users_latest_words_stay_when_their_turn_is_cut():
    """H8: in the middle of the work the model still reads what it was asked for."""
    session = opened()
    chat(session, 3)
    session.add({"role": "user", "content": "Now the cart, please."})
    talk(session, 40)
    follow(session, Compact())
    assert shown(session)[:4] == ["question 0 w", "fold", "Now the cart", "fold"]


def test_little_is_not_compacted_while_the_request_fits():
    """Or a request just above its mark would be summarised anew, and its cache lost, at every turn."""
    session = opened()
    session.add({"role": "user", "content": TASK})
    session.add({"role": "assistant", "content": "so " * 60})
    session.add({"role": "user", "content": "why " * 1_150})
    assert session.view.tokens() > BUDGET.high
    assert Compact().plan(session.view, BUDGET).proposals == ()
    tight = msgspec.structs.replace(BUDGET, limit=1_200)
    assert len(Compact().plan(session.view, tight).proposals) == 1


def test_a_caller_without_a_session_gets_the_same_cut_for_many_turns():
    """B9: the budget of a stateless caller hides a multiple of its step, counted from the start."""
    stateless = msgspec.structs.replace(BUDGET, step=450)
    session = opened()
    chat(session, 25)
    cuts = []
    for number in range(25, 33):
        chat(session, 1, start=number)
        cuts.append(Compact().plan(session.view, stateless).proposals[0].spans[0].last)
    assert len(set(cuts)) <= 2 < len(cuts)


@pytest.mark.parametrize(("keep", "kept"), [(0, 2), (1, 2), (3, 6)])
def test_keep_counts_turns(keep, kept):
    """With 0, all but the last message and the request it answers goes."""
    session = opened()
    chat(session, 25)
    follow(session, Compact(keep=keep))
    assert shown(session).index("fold") == len(shown(session)) - kept - 1


@pytest.mark.parametrize("strategy", [Compact(enabled=False), Compact(auto=False)])
def test_switched_off_it_does_nothing_by_itself(strategy):
    """`enabled` and `auto`; the composer then cuts what does not fit."""
    session = opened(strategy=strategy)
    chat(session, 40)
    assert not strategy.due(session.view, BUDGET)
    assert strategy.plan(session.view, BUDGET).proposals == ()
    assert session.compose_sync().tokens <= 1_500


def test_what_is_not_automatic_can_be_asked_for():
    """`auto=False` compacts on demand, however empty the window is; `enabled=False` never does."""
    session = opened()
    chat(session, 10)
    assert len(Compact(auto=False).compact(session.view, WIDE).proposals) == 1
    assert Compact(enabled=False).compact(session.view, WIDE).proposals == ()


@pytest.mark.parametrize(
    ("threshold", "budget", "mark"),
    [
        (0.8, Budget(limit=175_000, high=160_000, low=100_000, window=200_000), 160_000),
        (0.5, Budget(limit=175_000, high=160_000, low=100_000, window=200_000), 100_000),
        (0.8, Budget(limit=60_000, high=48_000, low=30_000, window=200_000), 48_000),
        (0.5, BUDGET, 750),
    ],
)
def test_the_threshold_is_a_share_of_the_window(threshold, budget, mark):
    """Of the limit, where the budget allows less than that share of the window."""
    assert Compact(threshold=threshold).mark(budget) == mark


def test_the_wishes_of_the_user_reach_the_writer():
    """Own model, own prompts for both halves, directives behind them."""
    session = opened()
    chat(session, 40)
    assert brief_of(Compact(), session).instructions == ""
    own = brief_of(
        Compact(
            model="m", retain="Retain refs.", summary="Sum up.", retain_directives="Ids too.", directives=("Short.",)
        ),
        session,
    )
    assert own.instructions == "For <retain>: Retain refs.\n- Ids too.\n\nFor <summary>: Sum up."
    assert (own.model, own.directives) == ("m", ("Short.",))
    assert brief_of(Compact(instructions="All of it."), session).instructions == "All of it."


def test_half_a_prompt_is_completed():
    """Who states one half gets the shipped other half."""
    session = opened()
    chat(session, 40)
    assert SUMMARY in brief_of(Compact(retain="Retain refs."), session).instructions
    assert RETAIN in brief_of(Compact(summary="Sum up."), session).instructions


@pytest.mark.parametrize(
    ("setting", "value"), [("threshold", 0), ("threshold", 1.1), ("keep", -1), ("keep", 10_001), ("room", 2)]
)
def test_a_setting_out_of_range_is_refused(setting, value):
    """With its name, its value and its range."""
    with pytest.raises(SettingError, match=f"setting '{setting}' is {value}; give"):
        Compact(**{setting: value})


def test_a_whole_prompt_and_a_half_exclude_each_other():
    """Nobody could say which one holds."""
    with pytest.raises(SettingError, match="'instructions'"):
        Compact(instructions="all", retain="half")


def test_running_calls_stay():
    """A call whose result has not come is never summarised away."""
    session = opened()
    talk(session, 40)
    session.add({"role": "assistant", "content": [use("done"), use("running")]})
    session.add({"role": "user", "content": [result("done")]})
    follow(session, Compact(keep=0))
    assert [item.calls for item in session.view.items][-2:] == [("done", "running"), ()]
