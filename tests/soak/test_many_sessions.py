"""Many sessions in one store, made, written to and deleted by several writers at once: `SOAK=40` makes 10,000."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.soak import SCALE, SEED, Tally
from support.stores import STORES
from windowsill import Session
from windowsill.search import Archive
from windowsill.session.integrity import problems

pytestmark = pytest.mark.integration

SESSIONS = min(10_000, 40 * SCALE * SCALE)
WRITERS = 4
MOST = 5
"""Messages of a session."""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_every_session_holds_its_own_messages(tally: Tally, tmp_path, kind: str):
    """Whatever the others do: nothing is lost, doubled or found in another session, and what was deleted is gone."""
    store = STORES[kind](tmp_path)

    def fill(number: int) -> tuple[str, list[str]]:
        rng, name = random.Random(SEED * 1_000_003 + number), f"session {number}"
        said = [f"{number} says {place} of {rng.getrandbits(64)}" for place in range(rng.randint(1, MOST))]
        for text in said:
            with Session.open(name, store=store, model="gpt-4o", config=False) as session:
                session.add(text)
        if rng.random() < 0.1:
            store.delete(name)
            said = []
        return name, said

    with ThreadPoolExecutor(WRITERS) as pool:
        expected = {name: said for name, said in pool.map(fill, range(SESSIONS)) if said}
    listed = {info.id: info for info in store.sessions()}
    wrong = [f"{name!r} is listed or left out wrongly" for name in listed.keys() ^ expected.keys()]
    for name in listed.keys() & expected.keys():
        with Session.open(name, store=store, config=False) as session:
            if [message.text for message in session.messages()] != expected[name]:
                wrong.append(f"{name!r} has other messages")
        wrong += problems(store, listed[name])
    tally.count(f"{kind}: sessions in one store", [*wrong, *store.check()], tried=SESSIONS)
    name = max(expected)
    found = Archive(store, name).retrieve(expected[name][-1], 1)
    assert [each.text for each in found] == expected[name][-1:]
    store.close()
    tally.check()
