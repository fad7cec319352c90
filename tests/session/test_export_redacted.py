from __future__ import annotations

import gzip
import sys

import msgspec
import pytest

from support.cli_calls import anthropic_turns
from support.conversations import result, text_block, thinking, use
from support.secret_keys import FORMATS, drawn
from windowsill import Session
from windowsill.errors import DamagedError, InputError
from windowsill.history.head import call_meta
from windowsill.outputs import chunks
from windowsill.session.export import export_session, import_session, taken_out
from windowsill.session.export_redacted import redact_pieces
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

TOKEN = "gh" + "p_" + drawn(3, 36)
PASSWORD = "Tr0ub4dor-3"
SIGN = "[secret: github-token]"
LONG = "".join(f"line {number} of a long output\n" for number in range(200))


def calling(id, **arguments):
    return {"type": "tool_use", "id": id, "name": "bash", "input": arguments}


@pytest.fixture
def store():
    """A session with secrets in messages, arguments, outputs, folds, the system prompt, tools and branches."""
    place = MemoryStore()
    with Session.open("s", model="claude-opus-4-6", budget=2_000, store=place) as session:
        session.add("Deploy it.")
        session.add(f"Use {TOKEN}, the password is {PASSWORD}.")
        for number, message in enumerate(anthropic_turns(20)):
            if message["role"] == "assistant":
                tools = [{"name": "read", "description": f"needs {TOKEN}", "input_schema": {}}]
                session.compose_sync(system=f"The token is {TOKEN}.", tools=tools)
            session.add(message)
            if number == 2:
                call = calling("deploy", command=f"curl -H 'Authorization: Bearer {TOKEN}'", password=PASSWORD)
                session.add({"role": "assistant", "content": [text_block("Deploying."), call]})
                session.add({"role": "user", "content": [result("deploy", f"{LONG} token {TOKEN}")]})
                again = calling("again", command="cat log")
                session.add({"role": "assistant", "content": [again]})
                session.add({"role": "user", "content": [result("again", f"{LONG} token {TOKEN}")]})
        session.rewind(list(session.messages())[-3].id)
        session.add("again")
    return place


def exported(store, **options):
    return list(export_session(store, "s", **options))


def everything(store):
    """All bytes that a store has of the session, those inside entries too."""
    entries = store.read("s", 1, store.info("s").version)
    blobs = [store.blob("s", id) or b"" for id in store.blob_ids("s", "")]
    return b"".join([*(entry.meta + (entry.body or b"") for entry in entries), *blobs])


def test_no_secret_leaves_with_an_export(store):
    """Nowhere in what arrives, while the session itself still has them."""
    target = MemoryStore()
    import_session(target, exported(store))
    assert TOKEN.encode() in everything(store)
    assert TOKEN.encode() not in everything(target)
    assert PASSWORD.encode() not in everything(target)
    assert SIGN.encode() in everything(target)


def test_export_with_secrets_is_exact(store):
    """`secrets=True` is the backup: every entry and every hash is the same."""
    target = MemoryStore()
    import_session(target, exported(store, secrets=True))
    assert target.read("s", 1, 999) == store.read("s", 1, 999)
    assert taken_out(exported(store, secrets=True)[0]) == 0


def test_import_without_secrets_is_a_sound_session(store):
    """It verifies, shows the same messages on the same branches, composes, and its requests can be built again."""
    target = MemoryStore()
    import_session(target, exported(store))
    with Session.open("s", store=target) as copy, Session.open("s", store=store) as session:
        assert copy.verify() == []
        assert [branch.id for branch in copy.branches] == [branch.id for branch in session.branches]
        assert [item.id for item in copy.view.items] == [item.id for item in session.view.items]
        requests = [copy.request(call.id) for call in copy.calls]
        assert len(requests) > 5
        assert all(TOKEN.encode() not in request for request in requests)
        copy.add({"role": "assistant", "content": "Done."})
        assert copy.compose_sync().report.tokens <= 2_000


def test_head_says_from_how_many_places_secrets_were_taken(store):
    """Two messages, two calls' parts, the deploy call, two outputs, and the folds that quoted them."""
    assert taken_out(exported(store)[0]) >= 7


def test_fingerprints_are_of_what_is_left(store):
    """Who has the export cannot try out what a short password was: nothing in it was made from the words."""
    target = MemoryStore()
    import_session(target, exported(store))
    with Session.open("s", store=target) as copy:
        fresh = MemoryStore()
        said = [message for message in copy.messages() if "windowsill" not in message.metadata]
    with Session.open("s", model="claude-opus-4-6", store=fresh) as session:
        session.extend(said)
        assert session.view.conversation_hash == copy.view.conversation_hash


