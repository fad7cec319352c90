"""What a session learns: from usage, from overflow errors, across sessions."""

import itertools

import pytest

from support.conversations import result, text_block, use
from windowsill import Session, Usage
from windowsill.history.view import sum_weights
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

OVERFLOW = "prompt is too long: 150000 tokens > 100000 maximum"


def opened(store, name="s", **settings):
    ticks = itertools.count(1)
    return Session.open(
        name, store=store, clock=lambda: float(next(ticks)), **{"model": "claude-sonnet-4-5", **settings}
    )


def talk(session, turns=10, start=0):
    session.add({"role": "user", "content": "the task"})
    for turn in range(start, start + turns):
        session.add({"role": "assistant", "content": [text_block("looking"), use(f"t{turn}")]})
        session.add({"role": "user", "content": [result(f"t{turn}", f"line {turn} " + "some plain words " * 20)]})


def reply(tokens, text="done"):
    return {
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [text_block(text)],
        "usage": {"input_tokens": tokens, "output_tokens": 5},
    }


def test_the_count_comes_closer_to_what_the_provider_reports():
    """T2: after a few turns the error is small, and shown."""
    session = opened(MemoryStore())
    talk(session)
    errors = []
    for turn in range(25):
        payload = session.compose_sync(system="mend it")
        billed = int(session.composer.context.scale.counter.count(payload.body(cache=False).decode()) * 1.3)
        errors.append(abs(payload.tokens - billed) / billed)
        session.add(reply(billed, f"step {turn}: " + "more plain words " * 20))
        session.add({"role": "user", "content": "go on, with some plain words " * 10})
    assert errors[-1] < errors[0]
    assert errors[-1] < 0.1
    assert session.composer.context.describe()["observations"] == 25
    assert session.compose_sync().report.error == session.composer.context.describe()["error_percent"]


def test_what_was_learned_is_there_for_the_next_session():
    """T2: in the same store, for the same model."""
    store = MemoryStore()
    with opened(store) as session:
        talk(session)
        session.add(reply(int(session.compose_sync().tokens * 1.2)))
        learned = session.composer.context.scale.calibration
    assert opened(store, "next").composer.context.scale.calibration == learned
    assert opened(store, "other", model="claude-haiku-4-5").composer.context.describe()["observations"] == 0


def test_a_report_that_is_exactly_what_was_counted_is_no_error():
    """Stated overhead is part of the count, so it must not be learned as a heavier tokenizer."""
    session = opened(MemoryStore(), overhead=8_000)
    talk(session)
    session.add(reply(session.compose_sync(system="mend it").tokens))
    assert session.composer.context.describe()["error_percent"] < 1


def test_usage_may_be_told_apart_from_the_reply():
    """For a program that streams and sees the usage elsewhere."""
    session = opened(MemoryStore())
    talk(session)
    tokens = session.compose_sync().tokens
    session.composer.observe(Usage(input=tokens))
    session.composer.observe({"input_tokens": 10, "cache_read_input_tokens": tokens - 10, "output_tokens": 3})
    assert session.composer.context.describe()["observations"] >= 1


def test_a_reply_in_a_list_teaches_as_well():
    """`extend` reads the usage of what it is given, as `add` does."""
    session = opened(MemoryStore())
    talk(session)
    session.extend([reply(session.compose_sync().tokens), {"role": "user", "content": "thanks"}])
    assert session.composer.context.describe()["observations"] == 1


def test_no_ratio_is_learned_where_the_count_is_exact():
    """A model's own tokenizer needs no lesson; what the provider adds is known all the same."""
    session = opened(MemoryStore(), model="gpt-4o")
    session.add({"role": "user", "content": "plain words " * 200})
    before = session.compose_sync().tokens
    session.composer.observe(Usage(input=before * 2))
    report = session.compose_sync().report
    assert report.exact
    assert (report.tokens, report.parts["unseen"]) == (before * 2, before)
    assert session.composer.context.scale.calibration.prose == 1.0


def test_an_overflow_error_teaches_a_window_that_is_remembered_and_shown():
    """T8: this session, the report, and the next session of the same store."""
    store = MemoryStore()
    session = opened(store)
    session.add("hi")
    assert session.composer.overflowed(RuntimeError(OVERFLOW)) == 100_000
    report = session.compose_sync().report
    assert (session.model.window, report.window) == (100_000, 100_000)
    assert report.limit < 100_000
    assert opened(store, "next").model.window == 100_000


