"""One session as one file, the bar in notebooks and terminals, and the command that opens the page."""

import base64
import gzip
import json
import re
import signal
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from support.inspected import ask, open_session, page, work
from support.proxies import proxied
from support.stores import child_env
from windowsill.cli.main import group
from windowsill.compose.composition import PARTS
from windowsill.errors import InputError
from windowsill.inspector import html_file
from windowsill.inspector.html_file import export_page
from windowsill.store import open_store
from windowsill.store.memory import MemoryStore
from windowsill.testing import Server

pytestmark = pytest.mark.integration

HOSTILE = "</script><script>alert(1)</script><!-- \0 \u202e"


@pytest.fixture
def static(tmp_path):
    """A small page of the same form as the real one."""
    folder = tmp_path / "static"
    (folder / "vendor").mkdir(parents=True)
    (folder / "index.html").write_text(
        '<!doctype html><html><head><link rel="stylesheet" href="static/style.css"></head>'
        '<body><script type="module" src="static/app.js"></script></body></html>'
    )
    (folder / "style.css").write_text("body { color: red }")
    (folder / "app.js").write_text('import { h } from "./vendor/lib.js";\nh();')
    (folder / "vendor" / "lib.js").write_text("export const h = () => 1;")
    (folder / "vendor" / "packages.json").write_text("{}")
    return folder


@pytest.fixture
def store():
    made = MemoryStore()
    with open_session(made) as session:
        work(session, 12)
        session.add(HOSTILE)
    return made


def data_of(html):
    found = re.search(r'<script type="text/plain" id="windowsill-data">(.*?)</script>', html)
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_file_has_what_the_page_would_ask_for(store, static):
    """Each answer in the file is the one that the server gives at that address."""
    data = data_of(export_page(store, "work", static=static).html)
    assert data["about"]["session"] == "work"
    assert data["about"]["can_change"] is False
    kinds = {place.partition("?")[0] for place in data["answers"]}
    assert kinds == {
        "api/sessions",
        "api/window",
        "api/history",
        "api/state",
        "api/calls",
        "api/items",
        "api/folds",
        "api/fold",
        "api/call",
        "api/call/messages",
        "api/message",
    }
    with page(store) as client:
        for place, answer in data["answers"].items():
            if place != "api/sessions":
                assert client.get(f"/{place}").json() == answer, place


def test_file_is_a_fraction_of_its_answers(store, static):
    """The requests of a session repeat each other: together they are packed."""
    html = export_page(store, "work", static=static).html
    assert len(html) < len(json.dumps(data_of(html))) / 4


def test_nothing_in_the_file_can_run(store, static):
    """No text of the conversation ends the data or begins a script; only our own scripts are allowed."""
    html = export_page(store, "work", static=static).html
    assert "alert(1)</script>" not in html
    assert html.count("<script") == 3
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert "unsafe-inline" not in policy
    assert "default-src 'none'" in policy
    texts = [item["blocks"][0]["text"] for item in _items(html)]
    assert HOSTILE in texts


def _items(html):
    answers = data_of(html)["answers"]
    return [item for place, each in answers.items() if place.startswith("api/items") for item in each["items"]]


def test_modules_find_each_other_by_name(store, static):
    """The scripts of the file import each other without a server."""
    html = export_page(store, "work", static=static).html
    imports = json.loads(re.search(r'<script type="importmap">(.*?)</script>', html)[1])["imports"]
    assert set(imports) == {"windowsill/app.js", "windowsill/lib.js"}
    assert '<script type="module">import "windowsill/app.js";</script>' in html
    assert "static/" not in html.replace(json.dumps(imports), "").partition("windowsill-data")[0]


def test_large_session_leaves_out_what_is_worth_least(store, static):
    """A file that would be too large has the window and the last items, and says what is missing."""
    made = export_page(store, "work", static=static, largest=60_000)
    answers = data_of(made.html)["answers"]
    assert "api/window?session=work" in answers
    assert any("messages" in note for note in made.notes)
    assert data_of(made.html)["about"]["notes"] == list(made.notes)


def test_missing_libraries_are_told(store, tmp_path):
    """Without the libraries of the page there is no file, and the error says how to get them."""
    with pytest.raises(InputError, match=r"hatch_build\.py"):
        export_page(store, "work", static=tmp_path)


