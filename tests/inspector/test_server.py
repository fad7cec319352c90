"""The server of the inspector: what it answers, what it refuses, what it changes."""

import json

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from support.inspected import CHANGES, open_session, page
from windowsill.errors import DamagedError
from windowsill.inspector import app

pytestmark = pytest.mark.integration

READS = (
    "window",
    "items?page=0",
    "folds",
    "calls",
    "history",
    "state",
    "explain?words=secret number 1",
    "diff?from=m1&to=now",
)


@pytest.fixture
def client(store):
    with page(store) as made:
        yield made


def of_session(client, name, **headers):
    path, _, rest = name.partition("?")
    return client.get(f"/api/{path}?session=work&{rest}", headers=headers)


@pytest.mark.parametrize("name", READS)
def test_reads_answer_with_json(client, name):
    """Every view of a session is answered."""
    answer = of_session(client, name)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("name", READS)
def test_same_version_is_not_sent_again(client, name):
    """A page that has the answer for this version gets nothing."""
    tag = of_session(client, name).headers["etag"]
    assert of_session(client, name, **{"if-none-match": tag}).status_code == 304


def test_every_answer_forbids_scripts_from_elsewhere(client):
    """Pages, data and errors come with a policy that allows nothing but the page's own files."""
    for path in ("/", "/api/about", "/api/window?session=nobody", "/nothing"):
        assert client.get(path).headers["content-security-policy"].startswith("default-src 'self'; script-src 'self'")


def test_errors_say_what_to_do(client):
    """An unknown session, a wrong number and a missing parameter are told with their remedy."""
    for path, status in (
        ("/api/window?session=nobody", 404),
        ("/api/items?session=work&page=x", 400),
        ("/api/items?session=work&page=99", 404),
        ("/api/window", 400),
        ("/api/call?session=work&id=c999999", 404),
        ("/api/fold?session=work&id=m1", 404),
        ("/static/../server.py", 404),
        ("/static/..%2Fserver.py", 404),
        ("/nothing", 404),
    ):
        answer = client.get(path)
        assert answer.status_code == status, path
        assert answer.json()["error"]["what"], path
        assert answer.json()["error"]["remedy"], path


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:8000"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}, 403),
        ({"origin": "http://127.0.0.1:8000"}, 200),
        ({"host": "localhost:8000"}, 200),
        ({"host": "[::1]:8000"}, 200),
    ],
)
def test_other_pages_are_refused(client, headers, status):
    """Only a page of this very server, under a name of this machine, is answered."""
    assert client.get("/api/about", headers=headers).status_code == status


def test_forms_cannot_change(client, store):
    """A change without the header that no form can send is refused, and nothing is written."""
    version = store.info("work").version
    sent = {"do": "checkpoint", "name": "mine"}
    assert client.post("/api/do?session=work", json=sent).status_code == 403
    assert client.post("/api/do?session=work", data=sent).status_code == 403
    assert store.info("work").version == version


def test_large_and_odd_bodies_are_refused(client):
    """A body that is too large, no JSON or no object is told so."""
    for body in (b"x" * 70_000, b"{", b"[1]", b"\xff", b"[" * 50_000):
        answer = client.post("/api/do?session=work", content=body, headers=CHANGES)
        assert answer.status_code == 400, body[:10]
    answer = client.post("/api/do?session=work", json={"do": "explode"}, headers=CHANGES)
    assert answer.json()["error"]["kind"] == "bad_request"


def test_token_is_exchanged_for_a_cookie(store):
    """Beyond this machine the page loads, but its data needs the token; then a cookie is enough."""
    with page(store, token="a secret", hosts=()) as client:
        assert client.get("/").status_code in (200, 404)
        assert client.get("/api/about").status_code == 401
        assert client.get("/events?session=work").status_code == 401
        assert client.post("/api/login", json={"token": "no"}, headers=CHANGES).status_code == 401
        assert client.get("/api/about", headers={"x-windowsill-token": "a secret"}).status_code == 200
        answer = client.post("/api/login", json={"token": "a secret"}, headers=CHANGES)
        assert answer.status_code == 204
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "a secret" not in cookie
        assert client.get("/api/about").status_code == 200


