"""`windowsill run`: an agent behind a proxy of its own, with nothing written anywhere, and a proxy that dies."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import closing

import httpx2
import pytest

from support.cli_calls import call
from support.proxies import body, break_off, proxied, say, upstream
from windowsill import InputError, Session, open_store
from windowsill.proxy import launch as launch_module
from windowsill.proxy.launch import AGENTS, ANY, check_health
from windowsill.testing import Server

pytestmark = pytest.mark.integration

AGENT = """
import json, os, signal, sys, time, urllib.request
base = os.environ["ANTHROPIC_BASE_URL"]
def ask(texts):
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    body = json.dumps({"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": messages}).encode()
    request = urllib.request.Request(base + "/v1/messages", body, {"x-api-key": "k"})
    for _ in range(600):
        try:
            return json.load(urllib.request.urlopen(request))["content"][0]["text"]
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the proxy did not come back")
texts = []
for number in range(int(sys.argv[1])):
    texts += [f"Question {number} " + "word " * 400]
    texts += [ask(texts)]
    if len(sys.argv) > 2 and number == 1:
        os.kill(json.load(urllib.request.urlopen(base + "/__windowsill/health"))["pid"], signal.SIGKILL)
if len(texts) > 20:
    ask(["Another matter"])
names = [name for name in os.environ if name.endswith("_BASE_URL") or name == "WINDOWSILL_PROXY"]
print(json.dumps({name: os.environ[name] for name in names}))
raise SystemExit(7)
"""


def run(place, url, *arguments):
    home = place / "home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "windowsill",
            "run",
            "--store",
            str(place / "kept"),
            "--window",
            "6000",
            "--upstream",
            f"anthropic={url}",
            "--",
            sys.executable,
            "-c",
            AGENT,
            *arguments,
        ],
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_agent_runs_behind_a_proxy_of_its_own(tmp_path):
    """Its environment names the proxy, its exit code is ours, one line says what was done, no settings are written."""
    with Server(window=6_000) as provider:
        done = run(tmp_path, provider.url, "20")
        assert provider.refused == []
    assert done.returncode == 7, done.stderr
    told = json.loads(done.stdout)
    assert {"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "WINDOWSILL_PROXY"} <= set(told)
    assert all(url.startswith("http://127.0.0.1:") for url in told.values())
    found = re.search(
        r"windowsill: 21 calls, \d+ folds?, \d+ KB not sent \(\d+%\), \d+% read from the cache; look: "
        r"`windowsill inspect '(\w+~\w+)' --store \S+`",
        done.stderr,
    )
    with closing(open_store(tmp_path / "kept")) as store, Session.open(found[1], store=store) as session:
        assert session.folds, "the conversation that was folded is shown, not the last one"
    assert list((tmp_path / "home").iterdir()) == []


def test_a_dead_proxy_leaves_no_dead_client(tmp_path):
    """Complaint: proxy down, client dead, settings left behind. It is started again; the conversation stays one."""
    with Server(window=6_000) as provider:
        done = run(tmp_path, provider.url, "4", "kill")
    assert done.returncode == 7, done.stderr
    assert "the proxy died" in done.stderr
    assert list((tmp_path / "home").iterdir()) == []
    assert len(call("sessions", "list", "--store", tmp_path / "kept", "--json").json) == 1


def test_a_program_that_is_not_there_is_named(tmp_path):
    """Nothing is started for it."""
    done = subprocess.run(
        [sys.executable, "-m", "windowsill", "run", "--store", str(tmp_path), "no-such-agent"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "there is no program 'no-such-agent'" in done.stderr


def test_known_agents_get_their_variables_and_tools(tmp_path):
    """By arguments where the agent takes them; any other program gets every base URL."""
    server = ["python", "-m", "windowsill", "mcp"]
    claude = AGENTS["claude"]
    assert claude.environment(server, "http://x", tmp_path)["ANTHROPIC_BASE_URL"] == "http://x"
    assert claude.environment(server, "http://x", tmp_path)["CLAUDE_CODE_GATEWAY_HINT_HEADERS"] == "1"
    assert json.loads(claude.arguments(server, "http://x")[1])["mcpServers"]["windowsill"]["command"] == "python"
    codex = AGENTS["codex"]
    assert codex.environment(server, "http://x", tmp_path)["OPENAI_BASE_URL"] == "http://x/v1"
    assert 'mcp_servers.windowsill.command="python"' in codex.arguments(server, "http://x")
    assert 'openai_base_url="http://x/v1"' in codex.arguments(server, "http://x")
    assert AGENTS["gemini"].environment(server, "http://x", tmp_path)["GOOGLE_GEMINI_BASE_URL"] == "http://x"
    config = json.loads(AGENTS["opencode"].environment(server, "http://x", tmp_path)["OPENCODE_CONFIG_CONTENT"])
    assert config["mcp"]["windowsill"] == {"type": "local", "command": server}
    bases = {name: value["options"]["baseURL"] for name, value in config["provider"].items()}
    assert bases == {"anthropic": "http://x/v1", "openai": "http://x/v1", "google": "http://x/v1beta"}
    assert {"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"} <= set(
        ANY.environment(server, "http://x", tmp_path)
    )


def test_gemini_cli_gets_tools_by_defaults_that_only_root_can_have_written(tmp_path, monkeypatch):
    """Those of the machine stay in them; it would pass over a file of anybody else with a warning, so there is none."""
    gemini = AGENTS["gemini"]
    tmp_path.chmod(0o777)
    assert set(gemini.environment(["w", "mcp"], "http://x", tmp_path)) == {"GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"}
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(launch_module, "_is_roots", lambda _: True)
    machine = tmp_path / "etc" / "system-defaults.json"
    machine.parent.mkdir()
    machine.write_text(json.dumps({"ui": {"theme": "dark"}, "mcpServers": {"mine": {}}}))
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH", str(machine.with_name("settings.json")))
    own = gemini.environment(["w", "mcp"], "http://x", tmp_path)
    written = json.loads((tmp_path / "gemini.json").read_text())
    assert own["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"] == str(tmp_path / "gemini.json")
    assert written["ui"] == {"theme": "dark"}
    assert written["mcpServers"] == {"mine": {}, "windowsill": {"command": "w", "args": ["mcp"]}}
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", str(machine))
    machine.write_text("[]")
    with pytest.raises(InputError, match="no JSON object of settings"):
        gemini.environment(["w", "mcp"], "http://x", tmp_path)


GEMINI = """#!/usr/bin/env python
import json, os, sys, urllib.request
base, said, tools = os.environ["GOOGLE_GEMINI_BASE_URL"], [], [json.loads(each) for each in sys.argv[1:]]
for number in range(12):
    said.append({"role": "user", "parts": [{"text": f"Question {number} " + "word " * 1_000}]})
    body = json.dumps({"contents": said, "tools": tools}).encode()
    url = base + "/v1beta/models/gemini-2.5-pro:generateContent"
    request = urllib.request.Request(url, body, {"x-goog-api-key": "k", "content-type": "application/json"})
    said.append(json.load(urllib.request.urlopen(request))["candidates"][0]["content"])