def run(*arguments):
    return CliRunner().invoke(group, list(arguments), prog_name="windowsill")


def test_command_writes_a_file(tmp_path, static, monkeypatch):
    """`--html` writes the file and says how large it is; it needs a session that exists."""
    monkeypatch.setattr(html_file, "STATIC", static)
    with open_session(tmp_path) as session:
        work(session, 1)
    file = tmp_path / "out.html"
    done = run("inspect", "wo", "--store", str(tmp_path), "--html", str(file))
    assert done.exit_code == 0, done.output
    assert data_of(file.read_text())["about"]["session"] == "work"
    assert run("inspect", "--store", str(tmp_path), "--html", str(file)).exit_code == 2
    assert "there is no session" in str(run("inspect", "nobody", "--store", str(tmp_path)).exception)
    assert "there are no sessions at" in str(run("inspect", "--store", str(tmp_path / "no")).exception)
    assert "a secret" in str(run("inspect", "--store", str(tmp_path), "--host", "0.0.0.0").exception)


def test_command_serves_until_it_is_interrupted(tmp_path):
    """The address is printed when the page can be opened; with an open stream of events the command still ends."""
    with open_session(tmp_path) as session:
        work(session, 1)
    command = [sys.executable, "-m", "windowsill", "inspect", "work", "--store", str(tmp_path), "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=child_env()) as server:
        address = server.stderr.readline().strip()
        with urllib.request.urlopen(f"{address}api/about", timeout=60) as answer:
            assert json.load(answer)["session"] == "work"
        with urllib.request.urlopen(f"{address}events?session=work&after=0", timeout=60) as stream:
            assert stream.readline().startswith(b"retry")
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=60) in (0, 130, -signal.SIGINT)


def test_notebooks_draw_the_bar(store):
    """A session and a payload draw what fills their window; no text in it can become markup."""
    with open_session(store, "<b>bold</b>") as session:
        session.add("Hello")
        payload = ask(session)
        for shown in (session._repr_html_(), payload._repr_html_()):
            assert "<b>" not in shown
            assert "<script" not in shown
            assert "tools" in shown
        assert "&lt;b&gt;" in session._repr_html_()
        assert sum(payload.composition.parts.values()) == payload.composition.window
        assert set(payload.composition.parts) == set(PARTS)
        sent = payload.composition.tokens
    assert abs(sent - payload.tokens) <= 20


def test_terminal_shows_the_parts(tmp_path):
    """`sessions show` says what fills the window."""
    with open_session(tmp_path) as session:
        work(session, 1)
    shown = run("sessions", "show", "work", "--store", str(tmp_path)).output
    assert re.search(
        r"filled with: system \d+, tools \d+, task \d+, assistant \d+, outputs \d+, (unseen \d+, )?free ", shown
    )
    parts = json.loads(run("sessions", "show", "work", "--store", str(tmp_path), "--json").output)["parts"]
    assert list(parts) == list(PARTS)


def test_proxy_shows_the_page(tmp_path):
    """The page lives behind the proxy too, with the proxy's own figures."""
    with Server() as provider, proxied(tmp_path, provider.url) as proxy:
        moved = proxy.client.get(f"{proxy.url}/__windowsill/inspect", follow_redirects=False)
        assert moved.headers["location"] == "/__windowsill/inspect/"
        about = proxy.client.get(f"{proxy.url}/__windowsill/inspect/api/about").json()
        assert about["proxy"]["status"] == "ok"
        assert (
            proxy.client.get(
                f"{proxy.url}/__windowsill/inspect/api/about", headers={"host": "evil.example"}
            ).status_code
            == 403
        )


def test_long_view_is_stored_when_its_session_is_closed(tmp_path):
    """A session that was never folded opens from its stored view, and shows the same."""
    store = open_store(tmp_path)
    with open_session(store, window=1_000_000) as session:
        session.extend([f"Message {number}." for number in range(2_500)])
        items = session.view.items
        assert store.snapshot("work", session.journal.version) is None
    at, _ = store.snapshot("work", store.info("work").version)
    assert at == store.info("work").version
    with open_session(store, window=1_000_000) as session:
        assert session.view.items == items
        assert session.verify() == []
    store.close()
