import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.tokens import Calibration, Weight

pytestmark = pytest.mark.unit

ratios = st.floats(0.5, 3.0)
weights = st.builds(Weight, *[st.integers(0, 10**6)] * 6)


def learn(calibration, truth, rounds, *, seed=1, noise=0.05):
    """Show requests of mixed content whose true ratios are `truth`."""
    rng = random.Random(seed)
    for _ in range(rounds):
        counts = [rng.choice((0, rng.randrange(5000))) for _ in truth]
        billed = sum(count * ratio for count, ratio in zip(counts, truth, strict=True))
        calibration = calibration.observe(Weight(*counts), round(billed * (1 + rng.uniform(-noise, noise))))
    return calibration


def learnt(calibration):
    return [calibration.prose, calibration.code, calibration.json, calibration.cjk]


believable = st.floats(0.7, 2.0)
"""What the ratios of real vocabularies lie between: one far larger than the others would drown them in its noise."""


@given(truth=st.tuples(believable, believable, believable, believable), start=ratios)
def test_converges_to_the_true_ratios(truth, start):
    """After 300 requests each kind's ratio is within a tenth of the truth, wherever it started."""
    assert learnt(learn(Calibration.starting(start), truth, 300)) == pytest.approx(list(truth), rel=0.1)


def test_error_falls_as_it_learns():
    """The shown error starts with the wrong ratio and ends near the noise."""
    first = learn(Calibration.starting(1.0), (1.5, 1.5, 1.5, 1.5), 1)
    last = learn(Calibration.starting(1.0), (1.5, 1.5, 1.5, 1.5), 300)
    assert first.error > 25
    assert last.error < 5


def test_what_is_learnt_of_one_kind_carries_over():
    """A ratio seen on prose alone moves the ratio of code the same way."""
    calibration = Calibration.starting(1.0)
    for _ in range(30):
        calibration = calibration.observe(Weight(prose=2000), 2800)
    assert calibration.prose == pytest.approx(1.4, abs=0.02)
    assert 1.1 < calibration.code < calibration.prose


def test_fixed_and_framing_tokens_are_taken_as_they_are():
    """Pictures and framing are not part of what the ratio explains."""
    seen = Weight(prose=1000, fixed=5000, overhead=100)
    calibration = Calibration.starting(1.2).observe(seen, 6300)
    assert calibration.prose == pytest.approx(1.2)
    assert calibration.estimate(seen) == pytest.approx(6300)


@pytest.mark.parametrize("nonsense", [1, 999_999_999])
def test_one_nonsense_usage_changes_little(nonsense):
    """After some honest requests a single nonsense usage moves no ratio by more than a fiftieth."""
    before = learn(Calibration.starting(1.2), (1.2, 1.2, 1.2, 1.2), 40)
    after = before.observe(Weight(1000, 1000, 1000, 1000), nonsense)
    assert learnt(after) == pytest.approx(learnt(before), abs=0.02)


@pytest.mark.parametrize(
    ("counted", "reported"),
    [
        (Weight(prose=1000), 0),
        (Weight(prose=1000), -5),
        (Weight(prose=1000), 10**400),
        (Weight(prose=10**400), 12),
    ],
)
def test_impossible_observations_are_ignored(counted, reported):
    """Usage that cannot be true changes nothing."""
    start = Calibration.starting(1.25)
    assert start.observe(counted, reported) == start


@pytest.mark.parametrize(
    ("counted", "reported"),
    [(Weight(prose=10), 12), (Weight(prose=1000), 6_000), (Weight(prose=1000), 100), (Weight(prose=-1000), 100)],
)
def test_a_report_that_no_ratio_explains_is_an_error_and_no_lesson(counted, reported):
    """Too little text, or a jump that only a part unknown to us explains, leaves the ratios as they were."""
    learned = Calibration.starting(1.25).observe(counted, reported, total=(5_000, 10_000))
    assert learnt(learned) == [1.25] * 4
    assert (learned.observations, learned.error) == (1, 50.0)


def test_what_a_fold_took_away_teaches_too():
    """A request that became smaller tells the ratio of what went."""
    learned = Calibration.starting(1.0)
    for _ in range(3):
        learned = learned.observe(Weight(prose=-20_000, code=300), -29_550, total=(9_000, 9_000))
    assert learned.prose == pytest.approx(1.5, abs=0.05)


