"""A session whose client changes the model between turns: each model is used as its profile says."""

import pytest

from support.sessions import opened, talk
from windowsill.compose.reduce import reduce
from windowsill.compose.summaries import SummaryQueue
from windowsill.messages import Request, text_message
from windowsill.session.client_history import client_history
from windowsill.strategies.condense import Condense
from windowsill.strategies.sliding_window import SlidingWindow

pytestmark = pytest.mark.unit

OWN = {"gpt-5": {"threshold": 40, "goal": 0.5, "keep": 9}, "claude-sonnet-4-5": {"threshold": 90, "keep": 2}}


def asked(session, model):
    """A request for this model, in the place of which the session composes its own."""
    client_history(session).resume(Request(format="openai", messages=(text_message("user", "hi"),), model=model))
    return session.composer


def test_the_marks_are_those_of_the_model_that_is_asked():
    """Of the first one, of the second one, and of the first one again."""
    session = opened(budget=10_000, profiles=OWN)
    marks = [
        (found.high, found.low)
        for model in ("claude-sonnet-4-5", "gpt-5", "claude-sonnet-4-5")
        for found in [asked(session, model).budget(0)]
    ]
    assert marks == [(9_000, 2_250), (4_000, 2_000), (9_000, 2_250)]


def test_so_are_the_messages_that_stay():
    """They are a setting of the strategy."""
    session = opened(budget=10_000, profiles=OWN, strategy="sliding-window")
    assert asked(session, "gpt-5").strategy == SlidingWindow(keep=9)
    assert asked(session, "claude-sonnet-4-5").strategy == SlidingWindow(keep=2)


def test_a_strategy_that_was_given_stays():
    """It was built by the user, settings and all."""
    session = opened(budget=10_000, profiles=OWN, strategy=Condense(keep=5))
    assert asked(session, "gpt-5").strategy == Condense(keep=5)


def test_what_is_stated_wins_for_every_model():
    """Marks and a number of messages that the user wrote down."""
    session = opened(budget=10_000, profiles=OWN, high=0.7, low=0.6, strategy="sliding-window:keep=3")
    composer = asked(session, "gpt-5")
    assert (composer.budget(0).high, composer.strategy) == (7_000, SlidingWindow(keep=3))


def test_the_writer_is_the_one_of_the_model_where_the_profile_chooses():
    """A writer that was given stays."""
    session = opened(budget=10_000, profile="auto", writer="profile")
    assert isinstance(session.composer.summaries, SummaryQueue)
    before = session.composer.summaries.source
    after = asked(session, "gpt-5").summaries.source
    assert (before, after) == ("anthropic:claude-haiku-4-5", "openai:gpt-5-mini")

    async def mine(_):
        return "text"

    session = opened(budget=10_000, profile="auto", writer=mine)
    assert asked(session, "gpt-5").summaries.source is mine


def test_a_session_can_be_reduced_to_less_than_its_marks():
    """To a share of what a request may have, or as far as possible; what goes can be brought back."""
    session = opened(budget=10_000)
    talk(session, 60)
    assert reduce(session.composer).pruned is False
    before = session.view.tokens()
    done = reduce(session.composer, to=0.3)
    assert done.pruned
    assert session.view.tokens() <= 3_000 < before < 8_000
    for fold in reversed(session.folds):
        session.unfold(fold.id)
    assert session.view.tokens() == before
