"""Which conversation a request belongs to: no word of one is ever in a request of another."""

import asyncio
import json
import threading

import anthropic
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windowsill
from support.stores import Counting
from windowsill import InputError, Session
from windowsill.clients.conversations import MOST_OPEN, Conversations
from windowsill.clients.exchange import Exchange, Route
from windowsill.session.export import export_session, import_session
from windowsill.store.memory import MemoryStore
from windowsill.testing import Answer, Server

pytestmark = pytest.mark.unit

CHAT = Route("openai")
USERS = 50


def user(text):
    return {"role": "user", "content": text}


def says(text):
    return {"role": "assistant", "content": text}


def begin(conversations, messages, **fields):
    """A call that waits for its answer, and the texts that went out."""
    body = {"model": "gpt-5", "messages": messages, **fields}
    exchange = Exchange(conversations, CHAT, json.dumps(body).encode())
    return exchange, [message["content"] for message in json.loads(exchange.request())["messages"]]


def answer(exchange, text):
    choice = {"index": 0, "message": says(text), "finish_reason": "stop"}
    exchange.answer(200, json.dumps({"choices": [choice]}).encode())


def ask(conversations, messages, text="ok", **fields):
    """One call and its answer; the texts that went out."""
    exchange, sent = begin(conversations, messages, **fields)
    answer(exchange, text)
    return sent


def texts(session):
    return [message.text for message in session.messages()]


def stored(store):
    """Return what each session of a store holds on all its branches."""
    found = []
    for info in store.sessions():
        journal = Session.open(info.id, store=store).journal
        found.append(
            [
                journal.decode(each).text
                for each in journal.walk([(1, journal.version)], kinds=("message",), bodies=True)
            ]
        )
    return sorted(found)


def in_store(store):
    return Conversations(None, store=store)


def in_session(store):
    return Conversations(Session.open("main", model="gpt-5", store=store))


BOTH = pytest.mark.parametrize("kind", [in_store, in_session], ids=["store", "session"])


@BOTH
def test_calls_that_have_nothing_in_common_are_conversations_of_their_own(kind):
    """Five classifications through one client: no mail is in the request for another."""
    store = MemoryStore()
    client = kind(store)
    for number in range(5):
        assert ask(client, [user(f"mail {number}")], "spam") == [f"mail {number}"]
    assert stored(store) == [[f"mail {number}", "spam"] for number in range(5)]


@BOTH
def test_two_threads_of_a_framework_stay_apart(kind):
    """Each user's list goes on in the session that began with it, turn by turn."""
    store = MemoryStore()
    client = kind(store)
    lists = {name: [user(f"I am {name}")] for name in ("alice", "bob")}
    for turn in range(3):
        for name, messages in lists.items():
            assert ask(client, messages, f"hello {name} {turn}") == [each["content"] for each in messages]
            messages += [says(f"hello {name} {turn}"), user(f"{name} goes on {turn}")]
    assert [len(each) for each in stored(store)] == [6, 6]


def test_a_conversation_is_recognised_by_another_client_of_the_same_store():
    """Also after a restart, in the middle of many others."""
    store = MemoryStore()
    for number in range(20):
        ask(in_store(store), [user(f"question {number}")], f"answer {number}")
    ask(in_store(store), [user("question 7"), says("answer 7"), user("and?")], "more")
    assert len(store.sessions()) == 20
    assert ["question 7", "answer 7", "and?", "more"] in stored(store)


def looked_at(sessions, turns):
    """Return what the store gives out for one more turn, with so many sessions and a conversation of so many turns."""
    store = Counting()
    for number in range(sessions):
        ask(in_store(store), [user(f"question {number}")])
    messages = [user("the long one")]
    client = in_store(store)
    for turn in range(turns):
        ask(client, messages, f"answer {turn}")
        messages += [says(f"answer {turn}"), user(f"more {turn}")]
    store.given = 0
    ask(client, messages)
    return store.given


@pytest.mark.growth
def test_finding_a_conversation_grows_neither_with_the_sessions_nor_with_the_history():
    """The store has an index of where every conversation stands."""
    few = looked_at(2, 4)
    assert looked_at(200, 4) == few
    assert looked_at(2, 100) <= few + 16


