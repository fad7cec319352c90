"""The record of what is hidden: rules, decisions, marks, failures and open questions outlive every reduction."""

import json

import pytest

from windowsill import Session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.integration

STRATEGIES = [
    *("economy", "sliding-window", "condense", "priority", "importance", "mask", "outputs", "tiered", "compact"),
    *("summarize", "extract", "layered", "native", "mask+condense", "outputs+condense", "mask+importance+condense"),
]

RULES = [
    f"You must never touch the table billing_{letter}{letter} without a backup." for letter in "abcdefghijklmnopqrst"
]
DECISIONS = [
    "We decided to use Redis for the cache.",
    "We decided to use Kafka for the event log.",
    "We decided to use Postgres for the ledger.",
    "We decided to use Terraform for the clusters.",
]
OWN_DECISIONS = ["We chose nightly backups over hourly ones.", "We settled on two replicas for each shard."]
"""Decisions that the assistant states."""
MARKED = ["The contact for the north is Ingrid Vale.", "The contact for the south is Omar Reyes."]
FAILURES = ["Error: gift card balance is not enough", "HTTP 500 from the invoice service", "エラー: 在庫がありません"]
QUESTIONS = ["Open question: who owns the staging cluster?", "Open question: may refunds be split by region?"]
INSTRUCTIONS = ["From here on answer in British English.", "The window for deployments closes at 17:00 UTC."]
RUNNING = "Now move what is left, and report for each part: " + ", ".join(f"check {n} of the list" for n in range(40))

REDUCTIONS = 20
LAST_REQUEST = 14
"""After so many reductions the user asks for the last thing; its tool loop runs until the end."""


class Migration:
    """A session that is told rules, decisions and the like in its first turns, and reduced again and again."""

    def __init__(self, strategy, budget=8_000):
        self.session = Session.open("s", model="gpt-4o", budget=budget, store=MemoryStore(), strategy=strategy)
        self.add("user", "Migrate the billing service to the new cluster, step by step.")
        self.add("assistant", "I begin.")
        self.turns = self.reductions = 0

    def add(self, role, content, marks=(), **fields):
        self.session.add({"role": role, "content": content, **fields}, marks=marks)

    def compose(self):
        payload = self.session.compose_sync()
        self.reductions += bool(payload.report.folds)
        return payload

    def step(self, words=300):
        """One call and its result."""
        number = self.turns = self.turns + 1
        call = {"name": "move_rows", "arguments": json.dumps({"part": number})}
        self.add("assistant", None, tool_calls=[{"id": f"c{number}", "type": "function", "function": call}])
        output = f"moved part {number}: " + " ".join(f"row{number}x{n}" for n in range(words // 6))
        if number % 7 == 4 and number // 7 < len(FAILURES):
            output = FAILURES[number // 7]
        self.add("tool", output, tool_call_id=f"c{number}")
        return self.compose()

    def turn(self):
        """A request, a call with its result, and an answer."""
        number = self.turns
        if number < len(RULES):
            self.add("user", f"{RULES[number]} Please go on with part {number} of the tables.")
        else:
            self.add("user", f"Please go on with part {number} of the migration of the billing tables.")
        for offset, sentences in ((2, DECISIONS), (3, QUESTIONS)):
            if number % 5 == offset and number // 5 < len(sentences):
                self.add("user", f"{sentences[number // 5]} Tell me when part {number} is done.")
        if number % 6 == 1 and number // 6 < len(MARKED):
            self.add("user", MARKED[number // 6], marks=["important"])
        if number % 8 == 4 and number // 8 < len(INSTRUCTIONS):
            self.add("developer", INSTRUCTIONS[number // 8])
        self.step()
        decided = OWN_DECISIONS[number // 9] + " " if number % 9 == 2 and number // 9 < len(OWN_DECISIONS) else ""
        self.add("assistant", f"Part {number} is moved. {decided}" + "All counts agree with the source. " * 3)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_record_outlives_twenty_reductions(strategy):
    """S14, H8: every rule, decision, mark, failure and open question, the instructions and the request are there."""
    migration = Migration(strategy)
    while migration.reductions < LAST_REQUEST:
        migration.turn()
    migration.add("user", RUNNING)
    while migration.reductions < REDUCTIONS:
        payload = migration.step()
    sent = json.dumps(payload.to("openai")["messages"], ensure_ascii=False)
    wanted = (*RULES, *DECISIONS, *OWN_DECISIONS, *MARKED, *FAILURES, *QUESTIONS, *INSTRUCTIONS, RUNNING)
    assert [text for text in wanted if text not in sent] == []
    assert payload.tokens <= 8_000
    assert migration.turns < 40 * REDUCTIONS


def test_a_fold_that_is_undone_gives_its_record_back():
    """H4: the record travels with each fold, so that the one before tells what it told."""
    migration = Migration("condense")
    for _ in range(60):
        migration.turn()
    session = migration.session
    before = [session.view.read(item).text for item in session.view.items]
    places = [place for place, item in enumerate(session.view.items) if item.role == "system"]
    session.fold(session.view.items[places[-1] + 1].id, session.view.items[-2].id)
    session.unfold(session.folds[-1].id)
    assert [session.view.read(item).text for item in session.view.items] == before


def test_a_fold_by_hand_tells_the_record():
    """A user's own fold without a text loses no rule either; one with a text keeps the record for the next fold."""
    session = Migration("sliding-window", budget=100_000).session
    for number in range(20):
        session.add({"role": "user", "content": f"{RULES[number // 10]} Please go on."})
        session.add({"role": "assistant", "content": "It is moved. " * 30})
    ids = [item.id for item in session.view.items]
    session.fold(ids[1], ids[20], text="They moved the first parts.")
    session.fold(ids[21], ids[40])
    session.fold(session.view.items[1].id, session.view.items[2].id)
    shown = session.view.read(session.view.items[1]).text
    assert RULES[0] in shown
    assert RULES[1] in shown
    assert "They moved the first parts." in shown


def test_the_record_between_messages_that_stay_is_told_elsewhere():
    """What is hidden between two instructions is too small for a text of its own: the largest span tells its rules."""
    session = Session.open("s", model="gpt-4o", budget=3_000, store=MemoryStore(), strategy="sliding-window")
    session.add({"role": "user", "content": "Move the tables."})
    for number, rule in enumerate(RULES[:8]):
        session.add({"role": "user", "content": rule})
        session.add({"role": "assistant", "content": f"I keep to rule {number}, " + "as I was told. " * 12})
        session.add({"role": "developer", "content": f"Instruction {number} stays."})
    for number in range(60):
        session.add({"role": "user", "content": f"Go on with part {number}."})
        session.add({"role": "assistant", "content": f"Part {number} is moved. " * 12})
        payload = session.compose_sync()
    sent = json.dumps(payload.to("openai")["messages"])
    assert len(session.folds) > 1
    assert [rule for rule in RULES[:8] if rule not in sent] == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_decision_of_the_assistant_outlives_a_long_stretch(strategy):
    """However many messages the first fold hides: an early decision is among what is told of them."""
    session = Session.open("s", model="gpt-4o", budget=6_000, store=MemoryStore(), strategy=strategy)
    session.add({"role": "user", "content": "Build the service."})
    session.add({"role": "assistant", "content": "We decided to use Redis for the queue."})
    for number in range(120):
        session.add({"role": "user", "content": f"Go on with part {number}."})
        session.add({"role": "assistant", "content": f"Part {number} is built. " + "row " * 60})
        payload = session.compose_sync()
    assert session.folds
    assert "We decided to use Redis for the queue." in json.dumps(payload.to("openai"))
