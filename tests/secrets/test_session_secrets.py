from __future__ import annotations

import msgspec
import pytest

from support.cli_calls import call
from support.secret_keys import drawn
from support.sessions import TASK, opened, turn
from windowsill import Session
from windowsill.history.folds import MessageSpan, Proposal
from windowsill.messages import text_message
from windowsill.providers.http import endpoint
from windowsill.session.edits import commit_fold
from windowsill.store.memory import MemoryStore
from windowsill.summaries import Written
from windowsill.summaries.collect import collect_hidden
from windowsill.summaries.offline import lay_out

pytestmark = pytest.mark.unit

TOKEN = "gh" + "p_" + drawn(3, 36)
PASSWORD = "Tr0ub4dor-3"
SIGN = "[secret: github-token]"
WRITING = ["sliding-window", "summarize", "compact", "condense", "extract", "importance", "priority"]


def told(session, turns=25):
    """A session whose user and whose tools said secrets early on."""
    session.add(TASK)
    session.add(f"The token is {TOKEN} and the password is {PASSWORD}. " + "Never push to main. " * 3)
    session.add({"role": "assistant", "content": [{"type": "text", "text": f"I will use {TOKEN}."}]})
    session.add("Go on with the page.")  # the latest request stays in view, those before it may go
    for number in range(turns):
        for message in turn(number, words=40):
            session.add(message)
        session.compose_sync()
    return session


def shown_by_folds(session):
    """Everything that folds put in the place of messages, and what they know of them."""
    ledger = session.journal
    entries = ledger.walk([(1, ledger.version)], kinds=("fold",), bodies=True)
    return b"".join(entry.meta + entry.body for entry in entries)


@pytest.mark.parametrize("strategy", WRITING)
def test_no_summary_holds_a_secret(strategy):
    """Whatever strategy folds: neither what stands in view nor what is known for the next summary."""
    session = told(opened(strategy=strategy))
    folded = shown_by_folds(session)
    assert session.folds
    assert TOKEN.encode() not in folded
    assert PASSWORD.encode() not in folded


def test_quoted_user_keeps_the_rest_of_his_words():
    """Only the secrets go."""
    folded = shown_by_folds(told(opened(strategy="sliding-window"))).decode(errors="replace")
    assert f"The token is {SIGN} and the password is [secret: password]. Never push to main." in folded


def test_history_keeps_what_was_said():
    """The journal has it whole, and unfolding shows it again."""
    session = told(opened(strategy="sliding-window"))
    said = next(message for message in session.messages() if TOKEN in message.text)
    assert not session.explain(said.id).visible
    for fold in session.explain(said.id).folds:
        session.unfold(fold.id)
    assert session.explain(said.id).visible
    assert said.text in [session.view.read(item).text for item in session.view.items]


def test_visible_messages_are_not_altered():
    """What the model sees of a message is what was said."""
    session = opened()
    session.add(f"The token is {TOKEN}.")
    assert TOKEN.encode() in session.compose_sync().body("anthropic")


class Asked:
    """A model that says again what it read, and a secret of its own."""

    name = "asked"

    def __init__(self):
        self.read = []

    async def awrite(self, _, material):
        self.read.append(msgspec.json.encode(material.messages))
        return Written(text=f"They use {TOKEN}.", digest={"state": {"password": PASSWORD}}, writer=self.name)


def test_model_neither_reads_nor_tells_a_secret():
    """Its material has none, and what it makes up is taken out of its text and of what is kept beside it."""
    asked = Asked()
    session = opened(budget=3_000, strategy="summarize", writer=asked, wait=20.0)
    told(session, turns=60)
    folded = shown_by_folds(session)
    assert asked.read
    assert TOKEN.encode() not in b"".join(asked.read)
    assert f"They use {SIGN}.".encode() in folded
    assert TOKEN.encode() not in folded
    assert PASSWORD.encode() not in folded


def test_fold_by_hand_holds_no_secret():
    """Nor does the text that somebody gives."""
    session = opened(budget=50_000)
    session.add(TASK)
    first = session.add("A long story. " * 50)
    session.fold(first, first, text=f"They use {TOKEN}.")
    assert f"They use {SIGN}.".encode() in shown_by_folds(session)


