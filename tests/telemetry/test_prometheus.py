"""Metrics for Prometheus, scraped over HTTP."""

import socket
import subprocess
import sys
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from anyio import run
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from support.sessions import opened, talk
from support.stores import child_env
from support.telemetry import listening
from windowsill import Session, WindowsillError, telemetry
from windowsill.telemetry import names

pytestmark = pytest.mark.integration


def scrape(port):
    """Return what a scrape gets."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return answer.read().decode()


def test_what_a_session_does_can_be_scraped():
    """Folds, durations and tokens, under the names Prometheus makes of ours."""
    with telemetry.serve_metrics(0) as serving, opened() as session:
        talk(session, 3)
        session.fold(session.view.items[1].id, session.view.items[4].id)
        session.compose_sync()
        session.composer.observe({"input_tokens": 10, "output_tokens": 2})
        text = scrape(serving.port)
    assert 'windowsill_folds_total{windowsill_fold_kind="condense",windowsill_strategy="by hand"} 1.0' in text
    assert "windowsill_compose_duration_seconds_count{" in text
    assert "gen_ai_client_token_usage_bucket{" in text
    assert "windowsill_cost_total{" in text


def test_a_listener_of_the_application_hears_as_before():
    """Both get every figure; after the end only the application does."""
    with listening() as heard:
        with telemetry.serve_metrics(0) as serving:
            telemetry.count(names.FOLDS)
            assert "windowsill_folds_total 1.0" in scrape(serving.port)
        telemetry.count(names.FOLDS)
        assert [point.value for point in heard.points("windowsill.folds")] == [2]


def test_after_closing_nobody_answers():
    """The port is free again."""
    serving = telemetry.serve_metrics(0)
    serving.close()
    serving.close()
    with pytest.raises(URLError):
        scrape(serving.port)
    assert not telemetry.is_measured()


def test_a_port_that_is_taken_is_said():
    """With the remedy."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WindowsillError) as caught:
            telemetry.serve_metrics(port)
    assert str(caught.value) == (
        f"cannot serve metrics on 127.0.0.1:{port}: address already in use; "
        "give another port, or end what listens there"
    )


def test_without_the_extra_the_remedy_is_said():
    """Which one to install."""
    code = """
import sys
sys.modules["prometheus_client"] = None
from windowsill import telemetry
try:
    telemetry.serve_metrics(0)
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], env=child_env(), text=True, capture_output=True, check=True)
    assert done.stdout == (
        "serving metrics needs a package that is missing: prometheus_client; "
        "run in a clone of windowsill: pip install '.[prometheus]'\n"
    )


def test_the_mcp_server_can_be_scraped(tmp_path):
    """`windowsill mcp SESSION --metrics PORT`: searches of the client are in it."""
    with Session.open("s", model="claude-sonnet-4-5", store=tmp_path) as session:
        session.add("the key is under the mat")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = ["-m", "windowsill", "mcp", "s", "--store", str(tmp_path), "--metrics", str(port)]

    async def main() -> str:
        server = StdioServerParameters(command=sys.executable, args=arguments, env=child_env())
        async with Client(stdio_client(server)) as client:
            await client.call_tool("history_search", {"query": "mat"})
            return scrape(port)

    assert 'gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="retrieval"} 1.0' in run(main)
