"""A client that keeps its own list: where it goes on in the session, and what is new in it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations import call, result, text_block, thinking, tool, use
from support.sessions import TASK, opened, talk
from windowsill import NotFoundError, providers
from windowsill.messages import Request
from windowsill.session.client_history import client_history

pytestmark = pytest.mark.unit

REPLY = {"type": "message", "role": "assistant", "content": [thinking(), text_block("let me look"), use("c1")]}


def user(text):
    return {"role": "user", "content": text}


def says(text):
    return {"role": "assistant", "content": text}


def resumed(session, messages, *, format="anthropic", resends=True, **fields):
    """Send a list as a client would; the messages that go out."""
    request = providers.read_request({"model": "claude-sonnet-4-5", "messages": messages, **fields}, format=format)
    sent = client_history(session).resume(request, resends=resends)
    return msgspec.json.decode(sent.payload.body(cache=False))["messages"]


def texts(session):
    """The words of the current branch, without those of calls and results."""
    return [message.text for message in session.messages()]


def test_a_list_that_is_sent_again_adds_only_what_is_new():
    """The usual client: its list grows by an answer and a question each time."""
    session = opened()
    resumed(session, [user("one")])
    session.add(says("two"))
    sent = resumed(session, [user("one"), says("two"), user("three")])
    assert texts(session) == ["one", "two", "three"]
    assert len(sent) == 3
    assert len(session.branches) == 1


def test_a_client_that_sends_only_the_new_message_sees_the_whole_conversation():
    """The session holds the rest."""
    session = opened()
    resumed(session, [user("one")])
    session.add(says("two"))
    assert [each["content"] for each in resumed(session, [user("three")], resends=False)] == ["one", "two", "three"]


@pytest.mark.parametrize(
    "echo",
    [
        {"role": "assistant", "content": [text_block("let me look"), use("c1")]},
        {"role": "assistant", "content": [text_block("let me "), text_block("look"), use("c1")]},
        {"role": "assistant", "content": [{**text_block("let me look\n"), "citations": None}, use("c1")]},
    ],
    ids=["without reasoning", "words in pieces", "nulls and white space"],
)
def test_an_answer_given_back_otherwise_is_the_same_answer(echo):
    """What the provider said is kept and sent, not what is left of it in the client's list."""
    session = opened()
    resumed(session, [user("one")])
    session.add(REPLY)
    sent = resumed(session, [user("one"), echo, {"role": "user", "content": [result("c1")]}])
    assert len(session.branches) == 1
    assert sent[1]["content"] == REPLY["content"]


def test_an_edited_list_becomes_a_branch_and_the_old_one_stays():
    """The user changed an earlier question."""
    session = opened()
    resumed(session, [user("one")])
    session.add(says("two"))
    resumed(session, [user("one"), says("two"), user("three")])
    session.add(says("four"))
    sent = resumed(session, [user("one"), says("two"), user("another three")])
    assert [each["content"] for each in sent] == ["one", "two", "another three"]
    assert sorted(branch.messages for branch in session.branches if branch.messages > 2) == [3, 4]


@pytest.mark.parametrize("kept", [0, 1], ids=["only the latest", "the task and the latest"])
def test_a_client_that_drops_its_oldest_messages_stays_in_its_conversation(kept):
    """People trim. Here the rest is kept, so the model sees it as far as it fits."""
    session = opened(budget=100_000)
    whole = [user(TASK)]
    for number in range(12):
        sent = resumed(session, [*whole[:kept], *whole[kept:][-6:]])
        assert len(sent) == len(whole)
        answer = says(f"answer {number}")
        session.add(answer)
        whole += [answer, user(f"question {number}")]
    assert len(session.branches) == 1
    assert texts(session) == [message["content"] for message in whole[:-1]]


