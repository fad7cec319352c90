import msgspec
import pytest

from windowsill.models import catalog, find, names, wants_reasoning
from windowsill.models.catalog import key
from windowsill.tokens import Calibration, counter, framing, image_rule

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", names())
def test_every_model_can_be_weighed_for(name):
    """Tokenizer, framing and image rule of every model exist, and its ratio can start a calibration."""
    model = find(name)
    assert counter(model.tokenizer).count("hello") > 0
    assert framing(model.framing).name == model.framing
    assert image_rule(model.image_rule).name == model.image_rule
    ratio = msgspec.structs.asdict(model.ratio)
    assert Calibration.starting(ratio).prose == model.ratio.prose


@pytest.mark.parametrize("name", names())
def test_numbers_are_sane(name):
    """No answer is longer than the window, no request either, and ratios stay near one."""
    model = find(name)
    assert 4_096 <= model.max_output <= model.window
    assert model.max_output < 2 * model.max_input <= 2 * model.window
    assert 8_192 <= model.window <= 10_000_000
    assert all(0.9 <= ratio <= 1.7 for ratio in msgspec.structs.astuple(model.ratio))
    assert model.cache_minimum <= 32_768
    assert not model.exact or msgspec.structs.astuple(model.ratio) == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("name", names())
def test_small_siblings_are_small_models_of_the_same_provider(name):
    """The model that writes cheap summaries is known, and served by the same provider."""
    model = find(name)
    if model.small_sibling is not None:
        sibling = find(model.small_sibling)
        assert sibling.provider == model.provider
        assert sibling.name == model.small_sibling != name


def test_no_two_models_share_a_name():
    """Every name and alias leads to one model only."""
    spelled = [key(each) for name, fields in catalog.models().items() for each in (name, *fields.get("aliases", ()))]
    assert sorted(spelled) == sorted(set(spelled))


def test_every_family_is_used():
    """A family without models is left over from something."""
    used = {fields["family"] for fields in catalog.models().values()}
    assert set(catalog.families()) - used == {"generic"}


@pytest.mark.parametrize(
    ("name", "binds"), [("claude-opus-4-6", False), ("claude-opus-5", True), ("claude-sonnet-5-5", True)]
)
def test_newest_claude_binds_reasoning_to_its_prefix(name, binds):
    """Only the newest models refuse signed reasoning after an edit before it."""
    assert find(name).binds_reasoning is binds


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("deepseek-v4-pro", "required"),
        ("deepseek-reasoner", "required"),
        ("deepseek-r1", "refused"),
        ("deepseek-chat", "kept"),
        ("kimi-k2.5", "required"),
        ("kimi-k2", "kept"),
        ("glm-5", "kept"),
        ("gpt-5", "refused"),
        ("mistral-large", "refused"),
    ],
)
def test_what_becomes_of_unsigned_reasoning_is_known(name, fact):
    """Some models refuse their own messages without it, others any message with it."""
    assert find(name).reasoning_content == fact
    assert wants_reasoning(name) == (fact == "required")


def test_unknown_model_wants_nothing():
    """Nobody's reasoning is changed for a model that nobody knows."""
    assert not wants_reasoning("my-own-model")
    assert find("my-own-model", window=8_192).reasoning_content == "kept"