def test_about_tells_the_store(client):
    """The page learns which store it looks at and whether it may change things."""
    about = client.get("/api/about").json()
    assert about["can_change"] is True
    assert about["store"]["kind"] == "memory"


def test_raw_request_is_exact(client, store):
    """The download of a request has its very bytes."""
    call = of_session(client, "calls").json()["calls"][-1]["id"]
    with open_session(store) as session:
        assert of_session(client, f"request.json?id={call}").content == session.request(call)


def test_list_of_sessions_has_their_figures(client):
    """The list says for each session what it cost, how often it was folded and how full it is."""
    (found,) = client.get("/api/sessions").json()["sessions"]
    assert found["id"] == "work"
    assert found["figures"]["calls"] == 24
    assert found["figures"]["folds"] > 0
    assert found["figures"]["cost"] > 0
    assert found["figures"]["complete"] is True
    assert found["title"] == "Please read file 0."


def test_list_and_window_agree_on_the_limit(client):
    """How full a session is goes by its own limit, in the list and in its window."""
    (found,) = client.get("/api/sessions").json()["sessions"]
    assert found["figures"]["limit"] == of_session(client, "window").json()["limit"]


def test_search_looks_into_all_sessions(client):
    """Words are found in whatever session said them."""
    found = client.get("/api/search?words=secret number 3").json()["found"]
    assert any(each["session"] == "work" and "number 3" in each["text"] for each in found)


def test_events_carry_versions_only(store):
    """A stream tells the version at once where the page has another one, and nothing of what was said."""
    ended = iter([False, True])
    with page(store, closing=lambda: next(ended)) as client:
        lines = client.get("/events?session=work&after=1").text.split("\n")
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert data == [{"version": store.info("work").version}]


def test_events_are_silent_for_a_page_that_is_up_to_date(store):
    """A page that has this version is not told again."""
    ended = iter([False, True])
    with page(store, closing=lambda: next(ended)) as client:
        text = client.get(f"/events?session=work&after={store.info('work').version}").text
    assert "data:" not in text


def test_events_report_a_store_that_cannot_be_read(store, monkeypatch):
    """A store that is damaged while it is watched is an event with a sentence, once; repaired, versions come again."""
    good = store.info
    bad = DamagedError("the database is damaged", remedy="put a backup in its place")
    answers = iter([good, bad, bad, good])

    def info(session):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer(session)

    monkeypatch.setattr(store, "info", info)
    ended = iter([False] * 4 + [True])
    with page(store, closing=lambda: next(ended)) as client:
        text = client.get("/events?session=work&after=1").text
    version = f'id: {good("work").version}\ndata: {{"version":{good("work").version}}}'
    error = (
        'data: {"error":{"kind":"damaged","message":"the database is damaged","remedy":"put a backup in its place"}}'
    )
    assert text.split("\n\n")[1:] == [version, error, version, ""]


def test_page_works_below_a_path(store):
    """Mounted anywhere, with a token: the cookie belongs to that path, and every address works below it."""
    site = Starlette(routes=[Mount("/below/here", app(store, token="a secret"))])
    with TestClient(site, base_url="http://127.0.0.1:8000") as client:
        assert client.get("/below/here/api/about").status_code == 401
        answer = client.post("/below/here/api/login", json={"token": "a secret"}, headers=CHANGES)
        assert "path=/below/here/" in answer.headers["set-cookie"].lower()
        assert client.get("/below/here/api/about").status_code == 200
        assert client.get("/below/here/api/window?session=work").status_code == 200
        assert client.get("/below/here/static/style.css").status_code == 200
