"""Native: the provider does the work, and what it did is a fold."""

import asyncio
import itertools

import anthropic
import openai
import pytest

import windowsill
from support.wrapped_clients import Anthropic, Chat, Responses
from windowsill import Session, SettingError, strategies
from windowsill.budget import Budget
from windowsill.strategies.native import Native
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

WINDOW = 3_000
OUTPUT = "line of the file\n" * 20


def working():
    turns = itertools.count()
    return lambda _: Answer(text=f"turn {next(turns)}", calls=(Call("read", {"path": "a.py"}),))


def run(speaker, session, turns, **options):
    """A tool loop through a wrapped client, streaming every other turn; the server and what it saw."""
    with Server(working(), window=WINDOW, **options) as server:
        client = windowsill.wrap(speaker.client(server.url, later=False), session, resends=False)

        async def loop():
            messages = [speaker.user("Read everything.")]
            for turn in range(turns):
                reply = await speaker.ask(client, messages, stream=turn % 2 == 1)
                messages = speaker.results(speaker.calls(reply), OUTPUT, picture=False)

        asyncio.run(loop())
        client.close()
    assert server.refused == []
    assert max(each.tokens for each in server.seen) <= WINDOW
    return server


def opened(speaker, strategy, store=":memory:"):
    return Session.open("n", model=speaker.model, budget=WINDOW, tokenizer="o200k_base", strategy=strategy, store=store)


def test_anthropic_clears_old_results_and_the_view_shows_it():
    """What it cleared is masked here too, so it is cleared once, and can be brought back."""
    session = opened(Anthropic(), "native:compact=false,keep=2")
    server = run(Anthropic(), session, 40)
    cleared = [each for each in server.seen if each.cleared]
    assert 3 < len(cleared) < 20
    assert {fold.strategy for fold in session.folds} == {"provider"}
    assert {fold.kind for fold in session.folds} == {"mask"}
    assert "cleared" in session.folds[0].reason
    assert "context-management-2025-06-27" in server.seen[0].headers["anthropic-beta"]
    before = [message.raw for message in session.messages()]
    session.unfold(session.folds[0].id)
    assert [message.raw for message in session.messages()] == before
    assert session.verify() == []


def test_tools_that_are_excluded_are_not_masked():
    """The request says so, and what is recorded agrees with it."""
    session = opened(Anthropic(), Native(compact=False, keep=0, exclude=("read",)))
    server = run(Anthropic(), session, 12)
    assert not any(each.cleared for each in server.seen)
    assert all(fold.kind != "mask" for fold in session.folds)


@pytest.mark.parametrize("speaker", [Anthropic(), Responses()], ids=["anthropic", "responses"])
def test_a_compaction_is_a_fold_of_everything_before_it(speaker):
    """The provider's own item goes back untouched, and the whole history stays here."""
    session = opened(speaker, Native(clear=False, smallest=0))
    server = run(speaker, session, 40, summarise=lambda _: "Files were read. " * 5)
    assert 2 <= sum(each.compacted for each in server.seen) < 10
    assert {(fold.strategy, fold.kind) for fold in session.folds} == {("provider", "condense")}
    under = "input" if isinstance(speaker, Responses) else "messages"
    assert "compaction" in str(server.seen[-1].body[under])
    assert len(list(session.messages())) >= 80
    assert session.verify() == []


def test_a_compaction_that_failed_changes_nothing():
    """Its content is null."""
    session = opened(Anthropic(), "native")
    session.add("hi")
    session.add(
        {"role": "assistant", "content": [{"type": "compaction", "content": None}, {"type": "text", "text": "ho"}]}
    )
    assert session.folds == []


def test_a_provider_that_offers_nothing_gets_the_sliding_window():
    """OpenAI's chats have no context management."""
    session = opened(Chat(), "native")
    server = run(Chat(), session, 30)
    assert {fold.strategy for fold in session.folds} == {"sliding-window"}
    assert all("context_management" not in each.body for each in server.seen)


