"""The session's tools in the tool loops of the official clients: what was trimmed is read back, and nothing breaks."""

import asyncio
import functools
import json
import re
from contextlib import closing

import pytest
from anthropic import beta_async_tool, beta_tool
from google import genai

from support.client_lists import PLAIN, asks, last_calls, said, says, serve
from support.conversations import result, text_block, use
from support.wrapped_clients import SPEAKERS, Anthropic, Gemini, done
from windowsill import Session
from windowsill.messages import Message, Text, ToolResult
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

LISTING = "\n".join(f"{number:04}: value_{number}" for number in range(1, 401))
TRIMMED = re.compile(r"\[tool output trimmed; ref=(o\d+)")
LINES = "   300\\t0300: value_300"
"""The first line that the model asks for, as it stands in a request."""


class Reader:
    """A model that finds the ref of the first trimmed output, uses every tool once, and says that it is done."""

    def __init__(self, *, at_once=False):
        self._at_once = at_once
        self._steps = None
        self.ref = ""

    def __call__(self, body):
        if self._steps is None:
            self.ref = TRIMMED.search(json.dumps(body))[1]
            calls = (
                Call("tool_output_cache", {"ref_id": self.ref, "offset": 300, "limit": 2}),
                Call("tool_output_cache_grep", {"ref_id": self.ref, "pattern": "VALUE_77$", "ignore_case": True}),
                Call("history_search", {"query": "value_222", "k": 1}),
                Call("history_read", {"message_id": f"m{self.ref[1:]}", "offset": 111, "limit": 1}),
                Call("context_status"),
            )
            self._steps = iter([calls] if self._at_once else [(call,) for call in calls])
        calls = next(self._steps, ())
        return Answer(calls=calls) if calls else Answer(text="done")


def small(speaker, **settings):
    """A session that trims all but the latest output."""
    settings = {"strategy": "outputs:budget=3000,keep=1,low=0.1", "window": 40_000, **settings}
    return Session.open("s", model=speaker.model, tokenizer="o200k_base", store=":memory:", **settings)


def past(format):
    """The list of a client that read three long files, the first of them the listing."""
    outputs = [LISTING, LISTING.replace("value", "other"), "the last file"]
    steps = [
        step
        for number, output in enumerate(outputs)
        for step in (
            {"role": "assistant", "content": [text_block("I look."), use(f"c{number}")]},
            {"role": "user", "content": [result(f"c{number}", output)]},
        )
    ]
    return said(format, {"role": "user", "content": "Read the files."}, *steps, says("Read."), asks("What is in it?"))


def offering(format, session):
    """A speaker that offers the tools of a session, and the one tool that was called before."""
    speaker = PLAIN[format]()
    definitions = session.tools.definitions(format)
    if format == "gemini":
        before = speaker.config["tools"][0]["function_declarations"]
        speaker.config = {**speaker.config, "tools": [{"function_declarations": [*before, *definitions]}]}
    else:
        speaker.tools = [*speaker.tools, *definitions]
    return speaker


def check(server, session, reader):
    """No request was refused, every line came, the ref still gives the whole, and there is one conversation."""
    assert server.refused == []
    last = server.seen[-1].raw.decode()
    assert f"[tool output trimmed; ref={reader.ref}" in last
    assert LINES in last
    assert "77:0077: value_77" in last
    assert "0222: value_222" in last
    assert "   111\\t0111: value_111" in last
    assert "messages are in view" in last
    assert session.outputs.open(reader.ref).blocks[0].text == LISTING
    assert len(session.branches) == 1
    assert session.verify() == []


# A wrapped client, and its own loop