def test_a_first_question_that_was_answered_before_begins_a_session_of_its_own():
    """Two users who greet the model with the same word are two users."""
    store = MemoryStore()
    client = in_store(store)
    for pin in ("5555", "3333"):
        assert ask(client, [user("hi")], "hello") == ["hi"]
        assert ask(client, [user("hi"), says("hello"), user(f"my PIN is {pin}")]) == ["hi", "hello", f"my PIN is {pin}"]
    assert stored(store) == [["hi", "hello", f"my PIN is {pin}", "ok"] for pin in ("3333", "5555")]


def test_examples_that_all_lists_begin_with_do_not_join_them():
    """What no model answered here is no conversation."""
    store = MemoryStore()
    examples = [user("2+2"), says("4"), user("3+3"), says("6")]
    for number in range(3):
        ask(in_store(store), [*examples, user(f"sum {number}")])
    assert [len(each) for each in stored(store)] == [6, 6, 6]


def test_a_call_that_is_made_again_is_in_one_session():
    """The answer to the first did not come."""
    store = MemoryStore()
    for _ in range(3):
        exchange, _ = begin(in_store(store), [user("hi")])
        exchange.answer(500, b"")
    ask(in_store(store), [user("hi")], "hello")
    assert stored(store) == [["hi", "hello"]]


def test_an_edited_list_is_a_branch_of_its_conversation():
    """An answer is in both; what was left out is not sent."""
    store = MemoryStore()
    ask(in_store(store), [user("one")], "two")
    ask(in_store(store), [user("one"), says("two"), user("three")], "four")
    assert ask(in_store(store), [user("one"), says("two"), user("3")]) == ["one", "two", "3"]
    assert len(store.sessions()) == 1


@pytest.mark.parametrize("reminder", [[], [{"role": "system", "content": "Keep the rules."}]])
@pytest.mark.parametrize("words", ["", "\n\nKeep the rules."])
@pytest.mark.parametrize("examples", [[], [user("An example"), says("So.")]])
@pytest.mark.parametrize("starts_again", [False, True], ids=["one run", "starts again"])
def test_a_reminder_that_a_client_takes_back_does_not_begin_another_conversation(
    reminder, words, examples, starts_again
):
    """Behind the last question, in its words or in a message: the next list has neither, and goes on all the same."""
    store = MemoryStore()
    conversations = Conversations(None, store=store)
    told = [*examples]
    for number in range(5):
        if starts_again:
            conversations.close()
            conversations = Conversations(None, store=store)
        question = f"Question {number}"
        sent = ask(conversations, [*told, user(question + words), *reminder], f"Answer {number}")
        assert [text.removesuffix("\n\nKeep the rules.") for text in sent if text != "Keep the rules."] == [
            *(each["content"] for each in told),
            question,
        ]
        told += [user(question), says(f"Answer {number}")]
    assert len(store.sessions()) == 1


def test_an_answer_alone_does_not_join_two_conversations():
    """Another question with the same answer, the beginning of one, or another system prompt: another conversation."""
    store = MemoryStore()
    conversations = Conversations(None, store=store)
    ask(conversations, [user("Question one\n\nKeep the rules.")], "Yes")
    ask(conversations, [user("Question two"), says("Yes"), user("Go on")])
    system = {"role": "system", "content": "You are somebody else entirely."}
    ask(conversations, [system, user("Question one"), says("Yes"), user("Go on")])
    ask(conversations, [user("Question"), says("Yes"), user("Go on")])
    assert len(store.sessions()) == 4


def test_a_regenerated_first_answer_does_not_double_the_question():
    """In the session of the client it is a branch."""
    store = MemoryStore()
    client = in_session(store)
    for text in ("first", "second"):
        assert ask(client, [user("hi")], text) == ["hi"]
    assert ask(client, [user("hi"), says("second"), user("go on")]) == ["hi", "second", "go on"]
    assert texts(Session.open("main", store=store)) == ["hi", "second", "go on", "ok"]
    assert len(store.sessions()) == 1


