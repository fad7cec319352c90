"""How much of what a question needs the archive finds, and what indexing and asking cost."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import best_of, show, stopwatch
from bench.trace import turns
from windowsill import Session
from windowsill.messages import text_message
from windowsill.search import Archive, WordLlama
from windowsill.search.query import query_terms
from windowsill.store.memory import MemoryStore
from windowsill.store.sqlite import SQLiteStore
from windowsill.store.sqlite.connections import connect
from windowsill.store.sqlite.fts import match_expression
from windowsill.store.sqlite.migrate import create
from windowsill.tokens import counter

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo-dev.json.gz"
BUDGETS = (2_000, 4_000, 8_000)
PLAIN = (0.78, 0.83, 0.87)
MEANT = (0.82, 0.88, 0.92)
ROUNDS = 3
QUESTION = "why does the payment gateway retry after a timeout in the ledger worker?"


def conversations():
    """Each conversation's messages, and its questions with the ids of the turns that hold the evidence."""
    for each in json.loads(gzip.decompress(DATA.read_bytes())):
        said = each["conversation"]
        messages = []
        for number in range(1, len(said)):
            at = said.get(f"session_{number}_date_time")
            when = datetime.strptime(at, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp() if at else 0.0
            messages += [_message(turn, said, when) for turn in said.get(f"session_{number}", [])]
        known = {message.id for message in messages}
        asked = []
        for question in each["qa"]:
            needed = set(re.findall(r"D\d+:\d+", " ".join(question.get("evidence", [])))) & known
            asked.append((question["question"], needed))
        yield each["sample_id"], messages, asked


def _message(turn, said, when):
    caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    role = "user" if turn["speaker"] == said["speaker_a"] else "assistant"
    about = {"speaker": turn["speaker"]}
    return text_message(role, turn["text"] + caption, id=turn["dia_id"], at=when, metadata=about)


def recalled(embedder) -> tuple[list[float], int, int]:
    """Return the share of questions all of whose evidence is in the recalled text, for each budget."""
    count = counter("o200k_base").count
    hits, total, without = [0] * len(BUDGETS), 0, 0
    for name, messages, asked in conversations():
        store = MemoryStore()
        with Session.open(name, model="gpt-4o", store=store) as session:
            session.extend(messages)
            with Archive(store, name, embedder=embedder, count=count) as archive:
                for question, needed in asked:
                    without += not needed
                    total += bool(needed)
                    for place, budget in enumerate(BUDGETS if needed else ()):
                        found = archive.retrieve(question, budget=budget)
                        assert sum(count(each.text) for each in found) <= budget
                        hits[place] += needed <= {each.message_id for each in found}
    return [hit / total for hit in hits], total, without


def _evidence() -> None:
    if not DATA.exists():
        show("recall", "not here", f"looked for {DATA.name} in ../shared/data")
        return
    for what, embedder, targets in (("words", None, PLAIN), ("words and meaning", WordLlama(), MEANT)):
        shares, total, without = recalled(embedder)
        for budget, share, target in zip(BUDGETS, shares, targets, strict=True):
            figure = f"all evidence of {total} questions in {budget:,} tokens, by {what}"
            show(figure, f"{share:.3f}", f">= {target} ({without} without evidence left out)", met=share >= target)


def _texts(count: int) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    for assistant, results in turns(count):
        messages += [assistant, *results]
        if len(messages) >= count:
            break
    return messages[:count]


def _bare(path: Path, texts: list[str]) -> sqlite3.Connection:
    """Keep the same text in nothing but a full-text table, as safely kept."""
    create(path)
    db = connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE VIRTUAL TABLE bare USING fts5 (words, tokenize = 'porter unicode61 remove_diacritics 2')")
    for start in range(0, len(texts), 1_000):
        db.execute("BEGIN")
        db.executemany("INSERT INTO bare (words) VALUES (?)", [(text,) for text in texts[start : start + 1_000]])
        db.execute("COMMIT")
    return db


def _filled(path: Path, count: int) -> SQLiteStore:
    store = SQLiteStore(path)
    with Session.open("speed", model="gpt-4o", store=store) as session:
        session.extend(_texts(count))
    return store


def _passages(store: SQLiteStore) -> list[str]:
    with closing(sqlite3.connect(store.path)) as db:
        return [text for (text,) in db.execute("SELECT coalesce(text, words) FROM passage ORDER BY key")]


def _indexing(folder: Path, count: int) -> None:
    """Both in turn, several times: the shortest of each is the least disturbed."""
    made = _filled(folder / "made.db", count)
    made.close()
    ours, bare = [], []
    for turn in range(ROUNDS):
        copy = folder / f"{turn}.db"
        copy.write_bytes(made.path.read_bytes())
        store = SQLiteStore(copy)
        with Archive(store, "speed") as archive, stopwatch() as taken:
            archive.catch_up()
        ours.append(taken[0])
        texts = _passages(store)
        store.close()
        with stopwatch() as taken:
            _bare(folder / f"bare{turn}.db", texts).close()
        bare.append(taken[0])
    ratio = min(bare) / min(ours)
    show(f"indexing {count:,} messages, of the speed of bare inserts", f"{ratio:.2f} x", ">= 0.5", met=ratio >= 0.5)


def _asking(folder: Path, count: int) -> None:
    import numpy as np

    store = _filled(folder / "asked.db", count)
    archive = Archive(store, "speed")
    archive.catch_up()
    texts = _passages(store)
    bare = _bare(folder / "bare.db", texts)
    embedder = WordLlama()
    meant = Archive(store, "speed", embedder=embedder)
    meant.catch_up()
    matrix = np.ones((len(texts), embedder.dimensions), np.float32)
    wanted = matrix[0].copy()
    statement = "SELECT rowid FROM bare WHERE bare MATCH ? ORDER BY rank LIMIT 200"
    plain, asked, product, more = _in_turn(
        lambda: bare.execute(statement, (match_expression(query_terms(QUESTION)),)).fetchall(),
        lambda: archive.retrieve(QUESTION),
        lambda: matrix @ wanted,
        lambda: meant.retrieve(QUESTION),
    )
    ratio = asked / plain
    show(f"a question over {count:,} messages, against bare FTS5", f"{ratio:.2f} x", "<= 2", met=ratio <= 2)
    ratio = more / (2 * plain + 2 * product)
    figure = f"with vectors, of twice bare FTS5 and twice the product of {len(texts):,}"
    show(figure, f"{ratio:.2f}", "<= 1", met=ratio <= 1)
    show("bare words, words, product, words and meaning", "", _times(plain, asked, product, more))


def _in_turn(*actions) -> list[float]:
    """Return the shortest of several runs of each, in turns, so that a busy machine is busy for all of them."""
    return [min(times) for times in zip(*([best_of(1, action) for action in actions] for _ in range(7)), strict=True)]


def _times(*seconds: float) -> str:
    return ", ".join(f"{each * 1000:.1f} ms" for each in seconds)


def run(*, quick: bool) -> None:
    """Print the figures."""
    _evidence()
    with tempfile.TemporaryDirectory() as folder:
        _indexing(Path(folder), 5_000 if quick else 20_000)
        _asking(Path(folder), 10_000 if quick else 100_000)
