"""The digest: joined, capped, and kept as plain JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.summaries.digest import (
    CAPS,
    CHARACTERS,
    Command,
    Digest,
    Excerpt,
    Failure,
    File,
    Quote,
    Sentence,
    Task,
    add_range,
    dump,
    load,
    merge,
    merge_stored,
)

pytestmark = pytest.mark.unit

few = st.sampled_from(["a", "b", "c", "d"])
ranges = st.lists(st.tuples(st.integers(1, 9), st.integers(9, 20)), max_size=2).map(tuple)
digests = st.builds(
    Digest,
    messages=st.integers(0, 9),
    requests=st.lists(st.builds(Quote, text=few, id=few), max_size=4),
    rules=st.lists(st.builds(Quote, text=few, id=few), max_size=4),
    files=st.lists(st.builds(File, path=few, read=ranges, changes=st.integers(0, 3)), max_size=4),
    commands=st.lists(st.builds(Command, command=few, failed=st.booleans()), max_size=4),
    errors=st.lists(st.builds(Failure, text=few, source=few, fix=st.sampled_from(["", "e"])), max_size=4),
    tasks=st.lists(st.builds(Task, text=few, status=st.sampled_from(["pending", "done"])), max_size=4),
    sentences=st.lists(st.builds(Sentence, text=few, score=st.just(1.0)), max_size=4),
)


@given(digests, digests, digests)
def test_merging_is_associative_within_the_caps(first, second, third):
    """It does not matter which folds are merged first."""
    assert merge(merge(first, second), third) == merge(first, merge(second, third))


@given(digests, digests)
def test_merging_is_deterministic_and_gives_plain_json(first, second):
    """A merged digest survives JSON, and comes out the same each time."""
    whole = merge(first, second)
    assert load(json.loads(json.dumps(dump(whole)))) == whole == merge(first, second)


def test_the_same_file_is_one_entry_with_all_its_ranges():
    """Ranges are joined where they touch, and changes are counted together."""
    older = Digest(files=[File(path="a.py", read=((1, 40),), changes=1), File(path="b.py", changes=1)])
    newer = Digest(files=[File(path="a.py", read=((30, 60), (90, 95)), changes=2, id="m9")])
    assert merge(older, newer).files == [
        File(path="b.py", changes=1),
        File(path="a.py", read=((1, 60), (90, 95)), changes=3, id="m9"),
    ]


def test_a_whole_file_takes_all_ranges_in():
    """After the whole file was read, its ranges say nothing more."""
    assert add_range(((5, 9),), (1, 0)) == ((1, 0),)
    assert add_range(((1, 0),), (5, 9)) == ((1, 0),)


def test_a_command_that_ran_again_keeps_its_newest_end():
    """How a command ended last is what counts."""
    older = Digest(commands=[Command(command="make", failed=True, exit=2)])
    newer = Digest(commands=[Command(command="make", failed=False)])
    assert merge(older, newer).commands == [Command(command="make", failed=False, times=2)]


def test_a_fix_is_not_forgotten():
    """An error that was fixed once stays fixed when it is told of again."""
    fixed, open_again = Failure(text="boom", fix="changed a.py"), Failure(text="boom")
    assert merge(Digest(errors=[fixed]), Digest(errors=[open_again])).errors == [fixed]


def test_the_first_requests_are_never_pushed_out():
    """What a conversation is about is said at its start."""
    whole = Digest()
    for number in range(500):
        whole = merge(whole, Digest(requests=[Quote(text=f"wish {number}", id=str(number))]))
    assert [quote.id for quote in whole.requests[:3]] == ["0", "1", "102"]
    assert len(whole.requests) == CAPS["requests"]


def test_every_list_has_its_cap():
    """A digest does not grow with the session."""
    whole = merge(Digest(), Digest(rules=[Quote(text=str(number)) for number in range(1_000)]))
    assert [rule.text for rule in whole.rules] == [str(number) for number in range(1_000 - CAPS["rules"], 1_000)]


def test_open_tasks_stay_before_done_ones():
    """When a plan is too long, what is done goes first."""
    done = [Task(text=f"d{number}", status="completed") for number in range(CAPS["tasks"])]
    whole = merge(Digest(tasks=[Task(text="open", status="pending")]), Digest(tasks=done))
    assert whole.tasks[0].text == "open"
    assert len(whole.tasks) == CAPS["tasks"]


def test_excerpts_share_a_number_of_characters():
    """The newest excerpts stay."""
    half = CHARACTERS["excerpts"] // 2
    held = [Excerpt(path=name, text=name * half) for name in "abc"]
    assert [one.path for one in merge(Digest(), Digest(excerpts=held)).excerpts] == ["b", "c"]


def test_kept_digests_are_merged_in_their_own_form():
    """Whoever folds merges what the folds kept, without knowing what is inside."""
    first, second = dump(Digest(messages=2)), dump(Digest(messages=3))
    assert merge_stored([first, second]) == {"messages": 5}


@pytest.mark.parametrize("kept", [{"files": "none"}, {"rules": [1]}, {"messages": None}])
def test_a_digest_that_is_none_of_ours_is_left_aside(kept):
    """What another program put there costs no turn."""
    assert load(kept) == Digest()
