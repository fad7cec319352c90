"""Sizes, marks and limits: how much of a window may be filled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill import SettingError, models
from windowsill.budget import Budget, budget_for, tokens_of

pytestmark = pytest.mark.unit

CLAUDE = models.find("claude-sonnet-4-5")


def window_of(size):
    return models.find("unknown", window=size)


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        (40_000, 40_000),
        (0.8, 160_000),
        (1.0, 200_000),
        ("40000", 40_000),
        ("40k", 40_000),
        ("1.5K", 1_500),
        ("1m", 1_000_000),
        (" 80 % ", 160_000),
        ((50_000, 0.8), 50_000),
        ((500_000, 0.5), 100_000),
        ("50k,80%", 50_000),
        ("500k,50%", 100_000),
    ],
)
def test_a_size_is_tokens_a_share_or_both_with_the_smaller_winning(size, tokens):
    """B8: an absolute cap matters on large windows, a share on small ones."""
    assert tokens_of(size, 200_000, "budget") == tokens


@pytest.mark.parametrize(
    "size",
    [0, -1, 0.0, -0.5, True, float("nan"), float("inf"), "", "much", "-5", "0", "101%", "5%%", "1k,", (0, 0.5), 2.0],
)
def test_a_size_that_is_none_names_the_setting_and_the_value(size):
    """The error says which setting, what it was, and what may be given."""
    with pytest.raises(SettingError, match="setting 'high' is") as caught:
        tokens_of(size, 200_000, "high")
    assert "; give " in str(caught.value)


@pytest.mark.parametrize("size", ["0.5", "0.0001k"])
def test_a_text_that_would_mean_less_than_one_token_is_refused(size):
    """A share written without its sign must not become a budget of nothing."""
    with pytest.raises(SettingError, match="setting 'budget' is"):
        tokens_of(size, 200_000, "budget")


@pytest.mark.parametrize("size", [[4_000, 0.5], b"4k", None, {"tokens": 5}, ()])
def test_a_size_of_another_kind_is_a_setting_error_too(size):
    """What comes from a JSON file or a slip of the hand is refused in our words, not Python's."""
    with pytest.raises(SettingError, match="setting 'budget' is"):
        tokens_of(size, 200_000, "budget")


def test_without_a_budget_the_answer_gets_its_room():
    """The window less what the answer may take, less a margin where the count is an estimate."""
    assert budget_for(CLAUDE, max_output=50_000).limit == 150_000 - 7_500
    assert budget_for(models.find("gpt-4o"), max_output=28_000).limit == 99_000


def test_a_stated_budget_is_the_limit():
    """And its marks are shares of it, not of the window."""
    found = budget_for(CLAUDE, budget=10_000)
    assert (found.limit, found.high, found.low) == (10_000, 8_000, 5_000)


@pytest.mark.parametrize("budget", [32_000, "32k", (32_000, 1.0)])
def test_a_budget_never_passes_the_window(budget):
    """More input than the model can take is no budget: the provider would refuse the request."""
    assert budget_for(window_of(8_192), budget=budget).limit <= 8_192


def test_an_answer_as_long_as_the_window_is_refused_by_its_name():
    """No room is left for the request: the error names the setting that took it, not the system prompt."""
    with pytest.raises(SettingError, match="max_output"):
        budget_for(CLAUDE, max_output=200_000)


def test_marks_in_tokens_are_kept_as_stated():
    """Both marks may be given in any form of a size."""
    found = budget_for(CLAUDE, budget=100_000, high="60k", low=(20_000, 0.5))
    assert (found.high, found.low) == (60_000, 20_000)


def test_marks_never_pass_the_limit():
    """A high mark above the limit means the limit; a low one above the high one means the high one."""
    found = budget_for(CLAUDE, budget=1_000, high=5_000, low=4_000)
    assert (found.limit, found.high, found.low) == (1_000, 1_000, 1_000)


def test_large_fixed_parts_do_not_eat_the_room_between_the_marks():
    """With most of the window taken by the system prompt, the marks are shares of what is left."""
    found = budget_for(CLAUDE, budget=10_000, fixed=7_000)
    assert found.high == 9_400
    assert found.low == 8_500


def test_limits_besides_tokens_come_from_the_model():
    """Bytes and media have limits of their own (T7)."""
    limits = budget_for(CLAUDE).limits
    assert (limits.bytes, limits.media) == (CLAUDE.request_bytes, CLAUDE.media_count)
    assert limits.bytes is not None


def test_below_the_high_mark_nothing_has_to_go():
    """B9: and above it, everything down to the low mark."""
    budget = Budget(limit=1_000, high=800, low=500)
    assert budget.to_hide(800) == 0
    assert budget.to_hide(801) == 301


def test_in_steps_what_is_hidden_is_a_multiple_counted_from_the_start():
    """So that somebody without a session gets the same cut for many turns."""
    budget = Budget(limit=1_000, high=1_000, low=750, step=250)
    assert [budget.to_hide(total) for total in (1_000, 1_001, 1_250, 1_251)] == [0, 250, 250, 500]


shares = st.floats(0.01, 1.0)


@given(st.integers(256, 2_000_000), st.one_of(st.none(), st.integers(1, 3_000_000), shares), shares, shares)
def test_the_marks_are_always_in_order(window, budget, high, low):
    """Low, high, limit, window: whatever is stated."""
    low, high = min(low, high), max(low, high)
    found = budget_for(window_of(window), budget=budget, high=high, low=low, fixed=window // 3)
    assert 0 < found.low <= found.high <= found.limit <= window


@pytest.mark.parametrize("budget", ["80%", "300k", 300_000, 10_000_000, 1.0, (10_000_000, 1.0)])
def test_no_form_of_budget_passes_the_models_own_input_limit(budget):
    """A window of 400,000 of which 272,000 may be input: whatever is stated, no more is sent."""
    assert budget_for(models.find("gpt-5"), budget=budget).limit == 272_000


def test_a_budget_leaves_room_for_the_answer_that_is_asked_for():
    """Input and answer share the window."""
    assert budget_for(CLAUDE, budget=1.0, max_output=50_000).limit == 150_000


@pytest.mark.parametrize("model", ["gpt-5", "gpt-4", "gpt-3.5-turbo", "claude-sonnet-4-5", "gemini-2.5-pro"])
def test_marks_are_shares_of_what_a_request_may_have(model):
    """B2: 60, 80 and 100 percent are three sizes, whatever part of the window is kept for the answer."""
    found = budget_for(models.find(model), high=0.8, low=0.7, warn=0.6)
    shares = [round(mark / found.limit, 3) for mark in (found.warn, found.low, found.high)]
    assert shares == [0.6, 0.7, 0.8]


def test_the_low_mark_follows_the_high_one():
    """B9: where only the high mark is stated, what lies between stays, and the warning comes before."""
    found = budget_for(CLAUDE, budget=10_000, high=0.75, warn=0.6)
    assert (found.warn, found.low, found.high) == (6_000, 4_500, 7_500)
    found = budget_for(CLAUDE, budget=10_000, high=0.5, warn=0.6)
    assert (found.warn, found.low, found.high) == (3_750, 2_000, 5_000)
    found = budget_for(CLAUDE, budget=10_000, high=0.2, warn=0.6)
    assert (found.warn, found.low, found.high) == (1_500, 800, 2_000)
