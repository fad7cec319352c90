"""How often a model over the network is connected to."""

import json
import socketserver
from http.server import BaseHTTPRequestHandler
from threading import Thread

import anyio
import pytest

from support.agent_models import ask, asking
from support.model_writers import ENVIRONMENT
from support.sessions import opened
from windowsill.agent import Engine, tool
from windowsill.agent.models import HttpModel

pytestmark = pytest.mark.integration


@pytest.fixture
def server():
    """A server that keeps connections open and counts them; it asks for the tool `look` twice, then is done."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self):
            made.connections += 1
            super().setup()

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            results = sum(message["role"] == "tool" for message in body["messages"])
            call = {"id": f"c{results}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            said = {"content": "done"} if results > 1 else {"content": None, "tool_calls": [call]}
            answer = json.dumps({"choices": [{"message": {"role": "assistant", **said}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    made = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    made.connections = 0
    Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def model(server, **settings):
    address = f"http://127.0.0.1:{server.server_address[1]}/v1"
    return HttpModel(f"openai:gpt-4o@{address}", environment=ENVIRONMENT, stream=False, **settings)


@tool(category="read")
def look() -> str:
    """Look."""
    return "seen"


def test_a_run_has_one_connection(server):
    """However many calls it makes; the next run has its own."""
    running = Engine(opened(budget=60_000), model=model(server), tools=[look], phases=("executing",))
    assert running.run_sync("Go.").turns == 3
    assert server.connections == 1
    running.run_sync("And again.")
    assert server.connections == 2


def test_a_question_outside_of_a_run_has_its_own(server):
    """And two runs at the same time do not share."""
    asked = model(server)
    ask(asked, asking())
    ask(asked, asking())
    assert server.connections == 2

    async def both():
        async def one():
            async with asked.opened():
                for _ in range(2):
                    await asked.ask(asking(), lambda _: None)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            tasks.start_soon(one)

    anyio.run(both)
    assert server.connections == 4