def test_weights_are_counted_again():
    """A sign weighs something else than the secret did."""
    place, target = MemoryStore(), MemoryStore()
    with Session.open("s", model="claude-opus-4-6", store=place) as session:
        session.add(f"Use {TOKEN} and {TOKEN}.")
        before = session.view.items[0].weight
    import_session(target, exported(place))
    with Session.open("s", store=target) as copy:
        (item,) = copy.view.items
        assert item.weight == copy.view.weigh(copy.view.read(item)) != before


def test_reasoning_stays_bound_to_its_system_prompt():
    """The prompt has another name without its secret; what was written under it says so."""
    place, target = MemoryStore(), MemoryStore()
    with Session.open("s", model="claude-opus-4-6", store=place) as session:
        session.add("Deploy it.")
        session.compose_sync(system=f"The token is {TOKEN}.")
        session.add({"role": "assistant", "content": [thinking("So be it."), text_block("Done.")]})
    import_session(target, exported(place))
    with Session.open("s", store=target) as copy:
        (call,) = (call_meta(copy.journal.find(call.id, "call").meta) for call in copy.calls)
        assert copy.view.items[-1].prompt_hash == call.prompt_hash
        assert copy.view.items[-1].prompt_hash != session.view.items[-1].prompt_hash


def test_session_without_secrets_is_exported_exactly():
    """Then there is no difference between the two forms."""
    place = MemoryStore()
    with Session.open("s", model="claude-opus-4-6", store=place) as session:
        session.extend(anthropic_turns(5))
    assert exported(place) == exported(place, secrets=True)


def test_second_export_takes_nothing_out(store):
    """What arrived without secrets has none."""
    target = MemoryStore()
    import_session(target, exported(store))
    assert taken_out(exported(target)[0]) == 0


def test_kept_output_gets_another_ref():
    """It is read, cleaned and found under its new name, in messages too."""
    place, target = MemoryStore(), MemoryStore()
    with Session.open("s", model="claude-opus-4-6", store=place) as session:
        session.add("read it")
        session.add({"role": "assistant", "content": [use("c1")]})
        kept = session.outputs.keep([LONG, f"{TOKEN}\n", LONG])
        session.add({"role": "user", "content": [result("c1", f"see {kept.id}")]}, outputs={"c1": kept})
    import_session(target, exported(place))
    with Session.open("s", store=target) as copy:
        message = list(copy.messages())[-1]
        ref = message.results[0].ref.id
        assert ref != kept.id
        assert message.results[0].content[0].text == f"see {ref}"
        data = b"".join(data for _, data in chunks(copy.outputs.open(ref)))
        assert data.decode() == f"{LONG}{SIGN}\n{LONG}"


@pytest.mark.parametrize("cut", [1, 100, 200, 330, 5_000])
def test_secret_in_two_pieces_of_an_output_is_found(cut):
    """Wherever the pieces are cut, also within a key of many lines."""
    _, key = FORMATS["private-key"](1)
    data = f"{LONG}{key}\nexport X_TOKEN={drawn(1, 20)}\n{TOKEN} {LONG}".encode()
    pieces = [data[start : start + cut] for start in range(0, len(data), cut)]
    expected = f"{LONG}[secret: private-key]\nexport X_TOKEN=[secret: token]\n{SIGN} {LONG}"
    assert b"".join(redact_pieces(pieces)).decode() == expected


def test_output_of_one_line_is_cleaned_in_bounded_memory():
    """A line without an end is not held back for ever."""
    pieces = [gzip.compress(drawn(seed, 40_000).encode()).replace(b"\n", b"").replace(b" ", b"") for seed in range(20)]
    assert b"".join(redact_pieces(pieces)) == b"".join(pieces)


def test_damage_does_not_become_sound(store):
    """An entry that is not what was written is still found on arrival."""
    entries = store._journals["s"].entries
    entries[-1] = msgspec.structs.replace(entries[-1], body=entries[-1].body.replace(b"again", b"other"))
    with pytest.raises(DamagedError, match="is not what was written"):
        import_session(MemoryStore(), exported(store))


@pytest.fixture
def usual_depth():
    """The depth of calls that Python allows by default: other tests may have raised it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("usual_depth")
def test_what_is_nested_too_deeply_to_be_searched_is_not_exported_unseen():
    """It is refused by name; an exact backup has it."""
    nested: dict = {}
    for _ in range(900):
        nested = {"a": nested}
    store = MemoryStore()
    with Session.open("s", model="gpt-5", store=store) as session:
        session.add("hello", metadata={"deep": nested})
    with pytest.raises(InputError, match="entry 'm1' of session 's' is nested too deeply to look for secrets"):
        list(export_session(store, "s"))
    copy = MemoryStore()
    import_session(copy, list(export_session(store, "s", secrets=True)))
    assert copy.read("s", 1, 1) == store.read("s", 1, 1)
