"""Checkpoints of a session (C2): a name for a moment, the way back to it, and what is forgotten."""

import pytest
from hypothesis import given
from hypothesis import settings as run
from hypothesis import strategies as st

from support.examples import examples
from support.sessions import opened, shown, talk
from windowsill import InputError, NotFoundError, Session, SettingError
from windowsill.session.export import export_session, import_session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.integration


def labels(session):
    return session.journal.store.read(session.id, 1, session.journal.version, kinds=("label",))


def ids(found):
    return [each.id for each in found]


def test_a_checkpoint_says_what_was_there(store):
    """Name, entry, messages hidden or not, tokens of the view, phase, reason."""
    session = opened(store)
    talk(session, 30)
    session.compose_sync()
    session.state.enter("planning")
    made = session.checkpoint("before the repair")
    assert (made.name, made.messages, made.phase, made.reason) == ("before the repair", 61, "planning", "manual")
    assert made.tokens == session.view.tokens()
    assert made.entry == int(made.id[1:]) - 1
    assert session.checkpoints() == [made]


def test_a_checkpoint_is_as_small_after_five_thousand_messages_as_after_ten():
    """It names what is there and copies nothing."""
    sizes = []
    for count in (10, 5_000):
        session = opened(budget=1_000_000)
        session.extend([{"role": "user", "content": f"word {number}"} for number in range(count)])
        assert session.checkpoint("here").messages == count
        sizes += [len(entry.meta) + len(entry.body) for entry in labels(session)]
    # The three numbers that it holds need two bytes more each, and no fourth thing is there.
    assert sizes[1] - sizes[0] <= 6
    assert sizes[1] < 60


def test_a_restored_checkpoint_is_sent_byte_for_byte(store):
    """Folds that were made since, and those that were removed since, are as if they had never been."""
    session = opened(store)
    talk(session, 30)
    session.compose_sync(system="You mend.")
    talk(session, 2, start=30)
    body, seen = session.compose_sync(system="You mend.").body(cache=False), shown(session)
    session.checkpoint("here")
    session.unfold(session.folds[0].id)
    talk(session, 40, start=32)
    assert session.compose_sync(system="You mend.").body(cache=False) != body
    session.restore("here")
    assert shown(session) == seen
    assert session.compose_sync(system="You mend.").body(cache=False) == body
    assert session.verify() == []


@run(max_examples=examples(0.25))
@given(st.lists(st.sampled_from(["talk", "compose", "unfold", "checkpoint", "restore", "rewind"]), max_size=14))
def test_whatever_happens_since_a_checkpoint_shows_what_was_seen_then(steps):
    """And the state and the size are those of then, too."""
    session = opened(budget=900)
    talk(session, 3)
    moments = {}
    for number, step in enumerate(["checkpoint", *steps]):
        match step:
            case "talk":
                talk(session, 4, start=100 * number)
                session.state.put("memory.short_term.variables", {"name": "step", "value": number})
            case "compose":
                session.compose_sync()
            case "unfold":
                [session.unfold(fold.id) for fold in session.folds if fold.active]
            case "checkpoint":
                moments[session.checkpoint().id] = (shown(session), session.view.weight, session.state.value)
            case "restore":
                session.restore(min(moments))
            case "rewind":
                session.rewind(next(session.messages()).id)
    for id, moment in moments.items():
        assert session.restore(id).id == id
        assert (shown(session), session.view.weight, session.state.value) == moment


def test_what_came_after_stays_on_its_branch(store):
    """`switch` returns to it."""
    session = opened(store)
    talk(session, 2)
    session.checkpoint("here")
    talk(session, 2, start=2)
    later = shown(session)
    session.restore("here")
    session.add("Another way.")
    left = next(branch.id for branch in session.branches if branch.messages == 9)
    session.switch(left)
    assert shown(session) == later


