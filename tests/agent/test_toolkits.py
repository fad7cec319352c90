"""The tools that come with the engine; those for files are tested with `windowsill agent`."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import anyio
import pytest

from windowsill.agent import ToolError
from windowsill.agent.toolkits import fetch_tool, toolkit
from windowsill.errors import InputError

pytestmark = pytest.mark.integration


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/")
        else:
            self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello" if self.path == "/small" else b"x" * 3_000_000)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_page_is_fetched_up_to_a_size_and_a_redirect_is_told(address):
    """Where a host outside of the public network was allowed."""
    fetch = fetch_tool(hosts=("127.0.0.1",)).function
    assert anyio.run(fetch, f"{address}/small") == "[status 200]\nhello"
    assert len(anyio.run(fetch, f"{address}/large")) == len("[status 200]\n") + 2 * 1024 * 1024
    assert anyio.run(fetch, f"{address}/moved").startswith("[status 302 to http://169.254.169.254/]")


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/", "http://10.0.0.1/x"])
def test_nothing_outside_of_the_public_network_is_fetched(url):
    """No page leads an agent to services of this machine or its neighbours."""
    with pytest.raises(ToolError, match="not in the public network"):
        anyio.run(fetch_tool().function, url)


def test_what_is_no_address_is_told():
    """To the model."""
    for url in ("file:///etc/passwd", "example.com", "ftp://example.com"):
        with pytest.raises(ToolError, match="no address of the web"):
            anyio.run(fetch_tool().function, url)


def test_kits_are_known_by_name_and_their_tools_have_categories(tmp_path):
    """None of them is taken for one that may do anything."""
    made = {each.name: each.offer.category for each in toolkit(["files", "shell", "fetch", "files"], tmp_path)}
    assert made == {
        "list_files": "read",
        "read_file": "read",
        "search": "read",
        "write_file": "write",
        "edit_file": "write",
        "delete_file": "delete",
        "run_shell": "execute",
        "fetch": "read",
    }
    with pytest.raises(InputError, match="there are no tools 'knives'"):
        toolkit(["knives"], tmp_path)
