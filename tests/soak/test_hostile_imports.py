"""Exports that somebody else wrote: whatever is in them, they are refused by line, or make a session that works.

Anybody can seal entries, so every changed file here has valid hashes.
"""

import base64
import copy
import json
import random

import msgspec
import pytest

from windowsill import DamagedError, Session, WindowsillError
from windowsill.errors import InputError
from windowsill.history.entries import ROOT_HASH, seal
from windowsill.session.export import export_session, import_session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.integration

KINDS = ("message", "fold", "unfold", "mark", "call", "usage", "rewind", "label", "state", "tools")
VALUES = (0, -1, 1, 2**31, 2**63 - 1, -(2**63), 1.5, "", "x", "m1", b"", b"\xff", None, True, [], {}, [[]], "\0", 7, 3)
FILES = 60
"""Files in `make test`."""
BODIES = (b"", b"\xff\xfe", b"[" * 5_000, b"{}", b"null")


def exported() -> list[dict]:
    """Return the lines of a session in which everything happened once."""
    store = MemoryStore()
    settings = {"model": "claude-sonnet-4-5", "window": 3_000, "strategy": "outputs+condense"}
    with Session.open("a", store=store, **settings) as session:
        session.add("task")
        for number in range(25):
            call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"a": number}}
            session.add({"role": "assistant", "content": [{"type": "text", "text": f"s{number}"}, call]})
            output = "same " * 300 if number % 3 == 0 else f"o{number} " * 200
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
            session.add({"role": "user", "content": [result]})
            session.compose_sync(system="x")
            if number == 10:
                session.checkpoint("c")
                session.state.set_goal("g")
                session.pin(session.view.items[-1].id)
            if number == 15:
                session.rewind(session.view.items[-3].id)
            if number == 18:
                session.unfold(session.folds[-1].id)
        ref = session.outputs.keep(["k\n"] * 50)
        session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "z", "name": "read", "input": {}}]})
        kept = {"type": "tool_result", "tool_use_id": "z", "content": "k"}
        session.add({"role": "user", "content": [kept]}, outputs={"z": ref})
    return [json.loads(line) for line in export_session(store, "a", secrets=True)]


LINES = exported()


def changed(rng: random.Random, value):
    """Return a value with one thing in it changed."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place, dice = rng.randrange(len(value)), rng.random()
        if dice < 0.7:
            return [*value[:place], changed(rng, value[place]), *value[place + 1 :]]
        if dice < 0.8:
            return [*value[:place], value[place], *value[place:]]
        return value[:place] + value[place + 1 :] if dice < 0.9 else value * rng.choice([2, 50])
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.6:
        return value + rng.choice([-2, -1, 1, 2, 5, 1_000])
    return rng.choice(VALUES)


def change(rng: random.Random, entry: dict) -> None:
    """Change one field of an entry."""
    dice = rng.random()
    if dice < 0.65:
        entry["meta"] = repacked(rng, entry["meta"])
    elif dice < 0.85 and entry["body"]:
        body = base64.b64decode(entry["body"])
        if entry["kind"] == "message":
            # What is shared with an earlier body is left out of it: most are no JSON by themselves.
            place = rng.randrange(len(body))
            new = body[:place] + rng.choice([b"", b'"', b"{", b"\\", b"9"]) + body[place + rng.randrange(2) :]
            entry["body"] = base64.b64encode(new).decode()
        else:
            other = base64.b64encode(rng.choice(BODIES)).decode()
            entry["body"] = repacked(rng, entry["body"]) if rng.random() < 0.8 else other
    elif dice < 0.9:
        entry["kind"] = rng.choice(KINDS)
    elif dice < 0.95:
        entry["parent"] = rng.choice([0, 1, entry["seq"] - 1, max(0, entry["seq"] - 5)])
    else:
        entry["id"] = rng.choice(["", "x" * 600, "m1", "../..", "\n", "o3", entry["id"] + "'"])


def repacked(rng: random.Random, text: str) -> str:
    value = msgspec.msgpack.decode(base64.b64decode(text))
    try:
        return base64.b64encode(msgspec.msgpack.encode(changed(rng, value))).decode()
    except OverflowError:
        return text


def hostile(rng: random.Random) -> list[bytes]:
    """Return a file with a few things changed, sealed anew."""
    lines = copy.deepcopy(LINES)
    entries = [line for line in lines if "seq" in line]
    for _ in range(rng.choice([1, 1, 2, 4])):
        change(rng, rng.choice(entries))
    if rng.random() < 0.1:
        lines[0]["settings"] = json.loads(json.dumps(changed(rng, lines[0]["settings"]), default=lambda _: "b"))
    hashes = {0: ROOT_HASH}
    for entry in entries:
        made = seal(
            seq=entry["seq"],
            parent=entry["parent"],
            parent_hash=hashes.get(entry["parent"], ROOT_HASH),
            kind=entry["kind"],
            id=entry["id"],
            at=float(entry["at"]),
            meta=base64.b64decode(entry["meta"]),
            body=base64.b64decode(entry["body"]),
        )
        hashes[entry["seq"]] = made.hash
        entry["hash"] = base64.b64encode(made.hash).decode()
        entry["body_hash"] = base64.b64encode(made.body_hash).decode()
    return [json.dumps(line).encode() for line in lines]


def use(session: Session, store: MemoryStore) -> None:
    """Do everything with a session that was taken; only errors of ours may say that something is not possible."""

    def attempt(act) -> None:
        try:
            act()
        except WindowsillError as error:
            assert not isinstance(error, DamagedError), error  # noqa: PT017 - any other refusal is fine

    assert session.verify() == []
    assert len(list(session.messages())) > 0
    for act in (
        lambda: (session.folds, session.branches, session.audit, session.calls, session.state.value),
        lambda: session.checkpoints(None),
        lambda: session.compose_sync(system="x").body(),
        lambda: [session.request(call.id) for call in session.calls[:5]],
        lambda: session.add("hi"),
        lambda: session.archive.retrieve("same task", 3),
        lambda: list(export_session(store, "b")),
        lambda: session.explain("m1"),
        lambda: [session.unfold(fold.id) for fold in session.folds[:2]],
        lambda: session.rewind("m1"),
        session.outputs.collect,
        lambda: (session.tools.history_search("same"), session.tools.context_status()),
        lambda: [session.switch(branch.id) for branch in session.branches],
    ):
        attempt(act)


def test_a_hostile_export_is_refused_by_line_or_works(tally):
    """An import never ends in anything but one of our errors, and what is taken can be used."""

    def trial(rng: random.Random) -> list[str]:
        store = MemoryStore()
        try:
            import_session(store, hostile(rng), "b")
        except (InputError, DamagedError) as error:
            tally.count("imports: refused")
            named = str(error).startswith(("line ", "its history ", "setting "))
            return [] if named and store.sessions() == [] else [f"refused without its line, or kept: {error}"]
        with Session.open("b", store=store, config=False) as session:
            use(session, store)
        return []

    tally.run("imports: files", FILES, trial)
    tally.check()


def test_the_file_that_is_changed_here_is_taken_as_it_was():
    """Only what was changed is refused."""
    store = MemoryStore()
    import_session(store, [json.dumps(line).encode() for line in LINES], "b")
    with Session.open("b", store=store) as session:
        use(session, store)
