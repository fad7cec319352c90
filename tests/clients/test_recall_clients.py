"""Recall through the official clients: hidden lines come back once, and no list is taken for an edited one."""

from contextlib import suppress

import anthropic
import httpx2
import openai
import pytest
from google import genai

import windowsill
from support.client_lists import PLAIN, asks, last_calls, said, says, serve
from support.conversations import result, text_block, use
from support.wrapped_clients import Anthropic, Responses
from windowsill import Session
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

NAME = "frobnicate_ledger"
DEFINITION = f"def {NAME}(entries, total_cents):"
HIDDEN = f"import os\n\n{DEFINITION}\n    checked_sum = sum(entries)\n    return checked_sum == total_cents"
OTHER = "class ParcelRegistry:\n    shelf_limit = 40\n    opened_shelves = 3\n    closed_shelves = 9"
MENTION = f"Now I change `{NAME}` in the ledger module."
RECALLED = b"[Recalled]"


def forgetful(speaker, **settings):
    """A session that hides what is old, and brings back what a step mentions."""
    settings = {"recall": 300, "budget": 1_500, **settings}
    return Session.open("s", model=speaker.model, tokenizer="o200k_base", store=":memory:", **settings)


def long_past(format):
    """The list of a client that read a file and then so much more that the file is hidden."""
    start = [asks("Mend the login page."), *turn(0, HIDDEN), *turn(21, OTHER)]
    steps = [message for number in range(1, 21) for message in turn(number, f"line {number} " + "word " * 40)]
    return said(format, *start, *steps, says("Read."), asks("Mend it now."))


def turn(number, output):
    calls = {"role": "assistant", "content": [text_block("looking"), use(f"c{number}")]}
    return [calls, {"role": "user", "content": [result(f"c{number}", output)]}]


def changing(*more):
    """A model that mentions what is hidden, makes two calls, and then says what it is told to."""
    calls = (Call("read", {"path": "a.py"}), Call("read", {"path": "b.py"}))
    answers = iter([Answer(text=MENTION, calls=calls), *more])
    return lambda _: next(answers, Answer(text="ok"))


async def failing(speaker, client, messages):
    """A call that the provider does not take this time."""
    with pytest.raises((anthropic.APIStatusError, openai.APIStatusError, genai.errors.APIError)):
        await speaker.ask(client, messages, stream=False)


@pytest.mark.parametrize("whole", [True, False], ids=["whole-list", "new-only"])
@pytest.mark.parametrize("format", PLAIN)
def test_hidden_lines_come_back_once_behind_the_results(format, whole):
    """A call that fails and is made again is the same request; what was recalled is no edit of the client's list."""
    speaker = PLAIN[format]()
    session = forgetful(speaker)

    async def run(client):
        sent = long_past(format)
        reply = await speaker.ask(client, sent, stream=False)
        for news in (
            lambda: speaker.results(last_calls(session), "fine", picture=False),
            lambda: [speaker.user("Go on.")],
        ):
            told = news()
            sent = [*sent, *speaker.said(reply), *told] if whole else told
            server.fail(529, "overloaded")
            await failing(speaker, client, sent)
            reply = await speaker.ask(client, sent, stream=False)

    with Server(changing()) as server:
        serve(speaker, session, server, run, resends=whole)
    assert server.refused == []
    first, failed, again, failed_later, last = [each.raw for each in server.seen]
    assert [raw.count(RECALLED) for raw in (first, failed, again, failed_later, last)] == [0, 1, 1, 1, 1]
    assert (failed, failed_later) == (again, last)
    assert DEFINITION in last.decode()
    assert again.rindex(b"fine") < again.index(RECALLED)
    assert len(session.branches) == 1
    assert [message.text for message in session.messages()][-3:] == ["ok", "Go on.", "ok"]
    assert session.verify() == []


def test_a_retry_brings_back_no_more_than_the_call_before_it():
    """More lines match than there is room for: the call that is made again does not get the next of them."""
    speaker = Anthropic()
    session = forgetful(speaker, recall=150)
    lines = "\n".join(f"{NAME}(number_{number}, account_{number}) is checked here" for number in range(100, 120))
    first, *rest = long_past("anthropic")
    asked = f"Now `number_103`, `number_109` and `number_115` of `{NAME}`."

    async def run(client):
        sent = [first, *said("anthropic", *turn(22, lines)), *rest, says("Read."), asks("Go on.")]
        await speaker.ask(client, sent, stream=False)
        sent += [says(asked), asks("Go on.")]
        server.fail(529, "overloaded")
        await failing(speaker, client, sent)
        await speaker.ask(client, sent, stream=False)

    with Server(lambda _: Answer(text=asked)) as server:
        serve(speaker, session, server, run)
    _, failed, again = [each.raw for each in server.seen]
    assert failed.count(RECALLED) == 1
    assert again == failed