@pytest.mark.parametrize("at_once", [False, True], ids=["one-by-one", "parallel"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", SPEAKERS)
def test_a_model_reads_back_what_was_trimmed(name, stream, at_once):
    """Each client resends its list, with the tools' answers in its own format, until the model has what it wants."""
    kind, later = SPEAKERS[name]
    format = name.removesuffix("-async").replace("chat", "openai")
    session = small(kind)
    speaker = offering(format, session)
    reader = Reader(at_once=at_once)

    async def run(client):
        ask = functools.partial(speaker.ask, later=later) if format == "gemini" else speaker.ask
        messages = past(format)
        reply = await ask(client, messages, stream=stream)
        while calls := last_calls(session):
            messages += speaker.said(reply)
            each = [
                speaker.results([call], session.tools.call(call.name, call.arguments).text, picture=False)
                for call in calls
            ]
            messages += [message for results in each for message in results]
            reply = await ask(client, messages, stream=stream)
        return speaker.text(reply)

    with Server(reader) as server:
        assert serve(speaker, session, server, run, later=later) == "done"
    check(server, session, reader)
    assert len(server.seen) == (2 if at_once else 6)


# A composed request, and an ordinary client


def send(format, client, body):
    """One request as a program makes it from `payload.to()`."""
    if format == "anthropic":
        return client.messages.create(max_tokens=256, **body)
    if format == "openai":
        return client.chat.completions.create(**body)
    if format == "responses":
        return client.responses.create(store=False, **body)
    return client.models.generate_content(
        model=Gemini.model, contents=body["contents"], config={"tools": body["tools"]}
    )


def compose(session, format, speaker):
    """The next request, with the tools of the session and the one that was called before."""
    before = speaker.config["tools"] if format == "gemini" else speaker.tools
    return session.compose_sync(tools=[*before, *session.tools.definitions(format)], format=format).to()


@pytest.mark.parametrize("at_once", [False, True], ids=["one-by-one", "parallel"])
@pytest.mark.parametrize("format", PLAIN)
def test_a_composed_loop_answers_the_calls_with_one_line(format, at_once):
    """The reply is added, `answer` runs its calls, and what it gives is added: the request is valid each time."""
    speaker, reader = PLAIN[format](), Reader(at_once=at_once)
    session = small(speaker, format=format)
    session.extend(past(format))
    with Server(reader) as server, closing(speaker.client(server.url, later=False)) as client:
        while True:
            id = session.add(send(format, client, compose(session, format, speaker)))
            answered = session.tools.answer()
            if answered is None:
                break
            session.add(answered)
    assert session.message(id).text == "done"
    check(server, session, reader)


@pytest.mark.parametrize("ours_first", [False, True], ids=["theirs-first", "ours-first"])
@pytest.mark.parametrize("format", PLAIN)
def test_calls_of_other_tools_beside_ours_are_answered_by_their_owner(format, ours_first):
    """One reply calls both kinds; the two messages with results are one valid turn, whichever is added first."""
    speaker = PLAIN[format]()
    session = small(speaker, format=format)
    session.extend(past(format))
    ref = TRIMMED.search(json.dumps(compose(session, format, speaker)))[1]
    calls = (Call("read", {"path": "d.py"}), Call("tool_output_cache", {"ref_id": ref, "offset": 300, "limit": 1}))
    answers = iter([Answer(calls=calls), Answer(text="done")])
    with Server(lambda _: next(answers)) as server, closing(speaker.client(server.url, later=False)) as client:
        session.add(send(format, client, compose(session, format, speaker)))
        theirs, ours = last_calls(session)
        own = ToolResult(tool_use_id=theirs.id, name="read", content=(Text(text="the fourth file"),))
        both = [Message(role="user", blocks=(own,)), session.tools.answer([theirs, ours])]
        for message in reversed(both) if ours_first else both:
            session.add(message)
        session.add(send(format, client, compose(session, format, speaker)))
    assert server.refused == []
    last = server.seen[-1].raw.decode()
    assert LINES in last
    assert "the fourth file" in last


# SDKs that take functions


def read(path: str) -> str:
    """Read a file."""
    return path


def later_tool(function):
    """A function of the session as Anthropic's asynchronous runner takes it."""

    @functools.wraps(function)
    async def run(**given):
        return await asyncio.to_thread(function, **given)

    return beta_async_tool(run)


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_anthropics_tool_runner_takes_the_functions(later, stream):
    """Its schemas come from their signatures; with its whole list in each request, it runs them until all is done."""
    speaker, reader = Anthropic(), Reader()
    session = small(speaker)
    tools = [later_tool(each) if later else beta_tool(each) for each in session.tools.functions]
    fields = {"model": speaker.model, "max_tokens": 256, "messages": past("anthropic"), "stream": stream}

    async def run(client):
        runner = client.beta.messages.tool_runner(tools=[*tools, *speaker.tools], thread=False, **fields)
        return (await done(runner.until_done())).content[0].text

    with Server(reader) as server:
        assert serve(speaker, session, server, run, later=later) == "done"
    check(server, session, reader)
    assert len(server.seen) == 6


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
def test_anthropics_tool_runner_may_leave_the_history_to_a_thread(later):
    """Its default: a `continue` has only what is new, without system prompt and tools; the whole is composed here."""
    speaker, reader = Anthropic(), Reader()
    session = small(speaker)
    tools = [later_tool(each) if later else beta_tool(each) for each in session.tools.functions]
    fields = {"model": speaker.model, "max_tokens": 256, "system": "Be brief.", "messages": past("anthropic")}

    async def run(client):
        runner = client.beta.messages.tool_runner(tools=[*tools, *speaker.tools], **fields)
        return (await done(runner.until_done())).content[0].text

    with Server(reader) as server:
        assert serve(speaker, session, server, run, later=later) == "done"
    assert [each.body.get("thread") for each in server.seen] == [None] * 6
    assert [each.body.get("system") for each in server.seen] == [server.seen[0].body["system"]] * 6
    assert [len(each.body.get("tools", ())) for each in server.seen] == [6] * 6
    check(server, session, reader)


@pytest.mark.parametrize("at_once", [False, True], ids=["one-by-one", "parallel"])
@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_googles_automatic_function_calling_takes_the_functions(later, stream, at_once):
    """Its declarations come from their signatures, and it calls them until the model is done."""
    speaker, reader = Gemini(), Reader(at_once=at_once)
    session = small(speaker)
    speaker.config = genai.types.GenerateContentConfig(tools=[*session.tools.functions, read])

    async def run(client):
        return speaker.text(await speaker.ask(client, past("gemini"), stream=stream, later=later))

    with Server(reader) as server:
        assert serve(speaker, session, server, run, later=later) == "done"
    check(server, session, reader)
    assert len(server.seen) == (2 if at_once else 6)


def test_googles_chats_take_the_functions():
    """A chat keeps its own list of what was called and answered."""
    speaker, reader = Gemini(), Reader()
    session = small(speaker)
    config = genai.types.GenerateContentConfig(tools=[*session.tools.functions, read])

    async def run(client):
        chat = client.chats.create(model=speaker.model, config=config, history=past("gemini")[:-1])
        first = chat.send_message("What is in it?").text
        return first, chat.send_message("Sure?").text

    with Server(reader) as server:
        assert serve(speaker, session, server, run) == ("done", "done")
    check(server, session, reader)
    assert [message.text for message in session.messages()][-3:] == ["done", "Sure?", "done"]


def test_functions_have_the_parameters_of_the_definitions():
    """Names, order, defaults and what is required agree, as each SDK reads them."""
    session = small(Anthropic())
    for function, definition in zip(session.tools.functions, session.tools.definitions("anthropic"), strict=True):
        for made in (beta_tool(function).to_dict()["input_schema"], googles_schema(function)):
            stated = definition["input_schema"]
            assert function.__name__ == definition["name"]
            assert described(made) == described(stated)
            assert made.get("required", []) == stated["required"]


def googles_schema(function):
    """Return what google-genai declares a function with."""
    option = {"callable": function, "api_option": "GEMINI_API"}
    declared = genai.types.FunctionDeclaration.from_callable_with_api_option(**option).parameters
    return declared.model_dump(mode="json", exclude_none=True) if declared is not None else {"properties": {}}


def described(schema):
    return [(name, each["type"].lower(), each.get("default")) for name, each in schema["properties"].items()]


def test_an_argument_that_is_null_was_not_given():
    """Clients and models fill in what they leave out."""
    tools = small(Anthropic()).tools
    assert not tools.call("context_status", "null").is_error
    assert not tools.call("history_search", {"query": "value", "k": None}).is_error
    assert "missing required field `query`" in tools.call("history_search", {"query": None}).text