@given(ratio=st.floats(0.5, 2.5), nonsense=st.floats(0.3, 3.9))
def test_the_second_observation_decides_what_a_surprise_was(ratio, nonsense):
    """One surprising report moves a ratio a little; where the next ones disagree with it, it is forgotten."""
    learned = Calibration.starting(1.0).observe(Weight(prose=2000), round(2000 * nonsense))
    for _ in range(4):
        learned = learned.observe(Weight(prose=2000), round(2000 * ratio))
    assert learned.prose == pytest.approx(ratio, rel=0.15)


def test_a_new_tokenizer_is_learnt_anew():
    """When a provider changes its tokenizer, the ratio follows."""
    old = learn(Calibration.starting(1.1), (1.1, 1.1, 1.1, 1.1), 500)
    new = learn(old, (1.5, 1.5, 1.5, 1.5), 500, seed=2)
    assert learnt(new) == pytest.approx([1.5] * 4, rel=0.1)


def test_kinds_never_seen_stay_as_uncertain_as_they_were():
    """A thousand requests of prose alone do not let the doubt about Chinese grow without end."""
    start = calibration = Calibration.starting(1.0)
    for _ in range(1000):
        calibration = calibration.observe(Weight(prose=2000), 2000)
    assert calibration.covariance[3][3] <= start.covariance[3][3] * 1.0001


def test_exact_keeps_its_ratio_and_shows_its_error():
    """An exact tokenizer stays at one, and an error of a fifth is still shown."""
    calibration = Calibration.exact()
    for _ in range(10):
        calibration = calibration.observe(Weight(prose=1000), 1250)
    assert learnt(calibration) == [1.0] * 4
    assert calibration.error == pytest.approx(20)
    assert calibration.observations == 10


@given(st.lists(st.tuples(weights, st.integers(-10, 2 * 10**9)), max_size=40))
def test_always_finite_and_in_range(observations):
    """No sequence of observations leads to a ratio out of range or a number that is none."""
    calibration = Calibration.starting(1.25)
    for counted, reported in observations:
        calibration = calibration.observe(counted, reported)
    assert all(0.25 <= ratio <= 4 for ratio in learnt(calibration))
    assert 0 <= calibration.error <= 100
    assert all(math.isfinite(cell) for row in calibration.covariance for cell in row)
    assert all(calibration.covariance[i][i] > 0 for i in range(4))


@given(st.lists(st.tuples(weights, st.integers(1, 10**7)), max_size=10))
def test_storage_changes_nothing(observations):
    """A calibration stored as JSON and read back goes on exactly as the one kept in memory."""
    kept = stored = Calibration.starting({"prose": 1.1, "code": 1.2})
    for counted, reported in observations:
        kept = kept.observe(counted, reported)
        stored = msgspec.json.decode(msgspec.json.encode(stored.observe(counted, reported)), type=Calibration)
    assert stored == kept


def test_starting_ratio_by_kind():
    """A starting ratio may differ by kind; a kind not named starts at one; nonsense is cut."""
    assert learnt(Calibration.starting({"prose": 1.1, "json": 99, "cjk": 0.0})) == [1.1, 1.0, 4.0, 0.25]


@given(text=st.integers(0, 5_000), media=st.integers(0, 5_000), reported=st.integers(1, 12_000))
def test_a_lower_report_is_explained_and_never_raises_the_estimate(text, media, reported):
    """The estimate becomes the report where that is below it, unless ratios that exist cannot explain it."""
    counted = Weight(prose=text, fixed=media, overhead=10)
    start = Calibration.exact()
    lowered = start.lowered(counted, reported)
    assert lowered.estimate(counted) <= start.estimate(counted)
    if reported >= text / 4 + 10:
        assert lowered.estimate(counted) == pytest.approx(min(reported, start.estimate(counted)))


def test_pictures_that_weigh_less_do_not_make_text_lighter():
    """A provider that counts pictures lower than its rule: text that comes next is still counted in full."""
    lowered = Calibration.exact().lowered(Weight(prose=500, fixed=800), 900)
    assert (lowered.prose, lowered.media) == (1.0, 0.5)
    assert lowered.estimate(Weight(prose=100)) == 100