def test_a_lesson_only_ever_lowers():
    """An error that names more than is known changes nothing."""
    session = opened(MemoryStore())
    session.composer.overflowed("prompt is too long: 3000000 tokens > 1000000 maximum")
    assert session.model.window == 200_000


def test_another_error_teaches_nothing():
    """Only an overflow names a window."""
    session = opened(MemoryStore())
    assert session.composer.overflowed("rate limit of 50000 tokens per minute") is None
    assert session.model.window == 200_000


def test_an_error_about_one_field_teaches_nothing():
    """Whatever number it names; a fresh session of the store has the table's window."""
    store = MemoryStore()
    assert (
        opened(store).composer.overflowed("Invalid 'metadata': maximum input length is 512 characters.", sent=90_000)
        is None
    )
    assert opened(store, "next").model.window == 200_000


def test_a_window_is_never_smaller_than_what_was_answered():
    """In this session and in the next of the store."""
    store = MemoryStore()
    with opened(store) as session:
        session.add("hi")
        session.compose_sync()
        session.add(reply(120_000))
        assert session.composer.overflowed(OVERFLOW) is None
        assert session.model.window == 200_000
    later = opened(store, "next")
    later.composer.overflowed(OVERFLOW)
    assert later.model.window == 200_000
    assert later.composer.overflowed("prompt is too long: 190000 tokens > 150000 maximum") == 150_000


def test_a_window_that_was_learned_is_told_once_with_the_way_to_forget_it(caplog):
    """Nothing else would say why requests are smaller."""
    session = opened(MemoryStore())
    for _ in range(2):
        session.composer.overflowed(OVERFLOW)
    (record,) = caplog.records
    assert "names a window of 100,000 tokens, not 200,000" in record.getMessage()
    assert "windowsill models forget claude-sonnet-4-5" in record.getMessage()


def test_a_request_that_cannot_be_made_smaller_after_an_overflow_is_sent_as_it_is():
    """The provider named no window, and half of what was sent is a guess: its error is better than ours."""
    session = opened(MemoryStore())
    session.add("hi " * 50)
    first = session.compose_sync(system="words " * 500)
    session.composer.overflowed("Your input exceeds the context window of this model.", sent=first.tokens)
    again = session.compose_sync(system="words " * 500)
    assert again.tokens == first.tokens <= again.report.limit


def test_after_an_overflow_without_a_number_a_request_may_have_what_was_answered():
    """Half of a request that was hardly larger would throw away what fits."""
    session = opened(MemoryStore())
    talk(session, 100)
    sent = session.compose_sync()
    session.add(reply(sent.tokens))
    session.add("and now?")
    session.composer.overflowed("Your input exceeds the context window of this model.", sent=sent.tokens + 10)
    assert session.compose_sync().report.limit == sent.tokens


def test_a_stated_window_wins_over_the_table_and_over_what_was_learned():
    """T8: the user always knows better."""
    store = MemoryStore()
    opened(store).composer.overflowed(OVERFLOW)
    session = opened(store, "mine", window=150_000)
    assert session.model.window == 150_000
    assert session.composer.overflowed(OVERFLOW) is None


def test_a_learned_window_binds_a_larger_budget():
    """After the provider said what it takes, asking for more would fail on every turn."""
    session = opened(MemoryStore(), budget=150_000)
    session.add("hi")
    session.composer.overflowed(OVERFLOW)
    assert session.compose_sync().report.limit <= 100_000


def test_another_model_weighs_everything_anew():
    """Framing and pictures differ between providers that share a vocabulary."""
    store = MemoryStore()
    with opened(store, model="gpt-5") as session:
        talk(session, 20)
    again = opened(store, model="claude-sonnet-4-5")
    scale = again.composer.context.scale
    assert again.view.weight == sum_weights(scale.weigh(message) for message in again.messages())


def test_what_was_learned_and_is_damaged_is_learned_again():
    """A session opens all the same."""
    store = MemoryStore()
    store.remember("calibration/claude-sonnet-4-5/o200k_base", b"nonsense")
    assert opened(store).composer.context.describe()["observations"] == 0


@pytest.mark.parametrize("kept", [b"nonsense", b"", b"-5", b"0"])
def test_a_remembered_window_that_is_damaged_is_ignored(kept):
    """The table still knows one."""
    store = MemoryStore()
    store.remember("window/claude-sonnet-4-5", kept)
    assert opened(store).model.window == 200_000
