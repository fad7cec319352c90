import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.errors import SettingError, UnknownModelError
from windowsill.models import Ratios, find, names

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("claude-opus-4-5", "claude-opus-4-5"),
        ("anthropic/claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4-0"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("gemini-2.5-flash-lite-preview-06-17", "gemini-2.5-flash-lite"),
        ("ft:gpt-4o-mini:org::id", "gpt-4o-mini"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4-1106-preview", "gpt-4-turbo"),
        ("gpt-5-chat-latest", "gpt-5-chat"),
        ("GPT-4.1-Mini", "gpt-4.1-mini"),
        ("mistral-large-2512", "mistral-large-2512"),
        ("mistral-large-latest", "mistral-large"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b"),
        ("meta.llama3-1-70b-instruct-v1:0", "llama-3.1"),
        ("qwen/qwen3-coder:free", "qwen3-coder"),
        ("kimi-k2-0905-preview", "kimi-k2-0905"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.2"),
    ],
)
def test_names_lead_to_models(name, found):
    """A model is found under the names its hosts and versions give it."""
    assert find(name).name == found


@pytest.mark.parametrize("name", names())
def test_every_name_leads_to_itself(name):
    """No alias or shortening hides a model of the table."""
    assert find(name).name == name


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("gpt-5", (400_000, 272_000, 128_000)),
        ("gpt-4o", (128_000, 128_000, 16_384)),
        ("claude-opus-4-5", (200_000, 200_000, 64_000)),
        ("claude-sonnet-5", (1_000_000, 1_000_000, 128_000)),
        ("gemini-2.5-pro", (1_048_576, 1_048_576, 65_536)),
        ("claude-sonnet-4-5[1m]", (1_000_000, 1_000_000, 64_000)),
    ],
)
def test_window_input_and_output_are_three_limits(name, limits):
    """Window, largest request and longest answer are known apart."""
    model = find(name)
    assert (model.window, model.max_input, model.max_output) == limits


@pytest.mark.parametrize(
    ("window", "limits"),
    [(500_000, (500_000, 500_000, 128_000)), (300_000, (300_000, 272_000, 128_000)), (8_000, (8_000, 8_000, 8_000))],
)
def test_stated_window_wins_over_the_table(window, limits):
    """A stated window replaces the table's (T8), and the limits not stated follow it."""
    model = find("gpt-5", window=window)
    assert (model.window, model.max_input, model.max_output) == limits


def test_stated_output_wins_over_the_table():
    """A stated longest answer replaces the table's."""
    assert find("gpt-5", max_output=1_000).max_output == 1_000


@pytest.mark.parametrize("name", ["gpt-5-foo-unknown-new", "claude-opus-9", "azure/my-deployment", ""])
def test_unknown_model_is_an_error_that_says_how_to_state_a_window(name):
    """There is no silent default (T5): a model nobody knows is refused, with the remedy."""
    with pytest.raises(UnknownModelError, match=r"state one: window=.*settings file"):
        find(name)


def test_unknown_model_names_the_nearest():
    """A near miss is told which models it resembles."""
    with pytest.raises(UnknownModelError, match=r"nearest known: .*claude-opus-5"):
        find("claude-opus-6")


def test_unknown_model_with_a_window_is_usable():
    """A stated window makes any model usable, with cautious ratios and a modest answer."""
    model = find("my-model", window=32_000)
    assert (model.name, model.family, model.tokenizer) == ("my-model", "generic", "o200k_base")
    assert (model.window, model.max_input, model.max_output) == (32_000, 32_000, 8_000)
    assert model.ratio.prose > 1
    assert not model.exact


def test_overrides_win_over_the_table():
    """The user's fields replace the table's, under any spelling of the name."""
    model = find("openai/gpt-5-2025-08-07", overrides={"GPT-5": {"max_input": 100_000, "ratio": 1.5}})
    assert (model.max_input, model.window, model.ratio) == (100_000, 400_000, Ratios(1.5, 1.5, 1.5, 1.5))


def test_overrides_win_over_what_a_model_states_itself():
    """A field the table gives to this very model is replaced too."""
    assert find("gpt-4o-mini", overrides={"gpt-4o-mini": {"size": "large"}}).size == "large"


def test_overrides_can_bring_a_new_model():
    """A model that only the user knows inherits from the family the user names."""
    model = find("corp", overrides={"corp": {"family": "claude", "window": 50_000, "ratio": {"cjk": 2.0}}})
    assert (model.name, model.framing, model.max_output) == ("corp", "anthropic", 50_000)
    assert model.ratio == Ratios(prose=1.1, code=1.14, json=1.25, cjk=2.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"windw": 3}, r"models.gpt-5.windw' is 3; give only known fields"),
        ({"window": "big"}, r"models.gpt-5.window' is 'big'; give `int`"),
        ({"window": 0}, r"models.gpt-5.window' is 0; give `int` >= 1"),
        ({"window": True}, r"models.gpt-5.window' is True"),
        ({"family": "cats"}, r"models.gpt-5.family' is 'cats'; give one of claude"),
        ({"ratio": 9}, r"models.gpt-5.ratio.prose.*<= 4.0"),
        ({"ratio": {"poetry": 1}}, r"models.gpt-5.*only known fields"),
        ({"cache": "maybe"}, r"models.gpt-5.cache' is 'maybe'"),
        ({"prices": {"input": 1}}, r"models.gpt-5.prices"),
        (3, r"models.gpt-5' is 3; give a table of fields"),
    ],
)
def test_bad_overrides_are_refused(fields, message):
    """A field that is unknown or out of range is named, with its value and what would do."""
    with pytest.raises(SettingError, match=message):
        find("gpt-5", overrides={"gpt-5": fields})


@pytest.mark.parametrize("window", [0, -1, "200k"])
def test_bad_windows_are_refused(window):
    """A stated window that is none is refused."""
    with pytest.raises(SettingError, match="window"):
        find("gpt-5", window=window)


@given(st.text(max_size=40))
def test_any_text_is_a_model_or_unknown(name):
    """No name leads to anything but a model or the error for unknown ones."""
    try:
        assert find(name).window > 0
    except UnknownModelError as error:
        assert "state one" in str(error)  # noqa: PT017  most texts are unknown, a few are models
