import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.errors import SettingError
from windowsill.models import find
from windowsill.state.layers import PHASES
from windowsill.state.shares import BASE, EVIDENCE_WEIGHTS, MEMORY_WEIGHTS, ShareSettings, pass_on, split

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("window", "phase", "size", "system", "task", "runtime", "memory", "evidence", "work", "reserve", "free"),
    [
        # The base: 5, 5, 3, 52, 25 and 10 hundredths of 90,000 tokens.
        (100_000, "initializing", "balanced", 4_500, 4_500, 2_700, 46_800, 22_500, 9_000, 0, 10_000),
        (100_000, "verifying", "balanced", 4_500, 4_500, 2_700, 46_800, 22_500, 9_000, 0, 10_000),
        # Planning: 5, 5, 3, 62, 35 and 0 (not -10) of 110 points, and 180,000 tokens.
        (200_000, "planning", "balanced", 8_181, 8_181, 4_909, 101_454, 57_272, 0, 3, 20_000),
        # Executing: 5, 5, 3, 42, 20 and 25 of 100.
        (200_000, "executing", "balanced", 9_000, 9_000, 5_400, 75_600, 36_000, 45_000, 0, 20_000),
        # Reflecting: 5, 5, 3, 67, 30 and 0 of 110.
        (200_000, "reflecting", "balanced", 8_181, 8_181, 4_909, 109_636, 49_090, 0, 3, 20_000),
        # Large: 5, 5, 3, 57, 30 and 10 of 110, and 900,000 tokens.
        (1_000_000, "completed", "large", 40_909, 40_909, 24_545, 466_363, 245_454, 81_818, 2, 100_000),
        # Small: 5, 5, 3, 47, 15 and 25 of 100, and 7,200 tokens.
        (8_000, "failed", "small", 360, 360, 216, 3_384, 1_080, 1_800, 0, 800),
        # Executing and small: 5, 5, 3, 37, 10 and 40 of 100.
        (8_000, "executing", "small", 360, 360, 216, 2_664, 720, 2_880, 0, 800),
        # Planning and small: the work buffer is empty before it gets its 15; 5, 5, 3, 57, 25 and 15 of 110.
        (8_000, "planning", "small", 327, 327, 196, 3_730, 1_636, 981, 3, 800),
        (1, "executing", "balanced", 0, 0, 0, 0, 0, 0, 0, 1),
    ],
)
def test_the_window_is_shared_out_by_phase_and_size(
    window, phase, size, system, task, runtime, memory, evidence, work, reserve, free
):
    """B4 and B5: nine tenths by points, adjusted and brought back to one whole; rounding leaves the reserve."""
    assert msgspec.structs.astuple(ShareSettings().allocate(window, phase=phase, size=size)) == (
        system,
        task,
        runtime,
        memory,
        evidence,
        work,
        reserve,
        free,
    )


@given(st.integers(1, 3_000_000), st.sampled_from(PHASES), st.sampled_from(["large", "balanced", "small"]))
def test_the_shares_are_the_window(window, phase, size):
    """Nothing is lost, nothing negative, and rounding takes less than a token of each layer."""
    shares = ShareSettings().allocate(window, phase=phase, size=size)
    assert sum(msgspec.structs.astuple(shares)) == window
    assert min(msgspec.structs.astuple(shares)) >= 0
    assert shares.reserve < 6


def test_the_size_of_a_model_is_one_that_can_be_shared_out_for():
    """The model table speaks the same words."""
    assert ShareSettings().allocate(100, phase="executing", size=find("claude-haiku-4-5").size).work == 36


def test_points_and_percentage_are_settings():
    """Another base, and everything shared out."""
    base = {**dict.fromkeys(BASE, 0), "system": 1, "task": 1, "memory": 2}
    shares = ShareSettings(base=base, shared=100).allocate(100, phase="verifying")
    assert shares.layers == {"system": 25, "task": 25, "runtime": 0, "memory": 50, "evidence": 0, "work": 0}


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 0},
        {"shared": 0},
        {"shared": 101},
        {"base": {"system": -1, "task": 9}},
        {"base": {"x": 1}},
        {"by_phase": {"planning": {"x": 1}}},
    ],
)
def test_what_cannot_be_shared_out_is_refused(wrong):
    """The error names the setting."""
    with pytest.raises(SettingError, match=next(iter(wrong))):
        ShareSettings(**{key: value for key, value in wrong.items() if key != "window"}).allocate(
            wrong.get("window", 100), phase="planning"
        )


def test_memory_is_shared_by_weight():
    """B6: 1.5, 1.0, 0.8 and 1.2, rounded down."""
    every = {"short_term", "episodic", "semantic", "procedural"}
    assert split(4_500, MEMORY_WEIGHTS, every) == {
        "short_term": 1_500,
        "episodic": 1_000,
        "semantic": 800,
        "procedural": 1_200,
    }


def test_what_holds_nothing_gets_no_share_of_memory():
    """B6: the others have it all."""
    assert split(1_000, MEMORY_WEIGHTS, {"episodic", "semantic"}) == {
        "short_term": 0,
        "episodic": 555,
        "semantic": 444,
        "procedural": 0,
    }
    assert sum(split(1_000, MEMORY_WEIGHTS, ()).values()) == 0


def test_evidence_is_shared_by_weight():
    """25 to 10, or all to the one that there is."""
    assert split(350, EVIDENCE_WEIGHTS, {"observations", "retrieval"}) == {"observations": 250, "retrieval": 100}
    assert split(350, EVIDENCE_WEIGHTS, {"retrieval"}) == {"observations": 0, "retrieval": 350}


def test_what_is_not_used_goes_to_the_most_important():
    """B7: 70 are left over; evidence needs 40 more and has them, memory gets the rest."""
    shares = {"system": 100, "memory": 100, "evidence": 100}
    needs = {"system": 30, "memory": 200, "evidence": 140}
    assert pass_on(shares, needs, {"system": 100, "memory": 50, "evidence": 80}) == {
        "system": 30,
        "memory": 130,
        "evidence": 140,
    }


def test_of_two_as_important_the_earlier_comes_first():
    """B7: the order of the layers decides."""
    shares = {"memory": 10, "work": 10, "system": 10}
    assert pass_on(shares, {"memory": 15, "work": 15}, {}) == {"memory": 15, "work": 15, "system": 0}
    assert pass_on(shares, {"memory": 30, "work": 15}, {}) == {"memory": 20, "work": 10, "system": 0}


NAMES = ("a", "b", "c", "d")
AMOUNTS = st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(0, 100)))


@given(AMOUNTS, AMOUNTS, st.fixed_dictionaries(dict.fromkeys(NAMES, st.sampled_from([5, 50, 100]))))
def test_passing_on_is_fair(shares, needs, importance):
    """B7: no more than there was, no more than needed, and never past somebody more important who is short."""
    granted = pass_on(shares, needs, importance)
    assert sum(granted.values()) <= sum(shares.values())
    assert all(min(shares[name], needs[name]) <= granted[name] <= needs[name] for name in NAMES)
    gained = [importance[name] for name in NAMES if granted[name] > shares[name]]
    short = [importance[name] for name in NAMES if granted[name] < needs[name]]
    assert max(short, default=0) <= min(gained, default=100)
    assert not short or sum(granted.values()) == sum(shares.values())
