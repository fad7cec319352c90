"""What a session tells: its requests, folds, summaries, searches and what they cost."""

import asyncio

import pytest
from opentelemetry.sdk.trace import TracerProvider

from support.conversations import text_block
from support.model_writers import ENVIRONMENT, MODELS, SUMMARY
from support.sessions import opened, talk
from support.telemetry import listening
from windowsill import FoldError, InputError, telemetry
from windowsill.summaries.model_writer import writer
from windowsill.testing import Answer, Server

pytestmark = pytest.mark.integration


@pytest.fixture
def heard():
    with listening() as found:
        yield found


def reply(**usage):
    """An answer of Anthropic's."""
    return {
        "type": "message",
        "role": "assistant",
        "content": [text_block("done")],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 100, "output_tokens": 20, **usage},
    }


def test_a_request_that_fits_is_one_span(heard):
    """Nothing is planned, written or folded; nothing says that the conversation is compacted."""
    with opened() as session:
        talk(session, 2)
        payload = session.compose_sync()
    assert heard.names == ["compose"]
    assert {name: told for name, told in heard.said("compose").items() if ".decision." not in name} == {
        "gen_ai.conversation.id": "s",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.provider.name": "anthropic",
        "windowsill.format": "anthropic",
        "windowsill.tokens": payload.tokens,
        "windowsill.window": session.model.window,
    }


@pytest.mark.parametrize(("turns", "action"), [(2, "wait"), (60, "add")])
def test_the_span_of_a_request_has_the_decision_and_its_figures(heard, turns, action):
    """Of a strategy that decides by figures, whether it waits or folds."""
    with opened(strategy="economy") as session:
        talk(session, turns)
        decision = session.compose_sync().report.decision
    told = heard.said("compose")
    assert told["windowsill.decision.action"] == action
    assert {name: told[f"windowsill.decision.{name}"] for name in decision} == decision


def test_a_fold_stands_under_the_plan_it_is_of_and_that_under_the_request(heard):
    """Compose, plan, write, fold: who did what for which request."""
    with opened(strategy="summarize") as session:
        talk(session, 30)
        session.compose_sync()
        (fold,) = session.folds
    assert heard.names == ["compose", "plan", "write", "fold"]
    assert [heard.parent(span) for span in heard.spans] == [None, "compose", "plan", "plan"]
    assert heard.said("plan")["windowsill.strategy"] == "summarize"
    assert heard.said("write") == {"windowsill.writer": "offline", "windowsill.strategy": "summarize"}
    assert heard.said("fold") == {
        "gen_ai.conversation.id": "s",
        "windowsill.fold.kind": fold.kind,
        "windowsill.strategy": "summarize",
        "windowsill.fold": fold.id,
        "windowsill.messages": heard.said("fold")["windowsill.messages"],
        "windowsill.tokens_before": fold.before,
        "windowsill.tokens_after": fold.after,
    }


def test_a_request_is_compacted_from_its_first_fold_on(heard):
    """Not only the one that made the fold: what the model reads is a compacted view until it is unfolded."""
    with opened() as session:
        talk(session, 3)
        session.compose_sync()
        fold = session.fold(session.view.items[1].id, session.view.items[4].id)
        session.compose_sync()
        session.unfold(fold)
        session.compose_sync()
    told = [span.attributes.get("gen_ai.conversation.compacted") for span in heard.spans if span.name == "compose"]
    assert told == [None, True, None]


def test_a_mask_compacts_too(heard):
    """A tool output that is cut is not what the tool gave."""
    with opened() as session:
        talk(session, 3)
        session.mask(session.view.items[2].id)
        session.compose_sync()
    assert heard.said("compose")["gen_ai.conversation.compacted"] is True


def test_folds_are_counted_with_what_they_saved(heard):
    """Those of a strategy and those by hand."""
    with opened() as session:
        talk(session, 3)
        session.fold(session.view.items[1].id, session.view.items[4].id)
        (fold,) = session.folds
    (made,) = heard.points("windowsill.folds")
    (saved,) = heard.points("windowsill.fold.tokens_saved")
    assert (made.value, made.attributes["windowsill.strategy"]) == (1, "by hand")
    assert (saved.sum, saved.count) == (fold.before - fold.after, 1)


def test_unfolding_and_going_back_are_spans(heard):
    """And how often folds were taken back is counted."""
    with opened() as session:
        talk(session, 3)
        fold = session.fold(session.view.items[1].id, session.view.items[4].id)
        heard.clear()
        session.unfold(fold)
        end = session.branches[0].id
        session.rewind(session.view.items[1].id)
        session.switch(end)
    assert heard.names == ["unfold", "rewind", "rewind"]
    assert heard.said("unfold") == {"gen_ai.conversation.id": "s", "windowsill.fold": fold}
    assert [point.value for point in heard.points("windowsill.unfolds")] == [1]


def test_an_unfold_that_fails_says_so_and_is_not_counted(heard):
    """The error is the caller's, and the span's."""
    with opened() as session:
        talk(session, 3)
        fold = session.fold(session.view.items[1].id, session.view.items[4].id)
        session.unfold(fold)
        heard.clear()
        with pytest.raises(FoldError):
            session.unfold(fold)
    assert heard.said("unfold")["error.type"] == "FoldError"
    assert [point.value for point in heard.points("windowsill.unfolds")] == [1]