def test_the_state_of_that_moment_comes_back(store):
    """It is on the path, as the messages are."""
    session = opened(store)
    session.add("Fix it.")
    session.state.set_goal("Fix the login")
    session.state.enter("planning")
    before = session.state.value
    session.checkpoint("planned")
    session.state.enter("executing")
    session.state.set_goal("Something else")
    session.restore("planned")
    assert session.state.value == before


def test_a_request_that_is_not_written_down_yet_stays_with_its_branch(store):
    """Restoring while it is pending loses neither the request nor the place."""
    session = opened(store)
    talk(session, 2)
    session.checkpoint("here")
    talk(session, 1, start=2)
    left_body = session.compose_sync(system="x").body()
    session.restore("here")
    assert session.calls == []
    session.switch(next(branch.id for branch in session.branches if branch.messages == 7))
    assert [session.request(call.id) for call in session.calls] == [left_body]


def test_a_request_before_a_checkpoint_belongs_to_it(store):
    """It is written before the label, which names it as the last entry."""
    session = opened(store)
    talk(session, 1)
    session.compose_sync()
    made = session.checkpoint()
    talk(session, 1, start=1)
    session.restore(made.id)
    assert [call.id for call in session.calls] == [f"c{made.entry}"]


def test_a_second_checkpoint_of_a_name_takes_it_over(store):
    """The first one is reached by its id, and no longer goes by the name."""
    session = opened(store)
    talk(session, 1)
    first = session.checkpoint("good")
    talk(session, 1, start=1)
    second = session.checkpoint("good")
    assert [(each.id, each.name) for each in session.checkpoints()] == [(second.id, "good"), (first.id, "")]
    assert session.restore("good").messages == 5
    assert session.restore(first.id).messages == 3


def test_one_without_a_name_is_reached_by_its_id_alone(store):
    """An empty name is no name."""
    session = opened(store)
    made = session.checkpoint()
    assert session.restore(made.id) == made
    with pytest.raises(NotFoundError, match=f"has no checkpoint ''; give one of these: {made.id}"):
        session.restore("")


def test_an_unknown_checkpoint_is_told_with_those_there_are(store):
    """The ten newest, and how many more."""
    session = opened(store)
    with pytest.raises(NotFoundError, match="has no checkpoint 'x'; it has none yet"):
        session.restore("x")
    for number in range(12):
        session.checkpoint(f"n{number}")
    with pytest.raises(NotFoundError, match=r"'n11' \(l12\), .*'n2' \(l3\) and 2 more$"):
        session.restore("x")


def test_an_entry_that_is_no_checkpoint_is_not_restored(store):
    """A message, or the label that forgets."""
    session = opened(store)
    talk(session, 1)
    for _ in range(3):
        session.checkpoint()
    session.checkpoints.clean_up(1)
    with pytest.raises(NotFoundError):
        session.restore("m1")
    with pytest.raises(NotFoundError):
        session.restore(labels(session)[-1].id)


@pytest.mark.parametrize(
    ("name", "why"),
    [("l12", "reads like the id"), (" ", "is blank"), ("x" * 501, "has 501 characters"), ("a\0", "not text")],
)
def test_a_name_that_cannot_be_one_is_refused(name, why):
    """And nothing is written."""
    session = opened()
    with pytest.raises(InputError, match=why):
        session.checkpoint(name)
    assert session.checkpoints() == []


def test_a_reason_that_is_none_is_refused():
    """With those there are."""
    with pytest.raises(InputError, match=r"'whim' is not a reason .* manual, phase, time, messages, tokens, forced"):
        opened().checkpoint(reason="whim")


def test_the_last_ten_of_every_branch_are_listed(store):
    """The newest first, whatever branch they are on."""
    session = opened(store)
    talk(session, 1)
    made = [session.checkpoint(f"n{number}") for number in range(6)]
    session.restore("n0")
    session.add("Another way.")
    made += [session.checkpoint(f"o{number}") for number in range(6)]
    assert session.checkpoints() == made[:1:-1]
    assert ids(session.checkpoints(limit=None)) == ids(made[::-1])
    assert ids(session.checkpoints(3)) == ids(made[:-4:-1])
    assert session.checkpoints(0) == []
    with pytest.raises(SettingError, match="setting 'limit' is -1"):
        session.checkpoints(-1)


