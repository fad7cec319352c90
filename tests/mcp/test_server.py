"""The tools over the Model Context Protocol, with the official client, over both transports."""

import socket
import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from functools import partial

import anyio
import httpx2
import pytest
from anyio import create_task_group, run
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from support.cli_calls import call
from windowsill import Session, open_store
from windowsill.errors import SettingError
from windowsill.mcp import http_app, server
from windowsill.mcp.server import StoreToolbox, bracketed
from windowsill.session.toolbox import TOOLS

pytestmark = pytest.mark.integration


@pytest.fixture
def place(tmp_path):
    return filled(tmp_path)


def filled(place):
    with Session.open("s", model="claude-sonnet-4-5", store=place) as session:
        session.add("where is the key?")
        session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]})
        result = {"type": "tool_result", "tool_use_id": "c", "content": "drawer\nkey under the mat\n"}
        session.add({"role": "user", "content": [result]})
    return place


def arguments(place, *more: str) -> list[str]:
    return ["-m", "windowsill", "mcp", "s", "--store", str(place), *more]


async def use(client: Client) -> None:
    listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == list(TOOLS)
    read = await client.call_tool("tool_output_cache", {"ref_id": "o3", "offset": 2})
    assert (read.content[0].text, read.is_error) == ("     2\tkey under the mat", False)
    found = await client.call_tool("history_search", {"query": "mat"})
    assert "key under the mat" in found.content[0].text
    wrong = await client.call_tool("tool_output_cache_grep", {"ref_id": "o3", "pattern": "("})
    assert wrong.is_error


def test_a_client_talks_over_standard_input_and_output(place):
    """The official client lists and calls the tools of a server it starts itself."""

    async def main() -> None:
        server = StdioServerParameters(command=sys.executable, args=arguments(place))
        async with Client(stdio_client(server)) as client:
            await use(client)

    run(main)


@contextmanager
def serving(place, *more: str):
    """Serve in a process; give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, *arguments(place, "--http", "--port", str(port), *more)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            assert line == f"http://127.0.0.1:{port}/mcp\n"
            yield line.strip()
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of one server for all tests that change nothing."""
    with serving(filled(tmp_path_factory.mktemp("served"))) as found:
        yield found


def test_a_client_talks_over_streamable_http(address):
    """The official client lists and calls the tools of a server that listens on loopback."""

    async def main() -> None:
        async with Client(streamable_http_client(address)) as client:
            await use(client)

    run(main)


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
JSON = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def test_a_web_page_cannot_talk_to_it(address):
    """A foreign Host or Origin header is refused."""
    assert httpx2.post(address, json=PING, headers={**JSON, "Host": "evil.example"}).status_code == 421
    assert httpx2.post(address, json=PING, headers={**JSON, "Origin": "http://evil.example"}).status_code == 403


def test_a_stated_token_is_demanded(place):
    """Without the token there is no answer; with it the client is served."""

    async def main(address: str) -> None:
        http = httpx2.AsyncClient(headers={"Authorization": "Bearer secret"})
        async with http, Client(streamable_http_client(address, http_client=http)) as client:
            await use(client)

    with serving(place, "--token", "secret") as address:
        for stated, status in ((None, 401), ("Bearer wrong", 401), ("Basic secret", 401), ("bearer secret", 200)):
            headers = {**JSON, **({"Authorization": stated} if stated else {})}
            assert httpx2.post(address, json=PING, headers=headers).status_code == status
        run(main, address)


def ended(place, *more: str) -> tuple[int, str]:
    """Return how a server ended that could not start."""
    done = call("mcp", "s", "--store", place, "--http", *more)
    return done.code, done.err