def test_plug_in_cannot_put_one_into_a_fold():
    """Neither in what stands in view nor in what it says it knows; its weight is that of the sign."""
    session = opened(budget=50_000)
    session.add(TASK)
    session.add("A long story. " * 50)
    item = session.view.items[-1]
    facts = {"messages": 1, "said": [["m2", f"use {TOKEN}"]], "note": {"password": PASSWORD}}
    run = MessageSpan(item.seq, item.seq, 1, item.weight, item.weight, facts=facts)
    stand_in = text_message("user", f"They use {TOKEN}.")
    proposal = Proposal(kind="condense", reason="r", strategy="mine", spans=(run,), stand_ins=(stand_in,))
    commit_fold(session.journal, proposal)
    assert TOKEN.encode() not in shown_by_folds(session)
    assert PASSWORD.encode() not in shown_by_folds(session)
    assert session.view.items[-1].weight == session.view.weigh(text_message("user", f"They use {SIGN}."))


@pytest.mark.parametrize("room", range(60, 400, 17))
def test_quote_is_cleaned_before_it_is_cut(room):
    """Half a key would not be known as one."""
    session = opened(budget=50_000)
    session.add(f"It is {TOKEN} " * 30)
    quoted = lay_out("summary", collect_hidden(session.view, session.view.items), room, len, details=0)
    assert not any(TOKEN[start : start + 6] in quoted for start in range(len(TOKEN) - 5))


def test_search_in_another_session_gives_no_secret():
    """What another session of the project said comes without; one's own words are one's own."""
    store = MemoryStore()
    for name in ("mine", "yours"):
        session = Session.open(name, model="claude-sonnet-4-5", project="p", store=store)
        session.add(f"the {name} deployment uses {TOKEN}")
    found = Session.open("mine", scope="project", store=store).tools.history_search("deployment", k=5)
    assert f"the yours deployment uses {SIGN}" in found
    assert f"the mine deployment uses {TOKEN}" in found


@pytest.fixture
def place(tmp_path):
    with Session.open("s", model="claude-sonnet-4-5", store=tmp_path / "old") as session:
        session.add(f"The token is {TOKEN}.")
    return tmp_path


def test_command_exports_without_secrets(place):
    """The import says so, and the copy has signs; `--secrets` keeps everything."""
    lines = call("sessions", "export", "s", "--store", place / "old").out.encode()
    done = call("sessions", "import", "-", "--store", place / "new", input=lines)
    assert done.err == "secrets were taken out of 1 place when it was exported\n"
    assert call("sessions", "verify", "--store", place / "new").out == "s: sound\n"
    shown = call("sessions", "export", "s", "--format", "openai", "--secrets", "--store", place / "new").json
    assert shown == [{"role": "user", "content": f"The token is {SIGN}."}]


def test_command_exports_secrets_when_told_to(place):
    """Then the copy is exact, and the import has nothing to say."""
    lines = call("sessions", "export", "s", "--secrets", "--store", place / "old").out.encode()
    assert call("sessions", "import", "-", "--store", place / "new", input=lines).err == ""
    shown = call("sessions", "export", "s", "--format", "openai", "--secrets", "--store", place / "new").json
    assert shown == [{"role": "user", "content": f"The token is {TOKEN}."}]


def test_command_exports_messages_without_secrets(place):
    """`--format` too."""
    shown = call("sessions", "export", "s", "--format", "openai", "--store", place / "old").json
    assert shown == [{"role": "user", "content": f"The token is {SIGN}."}]


def test_error_of_a_provider_shows_no_key_of_another():
    """What a provider quotes is cleaned with all formats, and what looks like a part of a key with stars in it too."""
    where = endpoint("openai:gpt-5", environment={"OPENAI_API_KEY": "own-key"})
    text = f"own-key, sk-abc***xyz9 and {TOKEN} are wrong"
    assert where.hide_keys(text) == f"[key], [key] and {SIGN} are wrong"


def test_a_word_that_stands_for_a_key_is_not_hidden():
    """Servers that need no key take any: an error that lacks each `k` cannot be read."""
    where = endpoint("openai:m@http://127.0.0.1:1/v1", environment={}, key="k")
    assert where.hide_keys("the token is broken") == "the token is broken"