@pytest.mark.parametrize(
    "aside",
    [
        {"messages": [{"role": "system", "content": "Write a title."}, user("Mend the login.")]},
        {"messages": [user("Mend the login.")], "response_format": {"type": "json_object"}},
        {"messages": [user("Mend the login.")], "tools": [{"type": "function", "function": {"name": "title"}}]},
        {"messages": [user("Write a title for: Mend the login.")]},
    ],
    ids=["system prompt", "schema", "tools", "words"],
)
def test_a_side_question_is_recorded_apart_from_the_session(aside):
    """The session of the client holds the conversation, before and after."""
    store = MemoryStore()
    session = Session.open("main", model="gpt-5", store=store)
    client = Conversations(session)
    whole = [{"role": "system", "content": "You are an agent that works at 10:31."}, user("Mend the login.")]
    ask(client, whole, "done")
    fields = {name: value for name, value in aside.items() if name != "messages"}
    ask(client, aside["messages"], "Login", **fields)
    assert texts(session) == ["Mend the login.", "done"]
    whole[0] = {"role": "system", "content": "You are an agent that works at 10:32."}
    ask(client, [*whole, says("done"), user("thanks")])
    assert texts(session) == ["Mend the login.", "done", "thanks", "ok"]
    assert len(session.branches) == 1
    assert [info.id.partition("/")[0] for info in store.sessions()] == ["main", "main"]


def test_a_clock_in_the_system_prompt_does_not_make_a_retry_another_conversation():
    """The two prompts are the same but for the time."""
    session = Session.open("main", model="gpt-5", store=MemoryStore())
    for minute in range(3):
        system = {"role": "system", "content": f"You are a clerk. It is 10:0{minute}. Be kind."}
        ask(Conversations(session), [system, user("hi")], f"answer {minute}")
    assert texts(session) == ["hi", "answer 2"]


def test_a_side_conversation_has_the_settings_of_the_session():
    """Its requests fit the same budget."""
    session = Session.open("main", model="gpt-5", budget=5_000, store=MemoryStore())
    client = Conversations(session)
    ask(client, [user("hi")])
    sent = ask(client, [user("word " * 1_000) for _ in range(20)])
    assert sum(map(len, sent)) < 30_000


def test_a_response_id_is_found_in_whatever_session_it_is():
    """A client of OpenAI's Responses that names no session."""
    store = MemoryStore()

    def respond(text, **fields):
        body = {"model": "gpt-5", "input": text, **fields}
        exchange = Exchange(in_store(store), Route("responses"), json.dumps(body).encode())
        sent = json.loads(exchange.request())
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"to {text}"}]}
        exchange.answer(200, json.dumps({"id": f"resp_{text}", "object": "response", "output": [item]}).encode())
        return json.dumps(sent)

    respond("tea")
    respond("rain")
    sent = respond("more", previous_response_id="resp_tea")
    assert "to tea" in sent
    assert "rain" not in sent
    assert [len(each) for each in stored(store)] == [2, 4]


# Conversations that the program names


def test_a_function_names_the_session_of_a_request():
    """It gets the body; `None` leaves the choice to the list."""
    store = MemoryStore()
    client = Conversations(lambda body: body.get("user"), store=store)
    for name in ("alice", "bob", None):
        ask(client, [user("hi")], f"hello {name}", user=name)
        ask(client, [user("hi"), says(f"hello {name}"), user("bye")], user=name)
    assert {info.id for info in store.sessions()} > {"alice", "bob"}
    assert texts(Session.open("bob", store=store)) == ["hi", "hello bob", "bye", "ok"]
    assert len(store.sessions()) == 3