def test_checkpoints_far_apart_are_all_found():
    """Thousands of entries between them are passed over."""
    session = opened(budget=1_000_000)
    made = []
    for _ in range(3):
        session.extend([{"role": "user", "content": "word"}] * 1_700)
        made.append(session.checkpoint())
    assert session.checkpoints() == made[::-1]


def test_all_but_the_last_ones_are_forgotten(store):
    """C2: five stay. Nothing else goes: the messages are there, and the moment can still be switched to."""
    session = opened(store)
    for number in range(8):
        talk(session, 1, start=number)
        session.checkpoint(f"n{number}")
    messages = [message.id for message in session.messages()]
    oldest = session.checkpoints()[-1]
    assert session.checkpoints.clean_up() == 3
    assert [each.name for each in session.checkpoints()] == ["n7", "n6", "n5", "n4", "n3"]
    with pytest.raises(NotFoundError, match="has no checkpoint 'n2'"):
        session.restore("n2")
    assert [message.id for message in session.messages()] == messages
    session.switch(oldest.id)
    assert len(list(session.messages())) == oldest.messages


def test_forgetting_again_forgets_only_what_is_new(store):
    """And where nothing is to be forgotten, nothing is written."""
    session = opened(store)
    for _ in range(4):
        session.checkpoint()
    assert session.checkpoints.clean_up(2) == 2
    version = session.journal.version
    assert session.checkpoints.clean_up(2) == 0
    assert session.journal.version == version
    session.checkpoint()
    assert session.checkpoints.clean_up(2) == 1
    assert session.checkpoints.clean_up(0) == 2
    assert session.checkpoints() == []
    assert [each.id for each in (session.checkpoint("again"),)] == ids(session.checkpoints())


def test_forgetting_holds_on_every_branch(store):
    """Also after a restore to before it was said."""
    session = opened(store)
    talk(session, 1)
    for number in range(4):
        session.checkpoint(f"n{number}")
    session.checkpoints.clean_up(2)
    session.restore("n2")
    assert [each.name for each in session.checkpoints()] == ["n3", "n2"]


def test_a_thousand_forgotten_checkpoints_are_forgotten_in_few_bytes():
    """It is said up to where, not which."""
    session = opened()
    for _ in range(1_000):
        session.checkpoint()
    assert session.checkpoints.clean_up(keep=1) == 999
    assert len(labels(session)[-1].meta) < 20


def test_a_number_below_zero_is_refused():
    """By its name."""
    with pytest.raises(SettingError, match="setting 'keep' is -1"):
        opened().checkpoints.clean_up(-1)


def test_the_audit_has_checkpoints_restores_and_what_was_forgotten():
    """In the order it happened."""
    session = opened()
    talk(session, 1)
    session.checkpoint("a")
    session.checkpoint()
    session.restore("a")
    session.checkpoints.clean_up(1)
    tokens = session.checkpoints()[0].tokens
    assert [(event.kind, event.what) for event in session.audit] == [
        ("label", f"checkpoint 'a' (manual): 3 messages, {tokens} tokens, initializing"),
        ("label", f"checkpoint (manual): 3 messages, {tokens} tokens, initializing"),
        ("rewind", "went from entry 5 to entry 4: restored checkpoint 'a' (l4)"),
        ("label", "forgot the checkpoints before entry 5"),
    ]


def test_checkpoints_go_through_an_export(store):
    """Names, what was forgotten, and the way back."""
    session = opened(store)
    for number in range(4):
        talk(session, 1, start=number)
        session.checkpoint(f"n{number}")
    session.checkpoints.clean_up(3)
    target = MemoryStore()
    import_session(target, export_session(store, "s"))
    with Session.open("s", store=target) as copy:
        assert copy.checkpoints() == session.checkpoints()
        assert copy.audit == session.audit
        copy.restore("n1")
        session.restore("n1")
        assert shown(copy) == shown(session)