def test_a_list_with_a_message_nobody_knows_in_front_is_another_conversation():
    """A client that wrote a summary of its own wants the model to see that."""
    session = opened(budget=100_000)
    whole = [user(TASK), says("a"), user("b"), says("c")]
    resumed(session, [*whole, user("d")])
    session.add(says("e"))
    summary = user("Summary: the login page was mended.")
    sent = resumed(session, [summary, says("c"), user("d"), says("e"), user("f")])
    assert [message["content"] for message in sent] == [summary["content"], "c", "d", "e", "f"]


def test_a_client_may_return_to_the_branch_it_left():
    """Both ways on stay known."""
    session = opened()
    for messages in ([user("a")], [user("a"), says("b"), user("c")], [user("a"), says("b"), user("d")]):
        resumed(session, messages)
        session.add(says(f"to {messages[-1]['content']}"))
    resumed(session, [user("a"), says("b"), user("c"), says("to c"), user("e")])
    assert texts(session) == ["a", "b", "c", "to c", "e"]


def test_a_side_conversation_does_not_disturb_the_main_one():
    """An agent asks for a title in between, with the same client."""
    session = opened()
    resumed(session, [user(TASK)])
    session.add(says("on it"))
    resumed(session, [user(TASK), says("on it"), user("go on")])
    session.add(says("done"))
    assert resumed(session, [user("Give this a title.")]) == [user("Give this a title.")]
    session.add(says("Login"))
    resumed(session, [user(TASK), says("on it"), user("go on"), says("done"), user("thanks")])
    assert texts(session) == [TASK, "on it", "go on", "done", "thanks"]


def test_an_answer_that_comes_late_goes_where_its_question_is():
    """Two calls at the same time, through one session."""
    session = opened()
    first = client_history(session).resume(providers.read_request([user("one")], format="anthropic"), resends=True)
    other = client_history(session).resume(providers.read_request([user("side")], format="anthropic"), resends=True)
    session.add(says("two"), after=first.last)
    assert texts(session) == ["one", "two"]
    session.add(says("beside"), after=other.last)
    assert texts(session) == ["side", "beside"]


@pytest.mark.parametrize("resends", [True, False])
def test_the_same_call_made_again_adds_nothing(resends):
    """A client retries after a failure, whichever way it sends."""
    session = opened()
    talk(session, 2)
    session.add(says("done"))
    whole = [msgspec.json.decode(message.raw) for message in session.messages()]
    messages = [*whole, user("more")] if resends else [user("more")]
    for _ in range(3):
        resumed(session, messages, resends=resends)
    assert texts(session).count("more") == 1
    assert len(session.branches) == 1


@pytest.mark.parametrize("resends", [True, False])
def test_a_call_made_again_after_a_broken_answer_leaves_the_pieces_on_a_branch(resends):
    """What arrived is kept, and is not what the model sees."""
    session = opened()
    resumed(session, [user("one")], resends=resends)
    session.add(says("tw"), metadata={"partial": True})
    assert resumed(session, [user("one")], resends=resends) == [user("one")]
    assert [branch.messages for branch in session.branches] == [1, 2]


def test_the_same_words_said_again_later_are_new():
    """A user may say yes twice."""
    session = opened()
    for words in ("yes", "yes"):
        resumed(session, [user(words)], resends=False)
        session.add(says("well"))
    assert texts(session) == ["yes", "well", "yes", "well"]


def test_a_system_prompt_that_changes_is_no_edit_of_the_conversation():
    """Programs put the time of day into it."""
    session = opened(format="openai", model="gpt-5")
    for hour, messages in enumerate(([user("one")], [user("one"), says("two"), user("three")])):
        clock = {"role": "system", "content": f"It is {hour} o'clock."}
        sent = resumed(session, [clock, *messages], format="openai")
        assert sent[0] == clock
        session.add(says("two"))
    assert len(session.branches) == 1


def test_several_system_messages_at_the_start_all_go_out():
    """In one, in their order, as text, which every server takes."""
    session = opened(format="openai", model="gpt-5")
    sent = resumed(session, [{"role": "system", "content": text} for text in "ab"] + [user("one")], format="openai")
    assert sent[0]["content"] == "a\n\nb"


