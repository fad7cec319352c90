"""The record of what is hidden: rules, decisions, marks, failures and open questions outlive every reduction."""

import json

import pytest

from windowsill import Session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.integration

STRATEGIES = [
    *("sliding-window", "condense", "priority", "importance", "mask", "outputs", "tiered", "compact", "summarize"),
    *("extract", "layered", "native", "economy", "mask+condense", "outputs+condense", "mask+importance+condense"),
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
MARKED = ["The contact for the north is Ingrid Vale.", "The contact for the south is Omar Reyes."]
FAILURES = ["Error: gift card balance is not enough", "HTTP 500 from the invoice service", "エラー: 在庫がありません"]
QUESTIONS = ["Open question: who owns the staging cluster?", "Open question: may refunds be split by region?"]


def said_at(turn):
    """The words of the user at a turn, and their marks."""
    if turn % 80 == 30 and turn // 80 < len(MARKED):
        return MARKED[turn // 80], ["important"]
    for every, offset, sentences in ((20, 3, RULES), (80, 10, DECISIONS), (150, 50, QUESTIONS)):
        if turn % every == offset and turn // every < len(sentences):
            return f"{sentences[turn // every]} Please go on with part {turn} of the tables.", []
    return f"Please go on with part {turn} of the migration of the billing tables.", []


def migrate(strategy, turns=400, budget=8_000):
    """A session of so many turns, a request composed at each."""
    session = Session.open("s", model="gpt-4o", budget=budget, store=MemoryStore(), strategy=strategy)
    session.add({"role": "user", "content": "Migrate the billing service to the new cluster, step by step."})
    session.add({"role": "assistant", "content": "I begin."})
    for turn in range(turns):
        words, marks = said_at(turn)
        session.add({"role": "user", "content": words}, marks=marks)
        call = {"name": "move_rows", "arguments": json.dumps({"part": turn})}
        calls = [{"id": f"c{turn}", "type": "function", "function": call}]
        session.add({"role": "assistant", "content": None, "tool_calls": calls})
        failed = turn % 100 == 40 and turn // 100 < len(FAILURES)
        output = (
            FAILURES[turn // 100] if failed else f"moved part {turn}: " + " ".join(f"row{turn}x{n}" for n in range(12))
        )
        session.add({"role": "tool", "tool_call_id": f"c{turn}", "content": output})
        session.compose_sync()
        session.add(
            {"role": "assistant", "content": f"Part {turn} is moved. " + "All counts agree with the source. " * 3}
        )
    session.add({"role": "user", "content": "Now tell me where we stand."})
    return session


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_record_outlives_many_reductions(strategy):
    """S14, H8: after hundreds of turns the request still has every rule, decision, mark, failure and open question."""
    session = migrate(strategy)
    payload = session.compose_sync()
    sent = json.dumps(payload.to("openai")["messages"], ensure_ascii=False)
    assert len(session.folds) >= 9
    missing = [text for text in (*RULES, *DECISIONS, *MARKED, *FAILURES, *QUESTIONS) if text not in sent]
    assert missing == []
    assert "Now tell me where we stand." in sent
    assert payload.tokens <= 8_000


def test_a_fold_that_is_undone_gives_its_record_back():
    """H4: the record travels with each fold, so that the one before tells what it told."""
    session = migrate("condense", turns=80)
    before = [session.view.read(item).text for item in session.view.items]
    session.fold(session.view.items[1].id, session.view.items[-2].id)
    session.unfold(session.folds[-1].id)
    assert [session.view.read(item).text for item in session.view.items] == before


def test_a_fold_by_hand_tells_the_record():
    """A user's own fold without a text loses no rule either; one with a text keeps the record for the next fold."""
    session = migrate("sliding-window", turns=30, budget=100_000)
    ids = [item.id for item in session.view.items]
    session.fold(ids[1], ids[40], text="They moved the first parts.")
    session.fold(ids[41], ids[100])
    session.fold(session.view.items[1].id, session.view.items[2].id)
    shown = session.view.read(session.view.items[1]).text
    assert RULES[0] in shown
    assert RULES[1] in shown
    assert "They moved the first parts." in shown