@pytest.mark.parametrize("kind", [in_store, in_session], ids=["store", "session"])
def test_a_block_names_the_session_of_the_calls_inside_it(kind):
    """Outside of it nothing is named; a side question inside is recorded apart."""
    store = MemoryStore()
    client = kind(store)
    with windowsill.conversation("alice"):
        ask(client, [user("hi")], "hello alice")
        with windowsill.conversation("bob"):
            ask(client, [user("hi")], "hello bob")
        ask(client, [user("A title?")], "Greeting")
    ask(client, [user("hi")], "hello")
    assert texts(Session.open("alice", store=store)) == ["hi", "hello alice"]
    assert texts(Session.open("bob", store=store)) == ["hi", "hello bob"]
    assert len(store.sessions()) == 4


def test_a_client_that_sends_only_what_is_new_must_name_its_session():
    """Nothing in its list says which it is."""
    client = Conversations(None, store=MemoryStore(), resends=False)
    with pytest.raises(InputError, match="only what is new"):
        ask(client, [user("hi")])
    with windowsill.conversation("alice"):
        ask(client, [user("hi")], "hello")
        assert ask(client, [user("and?")]) == ["hi", "hello", "and?"]


def test_a_list_that_was_trimmed_goes_on_where_its_session_is_named():
    """Nothing else could find its beginning."""
    store = MemoryStore()
    messages = [user("the task")]
    with windowsill.conversation("alice"):
        for turn in range(6):
            sent = ask(in_store(store), messages[-6:], f"answer {turn}")
            messages += [says(f"answer {turn}"), user(f"more {turn}")]
    assert len(sent) == 11
    assert len(store.sessions()) == 1


def test_a_list_that_is_the_end_of_another_conversation_word_for_word_is_its_own():
    """It began with these words in a session beside."""
    session = Session.open("main", model="gpt-5", store=MemoryStore())
    client = Conversations(session)
    for start in (["a secret", "noted"], []):
        talk = [user(text) if place % 2 == 0 else says(text) for place, text in enumerate(start)]
        for _ in range(3):
            talk.append(user("go on"))
            assert ask(client, talk, "ok") == [each["content"] for each in talk]
            talk.append(says("ok"))
    assert len(texts(session)) == 8


def test_what_stands_beside_a_named_session_is_not_put_into_anothers():
    """Two users who greet the model alike, one of them aside from what they began with."""
    store = MemoryStore()
    client = in_store(store)
    with windowsill.conversation("alice"):
        ask(client, [user("hi")], "hello")
    with windowsill.conversation("bob"):
        ask(client, [user("the weather?")], "fine")
        ask(client, [user("hi")], "hello")
        ask(client, [user("hi"), says("hello"), user("bob's PIN is 5")])
    assert texts(Session.open("alice", store=store)) == ["hi", "hello"]
    assert texts(Session.open("bob", store=store)) == ["the weather?", "fine"]
    assert ["hi", "hello", "bob's PIN is 5", "ok"] in stored(store)


def test_more_sessions_than_are_kept_open():
    """One that was closed is opened again."""
    store = MemoryStore()
    client = in_store(store)
    for turn in range(2):
        for number in range(MOST_OPEN + 5):
            talk = [user(f"question {number}"), says("answer 0"), user("more")][: 1 + 2 * turn]
            assert ask(client, talk, f"answer {turn}") == [each["content"] for each in talk]
    assert [len(each) for each in stored(store)] == [4] * (MOST_OPEN + 5)


# Any order of calls and answers

STEPS = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from(["ask", "answer", "fail", "regenerate", "edit", "title", "restart", "trim"])
    ),
    max_size=40,
)