def test_what_windowsill_put_in_does_not_hide_where_a_client_goes_on():
    """Dynamic context stands in the history, and in no client's list."""
    session = opened()
    resumed(session, [user("one")])
    session.compose_sync(dynamic="the weather is fine")
    session.add(says("two"))
    resumed(session, [user("one"), says("two"), user("three")])
    assert texts(session) == ["one", "the weather is fine", "two", "three"]


def test_a_conversation_goes_on_in_a_session_that_was_opened_again(tmp_path):
    """By what is on disk alone."""
    with opened(tmp_path) as session:
        talk(session, 3)
        whole = [msgspec.json.decode(message.raw) for message in session.messages()]
    with opened(tmp_path) as session:
        resumed(session, [*whole, says("done"), user("thanks")])
        assert texts(session)[-2:] == ["done", "thanks"]
        assert len(session.branches) == 1


def test_parallel_results_of_chat_are_recognised_one_by_one():
    """Each is a message of its own there."""
    session = opened(format="openai", model="gpt-5")
    asks = {"role": "assistant", "content": None, "tool_calls": [call("c1"), call("c2")]}
    resumed(session, [user("one")], format="openai")
    session.add(asks)
    resumed(session, [user("one"), asks, tool("c1", "a"), tool("c2", "b")], format="openai")
    resumed(session, [user("one"), asks, tool("c1", "a"), tool("c2", "b")], format="openai")
    assert len(list(session.messages())) == 4


def test_a_response_id_stands_for_everything_before_it():
    """P7: the provider's own history is not asked for; the whole is composed here."""
    session = opened(format="responses", model="gpt-5")
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "two"}]}

    def send(words, **fields):
        request = providers.read_request({"model": "gpt-5", "input": words, **fields}, format="responses")
        return msgspec.json.decode(client_history(session).resume(request).payload.body())

    send("one")
    session.add(item, metadata={"response": "resp_1"})
    send("three", previous_response_id="resp_1")
    session.add(item, metadata={"response": "resp_2"})
    body = send("another three", previous_response_id="resp_1")
    assert "previous_response_id" not in body
    assert texts(session) == ["one", "two", "another three"]
    with pytest.raises(NotFoundError, match="resp_9"):
        send("what", previous_response_id="resp_9")


def test_the_model_of_the_request_decides_what_fits():
    """Not the one the session was opened with."""
    session = opened(budget=None, model="claude-sonnet-4-5", tokenizer=None)
    client_history(session).resume(Request(format="openai", messages=tuple(said("hi")), model="gpt-4o"))
    assert session.model.name == "gpt-4o"


def test_a_model_nobody_knows_is_measured_as_the_stated_one():
    """Such as the name of a deployment."""
    session = opened(model="gpt-5", budget=None)
    sent = client_history(session).resume(Request(format="openai", messages=tuple(said("hi")), model="my-deployment"))
    assert session.model.name == "gpt-5"
    assert sent.payload.to()["model"] == "my-deployment"


def said(*words):
    return [providers.get("openai").read_message(msgspec.json.encode(user(each)), "") for each in words]


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc")), min_size=1, max_size=12))
def test_whatever_list_a_client_sends_that_is_what_the_model_sees(edits):
    """Lists cut anywhere and continued otherwise: the request has the client's words, and nothing is lost."""
    session = opened()
    messages, everything = [], set()
    for keep, words in edits:
        messages = [*messages[: keep * 2], user(words)]
        sent = resumed(session, messages, resends=True)
        assert [each["content"] for each in sent] == [each["content"] for each in messages]
        answer = says(f"to {words}")
        session.add(answer)
        messages.append(answer)
        everything.add(tuple(each["content"] for each in messages))
    ends = {tuple(texts_at(session, branch.id)) for branch in session.branches}
    assert all(any(end[: len(each)] == each for end in ends) for each in everything)
    assert session.verify() == []


def texts_at(session, branch):
    journal = session.journal
    head = session.journal.store.find(session.id, branch).seq
    return [journal.decode(each).text for each in journal.walk(journal.path(head), kinds=("message",), bodies=True)]