def test_a_port_that_is_taken_is_told_in_one_line(place):
    """The work failed: the line names the address and says what to do, and no address is promised before."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, *arguments(place, "--http", "--port", port)]
        done = subprocess.run(command, capture_output=True, timeout=180, text=True, check=False)
    said = done.stderr
    assert done.returncode == 1
    assert said.startswith(f"windowsill: cannot listen on 127.0.0.1:{port}: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_a_host_that_is_not_here_is_told_in_one_line(place, host):
    """An address of another machine, or a name that nobody knows."""
    code, said = ended(place, "--host", host, "--token", "secret")
    assert code == 1
    assert said.startswith(f"windowsill: cannot listen on {host}:8765: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "127.0.0.1"])
@pytest.mark.parametrize("token", ["", "  "])
def test_an_empty_token_is_refused(place, host, token):
    """A variable that was not set must not open the door, on loopback neither."""
    code, said = ended(place, "--host", host, "--token", token)
    assert code == 2
    assert said.startswith("windowsill: setting 'token' is ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("token", ["", "  "])
def test_an_empty_variable_is_no_token(place, token, monkeypatch):
    """It is refused like an empty option."""
    monkeypatch.setenv("WINDOWSILL_TOKEN", token)
    code, said = ended(place)
    assert code == 2
    assert said.startswith("windowsill: setting 'token' is ")


@pytest.mark.parametrize(
    "sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: a\r\n", b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"]
)
def test_a_request_that_is_never_finished_is_given_up(place, sent, monkeypatch):
    """Connections that wait for the rest of a head or a body are closed, before the token is looked at too."""
    monkeypatch.setattr(server, "PATIENCE", 0.05)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def main() -> None:
        with Session.open("s", store=place) as session:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(server.serve_http, session.tools, port=port, token="t"))
                while True:
                    try:
                        stream = await anyio.connect_tcp("127.0.0.1", port)
                        break
                    except OSError:
                        await anyio.sleep(0.01)
                await stream.send(sent)
                with anyio.fail_after(60), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    while True:
                        await stream.receive()
                await stream.aclose()
                tasks.cancel_scope.cancel()

    anyio.run(main)


def test_nothing_is_kept_for_a_client_that_went_away(address):
    """A server gives no session out, so that none has to be freed."""
    hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    answer = httpx2.post(address, json={**PING, "method": "initialize", "params": hello}, headers=JSON)
    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers


def test_loopback_of_ipv6_is_served(place):
    """Its address is told as a browser takes it, and answers under it."""
    with socket.socket(socket.AF_INET6) as free:
        free.bind(("::1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, *arguments(place, "--http", "--host", "::1", "--port", str(port))]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        address = server.stderr.readline().strip()
        try:
            assert address == f"http://[::1]:{port}/mcp"

            async def main() -> None:
                async with Client(streamable_http_client(address)) as client:
                    await use(client)

            run(main)
        finally:
            server.terminate()


@pytest.mark.parametrize(
    ("host", "told"), [("2001:db8::7", "[2001:db8::7]"), ("[::1]", "[::1]"), ("::", "[::]"), ("127.0.0.1", "127.0.0.1")]
)
def test_a_host_of_ipv6_stands_in_brackets(host, told):
    """So clients send it in their Host header, by which they are let in."""
    assert bracketed(host) == told


def test_a_session_that_was_deleted_meanwhile_is_an_answer(place):
    """The client hears that it is gone; the server goes on."""

    async def main() -> None:
        server = StdioServerParameters(command=sys.executable, args=arguments(place))
        async with Client(stdio_client(server)) as client:
            await use(client)
            open_store(place).delete("s")
            gone = await client.call_tool("tool_output_cache", {"ref_id": "o3"})
            assert gone.is_error
            assert gone.content[0].text.startswith("Error: there is no tool output 'o3'")
            assert (await client.list_tools()).tools

    run(main)


def test_calls_at_the_same_time_are_all_answered(place):
    """A hundred of them, some with a megabyte of nonsense."""

    async def main() -> None:
        server = StdioServerParameters(command=sys.executable, args=arguments(place))
        async with Client(stdio_client(server)) as client, create_task_group() as tasks:

            async def ask(number: int) -> None:
                ref = "o3" if number % 10 else "x" * 1_000_000
                answer = await client.call_tool("tool_output_cache", {"ref_id": ref})
                assert answer.is_error == (ref != "o3")

            for number in range(100):
                tasks.start_soon(ask, number)

    run(main)


def test_beyond_loopback_a_token_is_required(place):
    """A server that others could reach does not start without a token."""
    with Session.open("s", store=place) as session, pytest.raises(SettingError, match="token"):
        http_app(session.tools, host="0.0.0.0")


def test_the_list_of_sessions_says_what_each_is_about():
    """By the first words of its task: an id tells a model nothing."""
    store = open_store(":memory:")
    with Session.open("older", model="claude-sonnet-4-5", store=store) as session:
        session.add("Where are the umbrellas?")
    assert StoreToolbox(store).call("sessions_list").text == "older: 1 entries; Where are the umbrellas?"


def test_a_server_without_a_session_serves_the_whole_store(place):
    """Each tool takes the session to ask; without one the last used answers. Nothing is changed by it."""
    with Session.open("older", model="claude-sonnet-4-5", store=place, clock=lambda: 1.0) as session:
        session.add("the older one speaks of umbrellas")
    store = open_store(place)
    before = [(info.id, info.version) for info in store.sessions()]

    async def main() -> None:
        server = StdioServerParameters(command=sys.executable, args=["-m", "windowsill", "mcp", "--store", str(place)])
        async with Client(stdio_client(server)) as client:
            listed = await client.call_tool("sessions_list", {})
            assert [line.partition(":")[0] for line in listed.content[0].text.splitlines()] == ["s", "older"]
            found = await client.call_tool("history_search", {"query": "mat"})
            assert "key under the mat" in found.content[0].text
            other = await client.call_tool("history_search", {"query": "umbrellas", "session": "old"})
            assert "umbrellas" in other.content[0].text
            wrong = await client.call_tool("history_search", {"query": "x", "session": "nobody"})
            assert wrong.is_error
            assert "sessions_list" in wrong.content[0].text

    run(main)
    assert [(info.id, info.version) for info in store.sessions()] == before
    store.close()


def test_the_conversation_that_is_meant_is_the_one_at_hand(place):
    """The one that the proxy holds, else the last used of this folder, else the last used."""
    for number, (name, project) in enumerate([("held", "/a"), ("here", "/b"), ("also-here", "/b"), ("last", "/c")]):
        with Session.open(
            name, model="claude-sonnet-4-5", store=place, clock=lambda at=number: 9e9 + at, project=project
        ) as session:
            session.add(f"this is {name}")
    with closing(open_store(place)) as store:
        for expected, options in (
            ("held", {"current": lambda: "held", "project": "/b"}),
            ("also-here", {"current": lambda: "", "project": "/b"}),
            ("last", {"project": "/nowhere"}),
        ):
            found = StoreToolbox(store, **options).call("history_search", {"query": "this is"})
            assert f"this is {expected}" in found.text