def test_checkpoints_are_spans_and_counted(heard):
    """Those by hand and those that were due, with why; going back to one is a span too."""
    with opened() as session:
        talk(session, 3)
        session.checkpoint("before")
        session.checkpoints.make_if_due(force=True)
        session.restore("before")
    assert heard.names == ["checkpoint", "checkpoint", "restore"]
    assert heard.spans[0].attributes["windowsill.reason"] == "manual"
    made = {point.attributes["windowsill.reason"]: point.value for point in heard.points("windowsill.checkpoints")}
    assert made == {"manual": 1, "forced": 1}


def test_a_request_that_cannot_be_composed_says_why(heard):
    """With its duration."""
    with opened() as session, pytest.raises(InputError):
        session.compose_sync()
    assert heard.said("compose")["error.type"] == "InputError"
    (point,) = heard.points("windowsill.compose.duration")
    assert point.attributes["error.type"] == "InputError"


def test_a_search_in_the_archive_is_a_retrieval(heard):
    """What was asked is content, and left out."""
    with opened() as session:
        talk(session, 3)
        found = session.archive.retrieve("line 2 word")
    assert heard.said("retrieval archive") == {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "archive",
        "gen_ai.conversation.id": "s",
        "windowsill.scope": "session",
        "windowsill.found": len(found),
    }


def test_recall_searches_under_the_request_it_is_for(heard):
    """The search belongs to the turn."""
    with opened(recall=300, budget=50_000) as session:
        session.add("Mend the ledger.")
        session.add({"role": "assistant", "content": "`frobnicate_ledger` adds the entries up in ledger.py."})
        session.add("Go on.")
        session.add({"role": "assistant", "content": "There was nothing else in it."})
        session.fold(session.view.items[1].id, session.view.items[2].id, text="It was read.")
        session.add("What does `frobnicate_ledger` do?")
        session.compose_sync()
    assert heard.parent(heard.span("retrieval archive")) == "compose"
    assert heard.said("retrieval archive")["windowsill.found"] == 1


def test_usage_is_measured_where_the_reply_is_added(heard):
    """Tokens, the share the cache served, and dollars; once."""
    with opened() as session:
        session.add("hello")
        session.compose_sync()
        session.add(reply(cache_read_input_tokens=300))
    sums = {point.attributes["gen_ai.token.type"]: point.sum for point in heard.points("gen_ai.client.token.usage")}
    assert sums == {"input": 400, "output": 20}
    assert heard.points("windowsill.cache.hit_ratio")[0].sum == 0.75
    assert heard.points("windowsill.cost")[0].value == pytest.approx((100 * 3 + 300 * 0.3 + 20 * 15) / 1_000_000)


def test_usage_that_is_observed_is_measured_too(heard):
    """For programs that add messages without their usage."""
    with opened() as session:
        session.add("hello")
        session.compose_sync()
        session.composer.observe({"input_tokens": 10, "output_tokens": 2})
    assert [point.sum for point in heard.points("windowsill.cache.hit_ratio")] == [0.0]


def test_a_model_that_writes_is_a_call_under_its_text_under_the_plan(heard):
    """Though it writes in a thread of its own; what it used is counted."""
    with Server(lambda _: Answer(text=SUMMARY)) as server:
        asked = writer(f"openai:{MODELS['openai']}@{server.url}/v1", environment=ENVIRONMENT)
        with opened(strategy="summarize", writer=asked, wait=20.0) as session:
            talk(session, 40)
            session.compose_sync()
    chat, write = heard.spans[3], heard.spans[2]
    assert (chat.name, heard.parent(chat)) == ("chat gpt-5-mini", "write")
    assert (write.name, heard.parent(write)) == ("write", "plan")
    assert chat.attributes["gen_ai.usage.output_tokens"] > 0
    assert chat.attributes["server.address"] == "127.0.0.1"
    used = {point.attributes["gen_ai.request.model"] for point in heard.points("gen_ai.client.token.usage")}
    assert used == {"gpt-5-mini"}


def test_requests_of_an_async_program_stand_under_its_own_spans(heard):
    """Whether a model writes, in which case they are composed in a thread, or not."""
    tracer = heard.tracers.get_tracer("app")

    async def turn(session) -> None:
        with tracer.start_as_current_span("turn"):
            await session.compose()

    async def answer(prompt: str) -> str:
        return prompt[:100]

    for more in ({}, {"writer": answer}):
        with opened(**more) as session:
            talk(session, 2)
            asyncio.run(turn(session))
    assert [heard.parent(span) for span in heard.spans if span.name == "compose"] == ["turn", "turn"]


def test_a_turn_is_the_same_whether_somebody_listens_or_not():
    """Byte for byte, entry for entry."""

    def run() -> tuple[bytes, list[str]]:
        with opened(strategy="summarize") as session:
            talk(session, 30)
            body = session.compose_sync(system="You help.").body()
            return body, [event.kind for event in session.audit]

    alone = run()
    with listening():
        assert run() == alone


class Torn:
    """A processor of spans at which everything fails."""

    def on_start(self, *_, **__):
        raise ValueError("torn")

    on_end = _on_ending = shutdown = on_start


def test_a_listener_that_fails_at_everything_costs_no_turn():
    """Folding, searching and adding go on."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Torn())
    telemetry.use(tracer_provider=provider)
    try:
        with opened(strategy="summarize") as session:
            talk(session, 30)
            assert session.compose_sync().compacted
            assert session.archive.retrieve("line 2 word")
    finally:
        telemetry.use()