"""


def test_an_agent_that_could_not_be_given_the_tools_is_told_the_way_to_them(tmp_path, monkeypatch):
    """Once something was folded, and as long as no request offers them."""
    agent = tmp_path / "gemini"
    agent.write_text(GEMINI)
    agent.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ours = json.dumps({"functionDeclarations": [{"name": "mcp_windowsill_history_search", "description": "d"}]})
    with Server(window=6_000) as provider:
        options = ["--store", str(tmp_path / "kept"), "--window", "6000", "--upstream", f"gemini={provider.url}"]
        command = [sys.executable, "-m", "windowsill", "run", *options, "gemini"]
        for tools, told in (([], True), ([ours], False)):
            done = subprocess.run([*command, *tools], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            assert ("`gemini mcp add --scope user windowsill windowsill mcp`" in done.stderr) == told


def test_settings_that_opencode_has_in_its_variable_stay(tmp_path, monkeypatch):
    """Ours are joined with them; what is no JSON is named."""
    own = {"model": "m", "provider": {"anthropic": {"options": {"apiKey": "k"}}}, "mcp": {"mine": {}}}
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", json.dumps(own))
    config = json.loads(AGENTS["opencode"].environment(["w"], "http://x", tmp_path)["OPENCODE_CONFIG_CONTENT"])
    assert config["model"] == "m"
    assert config["provider"]["anthropic"]["options"] == {"apiKey": "k", "baseURL": "http://x/v1"}
    assert set(config["mcp"]) == {"mine", "windowsill"}
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", "no json")
    with pytest.raises(InputError, match="OPENCODE_CONFIG_CONTENT"):
        AGENTS["opencode"].environment(["w"], "http://x", tmp_path)


def test_a_base_url_of_the_users_own_is_where_requests_go_on_to(tmp_path, monkeypatch):
    """A gateway that he uses is not passed over in silence; an upstream that is stated counts more."""
    with Server() as gateway, Server() as other:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", gateway.url)
        command = [sys.executable, "-m", "windowsill", "run", "--store", str(tmp_path)]
        agent = ["--", sys.executable, "-c", AGENT, "1"]
        done = subprocess.run([*command, *agent], capture_output=True, text=True, check=False)
        assert f"requests to anthropic go on to {gateway.url}, as ANTHROPIC_BASE_URL says" in done.stderr
        done = subprocess.run(
            [*command, "--upstream", f"anthropic={other.url}", *agent], capture_output=True, text=True, check=False
        )
        assert "go on to" not in done.stderr
        assert (len(gateway.seen), len(other.seen)) == (1, 1)


def test_a_program_that_does_not_use_the_proxy_is_noticed(tmp_path):
    """Settings of its own may lead elsewhere, and then nothing is kept."""
    command = [sys.executable, "-m", "windowsill", "run", "--store", str(tmp_path), "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "no request came to the proxy" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mcp", "--proxy", "nope"), "setting 'proxy' is 'nope'"),
        (("mcp", "session", "--proxy", "http://127.0.0.1:1"), "--proxy is of no use with a session"),
        (("mcp", "--port", "99"), "add --http"),
        (("proxy", "--upstream", "openai=http://localhost:8787/v1"), "this is the proxy itself"),
        (("proxy", "--token", "\u00e9"), "a secret that a header can hold"),
    ],
)
def test_an_option_that_cannot_work_is_refused(arguments, words, tmp_path):
    """In one line, before anything is served."""
    done = call(*arguments, "--store", tmp_path)
    assert done.code in (1, 2)
    assert words in done.err
    assert done.err.count("\n") == 1


def test_the_proxy_that_run_names_is_no_option_of_a_server_for_one_session(tmp_path, monkeypatch):
    """An agent that runs behind a proxy may have tools of a session that its user chose."""
    monkeypatch.setenv("WINDOWSILL_PROXY", "http://127.0.0.1:1")
    command = [sys.executable, "-m", "windowsill", "mcp", "chosen", "--store", str(tmp_path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert "there are no sessions" in done.stderr


def test_a_check_says_whether_a_proxy_answers(tmp_path, monkeypatch):
    """What it did, whom it can reach, which clients use it; and what to do when none answers."""
    told = []
    assert not check_health("127.0.0.1", 1, told.append)
    assert "start one with `windowsill proxy --port 1`" in told[0]
    with Server() as provider, proxied(tmp_path, provider.url, token="open") as proxy:
        port = int(proxy.url.rpartition(":")[2])
        assert not check_health("127.0.0.1", port, told.append)
        assert "wants a token" in told[-1]
        monkeypatch.setenv("ANTHROPIC_BASE_URL", proxy.url)
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        told.clear()
        assert check_health("127.0.0.1", port, told.append, "open")
    assert told[0].startswith("ok: version ")
    assert f"anthropic: {provider_url(told)}" in told
    assert any(line.startswith("OPENAI_BASE_URL is not set here") for line in told)
    assert not any(line.startswith("ANTHROPIC_BASE_URL") for line in told)


def provider_url(told):
    return next(line for line in told if line.startswith("anthropic: ")).removeprefix("anthropic: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--strategy", "nosuch", "--", "true"), "there is no strategy 'nosuch'"),
        (("--upstream", "mine=x", "--", "true"), "setting 'upstream' is 'mine=x'"),
        (("--store", "/dev/null/x", "--", "true"), "cannot be created"),
        (("--",), "Missing argument"),
        (("--nosuch", "claude"), "there is no option --nosuch"),
        (("--window", "wide", "--", "true"), "setting 'window' is 'wide'"),
    ],
)
def test_what_is_wrong_is_said_before_an_agent_starts(arguments, words):
    """In one line, with the remedy; a setting that cannot work would else be noticed by nobody."""
    done = call("run", *arguments)
    assert done.code in (1, 2)
    assert words in done.err
    assert done.err.count("\n") == 1


def test_the_log_of_requests_holds_no_key_and_answers_no_headers_of_ours(tmp_path):
    """Gemini's clients may send the key in the address; the answer has the date and server of the provider alone."""

    def answer(handler, _):
        say(handler, 200, b"{}")

    with upstream(answer) as (url, _):
        command = [sys.executable, "-m", "windowsill", "proxy", "--verbose", "--port", "0", "--store", str(tmp_path)]
        process = subprocess.Popen([*command, "--upstream", f"gemini={url}"], stderr=subprocess.PIPE, text=True)
        with process:
            address = process.stderr.readline().strip()
            asked = f"{address}/v1beta/models/gemini-2.5-pro:generateContent?key=AIzaNeverSeen"
            got = httpx2.post(asked, json={"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, timeout=60)
            process.terminate()
            told = process.communicate()[1]
    assert "POST /v1beta/models/gemini-2.5-pro:generateContent 200" in told
    assert "AIzaNeverSeen" not in told
    assert [len(got.headers.get_list(name)) for name in ("date", "server")] == [1, 1]


def test_a_proxy_that_is_stopped_lets_answers_end(tmp_path):
    """The client has the whole answer, and it is recorded, before the process ends."""
    stopped = threading.Event()

    def answer(handler, _):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        whole = provider.answer("/v1/messages", json.dumps(body("Hello", stream=True)).encode(), {})[1]
        for number, event in enumerate(whole):
            handler.wfile.write(event)
            if number == 1:
                assert stopped.wait(60)

    with Server() as provider, upstream(answer) as (url, _):
        command = [sys.executable, "-m", "windowsill", "proxy", "--port", "0", "--store", str(tmp_path)]
        process = subprocess.Popen([*command, "--upstream", f"anthropic={url}"], stderr=subprocess.PIPE, text=True)
        with process, httpx2.Client(timeout=60) as client:
            address = process.stderr.readline().strip()
            with client.stream("POST", f"{address}/v1/messages", json=body("Hello", stream=True)) as response:
                pieces = response.iter_raw()
                heard = next(pieces)
                process.terminate()
                stopped.set()
                heard += b"".join(pieces)
            process.communicate()
    assert b"message_stop" in heard
    with closing(open_store(tmp_path)) as store:
        (info,) = store.sessions()
        with Session.open(info.id, store=store) as session:
            assert [message.text for message in session.messages()] == ["Hello", "ok"]


def test_an_answer_that_breaks_off_is_told_in_one_line(tmp_path):
    """By the proxy: what its web server thinks of it is no news to anybody."""
    log = tmp_path / "log"
    with upstream(break_off) as (url, _), log.open("w") as file:
        options = ("--port", "0", "--store", str(tmp_path), "--upstream", f"anthropic={url}")
        running = subprocess.Popen([sys.executable, "-m", "windowsill", "proxy", *options], stderr=file)
        try:
            while log.read_text().count("\n") < 2:
                assert running.poll() is None
                time.sleep(0.05)
            asked = body("Hello", stream=True)
            with pytest.raises(httpx2.RemoteProtocolError):
                httpx2.post(f"{log.read_text().split()[0]}/v1/messages", json=asked, timeout=60)
        finally:
            running.terminate()
            running.wait(60)
    assert ["an answer broke off" in line for line in log.read_text().splitlines()[2:]] == [True]
