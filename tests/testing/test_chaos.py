"""A model that disturbs another: each disturbance by its name, and the same ones for the same seed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.agent_models import FORMATS, ask, asking, fault, talking, told
from support.examples import examples
from support.sdk_types import SDK
from windowsill import Engine, Session, providers
from windowsill.agent.models import Delta, ModelError
from windowsill.errors import SettingError
from windowsill.models import is_overflow, learn_window
from windowsill.testing import Chaos, Scripted
from windowsill.testing.models import KINDS

pytestmark = pytest.mark.contract

ANSWERS = ("partial", "malformed-arguments", "unknown-tool", "repeat")


def outcome(model: Chaos) -> Any:
    """Return what came of one call: what was said, or the kind of the error."""
    try:
        answer = ask(model)
    except ModelError as error:
        return error.kind
    return answer.body, answer.partial


@pytest.mark.parametrize("kind", ["overflow", "server", "rate-limited"])
def test_errors(kind: Any) -> None:
    """Faults of a provider, as a real one has them."""
    found = fault(Chaos(schedule=[kind]))
    assert (found.kind, found.passing) == (kind, kind != "overflow")


def test_overflow_names_a_window_if_it_has_one() -> None:
    """Some providers say the window and some do not; both are overflows."""
    assert is_overflow(fault(Chaos(schedule=["overflow"])).provider_message)
    assert learn_window(fault(Chaos(schedule=["overflow"], window=8_000)).provider_message) == 8_000


def test_rate_limit_asks_for_a_pause() -> None:
    """A short one, for tests that keep to it."""
    assert fault(Chaos(schedule=["rate-limited"])).retry_after == 0.01


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", ["malformed-arguments", "unknown-tool", "repeat"])
def test_every_answer_is_valid(format: str, kind: Any) -> None:
    """The provider's own SDK reads whatever is said."""
    answer = ask(Chaos(schedule=[kind], inner=Scripted([], format)))
    assert SDK[format].model_validate_json(answer.body)
    assert not answer.partial


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", ANSWERS)
def test_a_session_goes_on(format: str, kind: Any) -> None:
    """Whatever is said, a session takes it, and its next request is sound."""
    session = talking(format)
    answer = ask(Chaos(schedule=[kind], inner=Scripted([], format)), asking(session, format=format))
    session.add(answer.body, format=format)
    session.add("Go on.")
    payload = asking(session, format=format).payload
    assert providers.validate({"model": "m", "max_tokens": 5, **payload.to(format)}, format) == []
    assert answer.partial is (kind == "partial")


@pytest.mark.parametrize("format", FORMATS)
def test_malformed_arguments(format: str) -> None:
    """A tool that exists is called with arguments that are none."""
    ((_, _, name, arguments),) = told(
        ask(Chaos(schedule=["malformed-arguments"], inner=Scripted([], format))).body, format
    )
    assert (name, '{"path": "src/' in arguments or r"{\"path\": \"src/" in arguments) == ("read", True)


def test_unknown_tool() -> None:
    """A tool is called that nobody defined."""
    assert told(ask(Chaos(schedule=["unknown-tool"])).body, "openai")[0][2] == "no_such_tool"


def test_repeat() -> None:
    """The last calls are made again, with ids of their own, for as long as it is told to."""
    model = Chaos(inner=Scripted([("read", {"path": "a"}), "unheard"]), schedule=["ok"], then="repeat")
    calls = [told(ask(model).body, "openai")[0] for _ in range(4)]
    assert [call[2:] for call in calls] == [("read", '{"path":"a"}')] * 4
    assert len({call[1] for call in calls}) == 4


def test_repeat_before_anything_was_called() -> None:
    """The first tool is called then, or words are said where there is none."""
    assert told(ask(Chaos(schedule=["repeat"])).body, "openai")[0][2:] == ("read", "{}")
    asked = asking()
    asked.payload = talking("openai").compose_sync()
    assert told(ask(Chaos(schedule=["repeat"]), asked).body, "openai")[0][0] == "text"


def test_nothing_of_the_inner_model_is_lost() -> None:
    """What it has to say comes whole, after the disturbances."""
    inner = Scripted(["one", "two"])
    model = Chaos(inner=inner, schedule=["overflow", "ok", "partial", "server", "unknown-tool", "ok"])
    said = [outcome(model) for _ in range(6)]
    assert [told(said[place][0], "openai") for place in (1, 5)] == [[("text", "one")], [("text", "two")]]
    assert (said[0], said[3], len(inner.requests)) == ("overflow", "server", 2)
    assert model.did == ["overflow", "ok", "partial", "server", "unknown-tool", "ok"]


def test_without_a_seed_nothing_happens_by_chance() -> None:
    """After the schedule the inner model answers."""
    model = Chaos(schedule=["server"])
    assert [outcome(model) for _ in range(9)].count("server") == 1
    assert model.did == ["server"] + ["ok"] * 8


@settings(max_examples=examples(0.3))
@given(seed=st.integers(0, 2**32), format=st.sampled_from(FORMATS))
def test_same_seed(seed: int, format: str) -> None:
    """The same seed gives the same bytes and the same errors."""

    def run() -> list[Any]:
        model = Chaos(seed, Scripted([], format, then=("read", {"path": "a"})))
        return [outcome(model) for _ in range(6)]

    assert run() == run()


def test_every_kind_comes_up() -> None:
    """By chance everything happens sooner or later, and whatever is left undisturbed is an answer."""
    model = Chaos(7, share=0.8)
    for _ in range(120):
        outcome(model)
    assert set(model.did) == {*KINDS, "ok"}


def test_share_and_kinds() -> None:
    """How often, and by what, can be stated."""
    calm, wild = Chaos(1, share=0.0), Chaos(1, share=1.0, kinds=["server"])
    said = [(outcome(calm)[1], outcome(wild)) for _ in range(5)]
    assert said == [(False, "server")] * 5


def test_partial_answers_break_off_in_words_or_calls() -> None:
    """A stream may end within either."""
    model = Chaos(3, Scripted([], then=("read", {})), share=0.5, kinds=["partial"])
    shapes = {tuple(block[0] for block in told(ask(model).body, "openai")) for _ in range(60)}
    assert shapes == {("call",), ("text",), ("text", "call")}


def test_listener() -> None:
    """What is said in the place of an answer is heard, too."""
    heard: list[Delta] = []
    ask(Chaos(schedule=["unknown-tool"]), heard=heard)
    assert [delta.kind for delta in heard] == ["tool_call", "tool_call"]


def test_takes_the_place_of_its_model() -> None:
    """Name and format are those of the model it disturbs."""
    model = Chaos(inner=Scripted([], "gemini", name="gemini-2.5-pro"))
    assert (model.name, model.format) == ("gemini-2.5-pro", "gemini")


@pytest.mark.parametrize("settings", [{"schedule": ["boom"]}, {"then": "boom"}, {"kinds": ["boom"]}, {"share": 2}])
def test_settings_out_of_range(settings: Any) -> None:
    """A disturbance nobody knows is an error at once."""
    with pytest.raises(SettingError):
        Chaos(**settings)


def test_an_overflow_of_a_small_request_is_got_over() -> None:
    """It names no window and teaches none: the request is sent again, as small as it can be."""
    session = Session.open("chaos", model="gpt-5", store=":memory:")
    model = Chaos(inner=Scripted(["Fine.", "Fine."]), schedule=["server", "partial", "overflow"])
    result = Engine(session, model=model).run_sync("Are you well?")
    assert (result.text, result.status) == ("Fine.", "completed")
    assert session.model.window == 400_000