class Person:
    """A user of a program: their list, and the call that waits for its answer. All begin with the same word."""

    def __init__(self, name):
        self.name = name
        self.waiting = None
        self.turn = 0
        self.messages = [user("hi")]

    def step(self, client, action):
        """Do something; the texts that were to go out and those that did, where a call was made."""
        if action == "answer" and self.waiting is not None:
            exchange, self.waiting = self.waiting, None
            # Half of the answers are the same for everybody.
            text = f"answer {self.turn}" if self.turn % 2 else f"answer {self.turn} for {self.name}"
            answer(exchange, text)
            self.turn += 1
            self.messages = [*self.messages, says(text), user(f"{self.name} says {self.turn}")]
        elif action == "fail" and self.waiting is not None:
            exchange, self.waiting = self.waiting, None
            exchange.answer(500, b"")
        elif action == "title":
            asked = [user(f"A title for {self.name}")]
            return asked, ask(client, asked, "Title")
        elif self.waiting is None and action in ("ask", "regenerate", "edit", "restart", "trim"):
            if action == "regenerate":
                self.messages = self.messages[:-2] or self.messages
            elif action == "edit":
                self.messages = [*self.messages[:-1], user(f"{self.name} says otherwise")]
            elif action == "restart":
                self.messages = [user("hi")]
            elif action == "trim":
                self.messages = self.messages[-3:]
            self.waiting, sent = begin(client, self.messages)
            return self.messages, sent
        return None


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(STEPS, st.sampled_from([in_store, in_session]), st.booleans())
def test_no_word_of_one_user_is_ever_in_a_request_of_another(steps, kind, named):
    """Whatever the order of calls, answers, failures, edits and side questions of four users of one client."""
    client = kind(MemoryStore())
    people = [Person(name) for name in ("ada", "bob", "cid", "dan")]
    for number, action in steps:
        person = people[number]
        if named:
            with windowsill.conversation(person.name):
                found = person.step(client, action)
        else:
            found = person.step(client, action)
        if found is None:
            continue
        asked, sent = found
        assert sent[-len(asked) :] == [each["content"] for each in asked]
        others = {each.name for each in people} - {person.name}
        assert not any(name in text for name in others for text in sent)
        if not named:
            assert len(sent) == len(asked)


# The official clients


def echo(body):
    """A model that repeats who is speaking."""
    return Answer(text=f"answer for {json.dumps(body['messages'])[-60:]}")


def check(server, turns):
    """Every request is what one user sent, and nothing else."""
    requests = [json.dumps(each.body["messages"]) for each in server.seen]
    assert len(requests) == USERS * turns
    assert all(sum(f"<{number}>" in text for number in range(USERS)) == 1 for text in requests)


def test_fifty_users_in_threads_share_one_client(tmp_path):
    """Anthropic's client, on disk."""
    with Server(echo) as server, anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as plain:
        client = windowsill.wrap(plain, store=tmp_path)

        def talk(number):
            messages = [user(f"<{number}>")]
            for _ in range(3):
                reply = client.messages.create(model="claude-sonnet-5", max_tokens=99, messages=messages)
                messages += [says(reply.content[0].text), user(f"<{number}> goes on")]

        threads = [threading.Thread(target=talk, args=(number,)) for number in range(USERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(server, 3)
    store = windowsill.open_store(tmp_path)
    assert [len(each) for each in stored(store)] == [6] * USERS
    store.close()


@pytest.mark.parametrize("stream", [False, True])
def test_fifty_users_in_tasks_share_one_client(stream):
    """OpenAI's asynchronous client, each task in a conversation that it names."""
    store = MemoryStore()

    async def talk(client, number):
        messages = [user(f"<{number}>")]
        with windowsill.conversation(f"user-{number}"):
            for _ in range(2):
                reply = await client.chat.completions.create(model="gpt-5", messages=messages, stream=stream)
                if stream:
                    text = "".join([piece.choices[0].delta.content or "" async for piece in reply if piece.choices])
                else:
                    text = reply.choices[0].message.content
                messages += [says(text), user(f"<{number}> goes on")]

    async def run(url):
        async with windowsill.wrap(openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none"), store) as client:
            await asyncio.gather(*(talk(client, number) for number in range(USERS)))

    with Server(echo) as server:
        asyncio.run(run(server.url))
        check(server, 2)
    assert {info.id for info in store.sessions()} == {f"user-{number}" for number in range(USERS)}
    assert [len(each) for each in stored(store)] == [4] * USERS


def test_an_imported_conversation_is_recognised():
    """It was recorded on another machine."""
    there, here = MemoryStore(), MemoryStore()
    ask(in_store(there), [user("one")], "two")
    (info,) = there.sessions()
    import_session(here, export_session(there, info.id))
    ask(in_store(here), [user("one"), says("two"), user("three")])
    assert stored(here) == [["one", "two", "three", "ok"]]