def test_above_the_budget_the_sliding_window_takes_over():
    """A user pastes more at once than the provider would ever see."""
    session = opened(Anthropic(), "native")
    for number in range(30):
        session.add(f"question {number} " + "word " * 100)
        session.add({"role": "assistant", "content": "well"})
    session.add("and now?")
    payload = session.compose_sync()
    assert payload.tokens <= WINDOW
    assert session.folds[0].strategy == "sliding-window"


def test_what_the_caller_states_itself_is_not_overruled():
    """Its own context management, and its own beta header."""
    session = opened(Anthropic(), "native")
    own = {"edits": [{"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 1_000}}]}
    with Server(window=WINDOW) as server, anthropic.Anthropic(base_url=server.url, api_key="none") as plain:
        windowsill.wrap(plain, session).beta.messages.create(
            model="claude-sonnet-4-6",
            max_tokens=9,
            messages=[Anthropic().user("hi")],
            context_management=own,
            betas=["context-management-2025-06-27", "mine-2026-01-01"],
        )
    assert server.seen[0].body["context_management"] == own
    assert "mine-2026-01-01" in server.seen[0].headers["anthropic-beta"]


def test_without_wrap_the_payload_has_the_fields_and_the_headers():
    """For programs that call the client themselves."""
    session = opened(Anthropic(), "native")
    session.add("hi")
    payload = session.compose_sync()
    with Server(window=WINDOW) as server, anthropic.Anthropic(base_url=server.url, api_key="none") as client:
        client.beta.messages.create(max_tokens=9, **payload.to(), extra_headers=payload.headers)
    assert server.refused == []
    assert server.seen[0].body["context_management"]["edits"][0]["type"] == "clear_tool_uses_20250919"


def test_in_another_format_the_fields_stay_behind():
    """A payload that is sent elsewhere in the end."""
    session = opened(Anthropic(), "native")
    session.add("hi")
    assert "context_management" not in session.compose_sync().to("openai")


def test_compaction_is_not_asked_for_below_what_the_provider_takes():
    """Anthropic refuses a trigger below 50,000 tokens."""
    small = Native().ask("anthropic", Budget(limit=40_000, high=30_000, low=20_000, fixed=0))
    large = Native().ask("anthropic", Budget(limit=180_000, high=160_000, low=100_000, fixed=0))
    kinds = [[edit["type"] for edit in asking.fields["context_management"]["edits"]] for asking in (small, large)]
    assert kinds == [["clear_tool_uses_20250919"], ["clear_tool_uses_20250919", "compact_20260112"]]
    assert large.headers == {"anthropic-beta": "context-management-2025-06-27,compact-2026-01-12"}


def test_every_setting_has_its_effect_on_the_request():
    """And a wrong one is refused by name."""
    asking = strategies.get("native:keep=7,clear_at_least=500,smallest=0,instructions=Keep names").ask(
        "anthropic", Budget(limit=2_000, high=1_000, low=500, fixed=0)
    )
    clearing, compaction = asking.fields["context_management"]["edits"]
    assert clearing["keep"]["value"] == 7
    assert clearing["clear_at_least"]["value"] == 500
    assert clearing["trigger"]["value"] == 1_000
    assert compaction["trigger"]["value"] == 1_500
    assert compaction["instructions"] == "Keep names"
    with pytest.raises(SettingError, match="keep"):
        strategies.get("native:keep=-1")


def test_a_compacted_conversation_goes_on_with_another_provider():
    """What only Anthropic can read is told as what it was."""
    session = opened(Anthropic(), Native(clear=False, smallest=0))
    run(Anthropic(), session, 26, summarise=lambda _: "Many files were read.")
    with Server(window=WINDOW) as server, openai.OpenAI(base_url=server.url + "/v1", api_key="none") as plain:
        client = windowsill.wrap(plain, session, resends=False)
        client.chat.completions.create(model="gpt-5", messages=[Chat().user("go on")])
    assert server.refused == []
    assert "Many files were read." in str(server.seen[0].body["messages"])