def test_a_response_id_goes_on_behind_what_was_recalled():
    """A client of OpenAI's Responses that names the response before sends only the results."""
    speaker = Responses()
    session = forgetful(speaker)
    fields = {"model": speaker.model, "tools": speaker.tools}

    async def run(client):
        reply = client.responses.create(input=long_past("responses"), **fields)
        results = speaker.results(last_calls(session), "fine", picture=False)
        reply = client.responses.create(input=results, previous_response_id=reply.id, **fields)
        client.responses.create(input="Go on.", previous_response_id=reply.id, **fields)

    with Server(changing()) as server:
        serve(speaker, session, server, run)
    assert [each.raw.count(RECALLED) for each in server.seen] == [0, 1, 1]
    assert server.refused == []
    assert len(session.branches) == 1


def test_a_client_that_drops_its_oldest_messages_is_followed_behind_what_was_recalled():
    """The end of its list is the end of the conversation, though a message of ours stands in between."""
    speaker = Anthropic()
    session = forgetful(speaker)

    async def run(client):
        sent = long_past("anthropic")
        reply = await speaker.ask(client, sent, stream=False)
        sent += [*speaker.said(reply), *speaker.results(last_calls(session), "fine", picture=False)]
        reply = await speaker.ask(client, sent, stream=False)
        await speaker.ask(client, [*sent[-6:], *speaker.said(reply), speaker.user("Go on.")], stream=False)

    with Server(changing()) as server:
        serve(speaker, session, server, run)
    assert [each.raw.count(RECALLED) for each in server.seen] == [0, 1, 1]
    assert server.refused == []
    assert len(session.branches) == 1


@pytest.mark.parametrize("whole", [True, False], ids=["whole-list", "new-only"])
def test_an_answer_that_broke_off_behind_what_was_recalled_is_asked_for_again(whole):
    """The half answer is left on a branch of its own, and the lines are in the new request once."""
    speaker = Anthropic()
    session = forgetful(speaker)

    async def run(client):
        sent = long_past("anthropic")
        reply = await speaker.ask(client, sent, stream=False)
        results = speaker.results(last_calls(session), "fine", picture=False)
        sent = [*sent, *speaker.said(reply), *results] if whole else results
        server.break_off_after = 3
        with suppress(anthropic.APIError, httpx2.HTTPError):
            await speaker.ask(client, sent, stream=True)
        server.break_off_after = None
        return speaker.text(await speaker.ask(client, sent, stream=True))

    with Server(changing(Answer(text="half an answer is not enough"), Answer(text="ok"))) as server:
        assert serve(speaker, session, server, run, resends=whole) == "ok"
    assert server.refused == []
    assert [each.raw.count(RECALLED) for each in server.seen] == [0, 1, 1]
    assert session.verify() == []


@pytest.mark.parametrize("format", PLAIN)
def test_context_for_the_step_and_recall_go_together(format):
    """`dynamic` is recorded first; the names that the step mentions are looked for all the same."""
    speaker = PLAIN[format]()
    session = forgetful(speaker, format=format)
    session.extend(long_past(format))
    session.compose_sync(dynamic="The goal is green.")
    session.extend(said(format, says(MENTION), asks("Go on.")))
    payload = session.compose_sync(dynamic="The goal is blue.")
    assert windowsill.validate({"model": speaker.model, "max_tokens": 9, **payload.to()}, format) == []
    assert payload.body().count(RECALLED) == 1
    assert payload.body().count(b"The goal is blue.") == 1
    assert session.compose_sync(dynamic="The goal is red.").body().count(RECALLED) == 1


def test_words_of_the_user_behind_what_was_recalled_are_a_new_step():
    """Nobody answered, and the user asks for something else: that is looked for as well."""
    session = forgetful(Anthropic())
    past = long_past("anthropic")
    # The summary has room for what was read last of a file, and what it shows is not recalled.
    newer = "class PostOffice:\n" + "\n".join(f"    opening_hour_{day} = {day + 5}" for day in range(7))
    session.extend([*past[:5], *turn(22, newer), *past[5:]])
    assert b"shelf_limit = 40" not in session.compose_sync().body()
    session.extend([says(MENTION), asks("Go on.")])
    assert session.compose_sync().body().count(RECALLED) == 1
    session.add(asks("Or rather `ParcelRegistry`."))
    body = session.compose_sync().body()
    assert body.count(RECALLED) == 2
    assert b"shelf_limit = 40" in body


def test_the_same_context_for_the_step_is_recorded_once_before_what_was_recalled():
    """Composing the same step again gives the same request."""
    session = forgetful(Anthropic())
    session.extend(long_past("anthropic"))
    session.compose_sync()
    session.extend([says(MENTION), asks("Go on.")])
    first = session.compose_sync(dynamic="The goal is blue.").body()
    assert session.compose_sync(dynamic="The goal is blue.").body() == first
