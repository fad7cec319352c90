import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.archives import DAY, asked, said
from support.conversations import result, use
from windowsill import Session
from windowsill.errors import InputError, NotFoundError, SettingError
from windowsill.messages import text_message
from windowsill.search import Archive, Ranking
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.contract


def test_a_question_finds_what_was_said(store):
    """A hit knows its message, its entry, who said it and when."""
    said("My bicycle is green.", "Noted.", "The weather is fine.", store=store)
    with Archive(store, "s") as archive:
        found = archive.retrieve("what colour is the bicycle", 1)[0]
    assert (found.text, found.role, found.session, found.score) == ("My bicycle is green.", "user", "s", 1.0)
    assert store.find("s", found.message_id).seq == found.seq
    assert not found.neighbour


def test_what_was_added_since_is_found_at_the_next_question(store):
    """The index catches up by itself, with nothing to do when a message is added."""
    said("one apple", store=store)
    assert asked(store, "apple pear") == ["one apple"]
    said("one pear", store=store, at=2_000.0)
    assert asked(store, "pear", 1) == ["one pear"]


def test_a_question_that_nothing_answers_finds_nothing(store):
    """There is no answer at any price."""
    said("one apple", store=store)
    assert asked(store, "zebra") == []
    assert asked(store, "?!") == []


def test_what_stands_there_letter_for_letter_comes_first(store):
    """Who asks for a path means that path, however often others share its words."""
    others = [f"see the config of app {number}: app/config and config.py" for number in range(30)]
    said(*others, "it is in src/app/config.py", *others, store=store)
    assert asked(store, "src/app/config.py", 1) == ["it is in src/app/config.py"]


def test_neighbours_of_a_hit_come_with_it(store):
    """The answer to a question that was found stands beside it, and says that it is only a neighbour."""
    said("What is your sister called?", "Margaret.", store=store)
    with Archive(store, "s") as archive:
        found = archive.retrieve("sister", budget=100)
    assert [(each.text, each.neighbour) for each in found] == [
        ("What is your sister called?", False),
        ("Margaret.", True),
    ]


def test_a_budget_holds_as_many_as_fit(store):
    """The best come first, and one that is too large gives way to a smaller one."""
    said("kiwi " + "x " * 100, "kiwi kiwi kiwi", "something kiwi else", store=store)
    with Archive(store, "s", count=lambda text: len(text.split())) as archive:
        found = archive.retrieve("kiwi", budget=12)
    assert {each.text for each in found} == {"kiwi kiwi kiwi", "something kiwi else"}
    assert sum(len(each.text.split()) for each in found) <= 12


def test_k_limits_the_answer(store):
    """Five passages unless told otherwise."""
    said(*(f"plum number {'abcdefgh'[place]}" for place in range(8)), store=store)
    assert len(asked(store, "plum")) == 5
    assert len(asked(store, "plum", 2)) == 2
    assert len(asked(store, "plum", budget=1_000)) == 8


def test_an_answer_can_be_in_the_order_it_was_said(store):
    """A reader may want the conversation rather than the ranking."""
    said("fig", "grapes and nothing", "fig fig and grapes", store=store)
    with Archive(store, "s") as archive:
        found = archive.retrieve("fig grapes", by_time=True)
    assert [each.at for each in found] == sorted(each.at for each in found)
    assert max(found, key=lambda each: each.score).text == "fig fig and grapes"


def agent(store):
    with Session.open("s", store=store, model="claude-sonnet-4-5", clock=lambda: 5_000.0) as session:
        session.add({"role": "user", "content": "look at lemon.txt"})
        session.add({"role": "assistant", "content": [use("t1") | {"name": "read", "input": {"path": "lemon.txt"}}]})
        session.add(
            {"role": "user", "content": [result("t1", "\n".join(f"lemon line {n} " + "pad " * 20 for n in range(90)))]}
        )


def test_filters_choose_by_role_and_tool(store):
    """A tool's result is of role `tool` and of the tool that was called."""
    agent(store)
    with Archive(store, "s") as archive:
        assert {each.role for each in archive.retrieve("lemon", 50)} == {"user", "assistant", "tool"}
        assert {each.role for each in archive.retrieve("lemon", 50, roles=["user"])} == {"user"}
        assert {(each.role, each.tool) for each in archive.retrieve("lemon", 50, tools=["read"])} == {
            ("assistant", "read"),
            ("tool", "read"),
        }
        assert archive.retrieve("lemon", tools=["write"]) == []


def test_a_long_output_is_found_by_its_lines(store):
    """A hit in a long output is a few of its lines, and knows which."""
    agent(store)
    with Archive(store, "s") as archive:
        found = archive.retrieve("lemon line 57", 1, roles=["tool"])[0]
    first, last = found.lines
    assert first <= 58 <= last
    assert last - first < 20
    assert found.text.startswith(f"lemon line {first - 1} ")


def test_filters_choose_by_time_and_entry(store):
    """`after` is included, `before` is not, `within` names entries of the journal."""
    said("cherry a", "cherry b", "cherry c", store=store)
    with Archive(store, "s") as archive:
        times = [found.at for found in archive.retrieve("cherry", by_time=True)]
        seqs = [found.seq for found in archive.retrieve("cherry", by_time=True)]
        chosen = archive.retrieve("cherry", after=times[1], before=times[2])
        inside = archive.retrieve("cherry", within=[(seqs[0], seqs[0]), (seqs[2], seqs[2])], by_time=True)
    assert [found.text for found in chosen] == ["cherry b"]
    assert [found.text for found in inside] == ["cherry a", "cherry c"]


@pytest.mark.parametrize(
    "chosen",
    [{"roles": ["assistant"]}, {"after": 2}, {"within": [(2, 99)]}, {"sessions": ["s"], "roles": ["assistant"]}],
)
def test_filters_choose_before_the_best_are_taken(store, chosen):
    """What is left out takes no place from what is not, in this session or another."""
    said("cherry cherry cherry", "a single cherry among other fruit", store=store)
    said("cherry", "cherry cherry", store=store, id="other", at=100_000.0)
    if "after" in chosen:
        chosen = {"after": store.read("s", chosen["after"], chosen["after"])[0].at}
    with Archive(store, "s", ranking=Ranking(candidates=1, near=())) as archive:
        assert [found.text for found in archive.retrieve("cherry", **chosen)] == ["a single cherry among other fruit"]
    with Archive(store, "s", scope="all", ranking=Ranking(candidates=1, near=())) as archive:
        found = archive.retrieve("cherry", **{"sessions": ["s"], **chosen})
        assert [each.text for each in found] == ["a single cherry among other fruit"]


def test_a_date_in_a_question_raises_what_was_said_then(store):
    """Of two that match alike, the one of the time asked for comes first."""
    said("we ate mango", store=store, at=400 * DAY)
    said("then we ate mango salad", store=store, at=410 * DAY)
    assert asked(store, "when did we eat mango yesterday?", 1, now=411 * DAY + 10.0) == ["then we ate mango salad"]
    assert asked(store, "when did we eat mango 11 days ago?", 1, now=411 * DAY + 10.0) == ["we ate mango"]


def test_the_one_a_question_names_comes_first(store):
    """A speaker's own words answer a question about the speaker."""
    ann = text_message("user", "I like melon best.", metadata={"speaker": "Ann"})
    bob = text_message("user", "I like melon best, Ann.", metadata={"speaker": "Bob"})
    said(bob, "ok", ann, store=store)
    assert asked(store, "What does Ann like best, melon?", 1) == ["Ann: I like melon best."]


def test_what_is_said_twice_is_found_once(store):
    """Repetitions are named, not shown, so that a budget holds something else."""
    said("the peach is ripe today", "yes", "The peach is ripe today!", store=store)
    with Archive(store, "s") as archive:
        found = archive.retrieve("peach ripe", budget=500)
    assert [each.text for each in found].count("yes") == 1
    assert len(found) == 2
    assert len(found[0].also) == 1


def test_what_no_journal_holds_can_be_stored(store):
    """A stored fact is found with the ids it was made from."""
    said("hello", store=store)
    with Archive(store, "s") as archive:
        ids = archive.store(
            ["The customer prefers papaya.", {"role": "user", "content": "guava"}], source="fact", sources=["m1"]
        )
        found = archive.retrieve("papaya", 1)[0]
    assert (found.message_id, found.source, found.sources, found.seq) == (ids[0], "fact", ("m1",), None)
    assert len(set(ids)) == 2


def test_storing_under_the_same_id_replaces(store):
    """A fact that changed is found only as it is now."""
    said("hello", store=store)
    with Archive(store, "s") as archive:
        archive.store([text_message("user", "balance of lychee 120", id="f")])
        assert archive.store([text_message("user", "balance of lychee 95", id="f")]) == ["f"]
        assert [found.text for found in archive.retrieve("lychee")] == ["balance of lychee 95"]


def test_storing_needs_a_session(store):
    """What is stored belongs to a session that exists."""
    with Archive(store, "nobody") as archive, pytest.raises(NotFoundError):
        archive.store(["x"])


def test_a_session_that_is_not_there_has_no_answers(store):
    """A question to an empty archive is answered with nothing."""
    assert asked(store, "anything", session="nobody", scope="all") == []


def test_a_rewound_branch_is_found_and_says_so(store):
    """What was left by a rewind is still within reach."""
    with Session.open("s", store=store, model="gpt-4o", clock=lambda: 9_000.0) as session:
        kept = session.add({"role": "user", "content": "keep the quince"})
        session.add({"role": "assistant", "content": "dropped quince jam"})
        session.rewind(kept)
    with Archive(store, "s") as archive:
        found = {each.text: each.abandoned for each in archive.retrieve("quince")}
    assert found == {"keep the quince": False, "dropped quince jam": True}


def test_a_summary_is_found_with_what_it_stands_for(store):
    """A fold's summary names the entries it covers; the messages under it are found as before."""
    with Session.open("s", store=store, model="gpt-4o", clock=lambda: 9_000.0) as session:
        for text in ("count them", "apricot one", "apricot two", "apricot three", "go on"):
            session.add({"role": "user", "content": text})
        ids = [item.id for item in session.view.items][1:]
        session.fold(ids[0], ids[2], text="summary: the apricots were counted")
        first, last = (store.find("s", id).seq for id in (ids[0], ids[2]))
    with Archive(store, "s") as archive:
        found = {each.text: each for each in archive.retrieve("apricots counted")}
    assert found["summary: the apricots were counted"].covers == (first, last)
    assert found["summary: the apricots were counted"].source == "summary"
    assert "apricot one" in found


def test_a_marker_is_no_summary(store):
    """What only says that something was cut is not found in the place of what was cut."""
    with Session.open("s", store=store, model="gpt-4o", clock=lambda: 9_000.0) as session:
        for text in ("count them", "apricot one " + "stone " * 150, "apricot two " + "leaf " * 150, "go on"):
            session.add({"role": "user", "content": text})
        session.fold(session.view.items[1].id, session.view.items[2].id)
    with Archive(store, "s") as archive:
        assert {each.source for each in archive.retrieve("apricot messages hidden", 50)} == {"message"}


def test_what_was_recalled_is_not_found_again(store):
    """A message that repeats what the archive found does not come back as an answer."""
    again = text_message("user", "recalled: the tangerine", metadata={"windowsill": "recalled"})
    said("the tangerine", again, store=store)
    assert asked(store, "tangerine") == ["the tangerine"]


def test_forgetting_removes_what_was_said_until_now(store):
    """A session is forgotten once, and what it says later is found."""
    said("old durian", store=store)
    with Archive(store, "s") as archive:
        archive.store(["stored durian"])
        archive.forget()
        assert archive.retrieve("durian") == []
        said("new durian", store=store, at=9_000.0)
        assert [found.text for found in archive.retrieve("durian")] == ["new durian"]


def test_only_a_session_in_scope_can_be_forgotten(store):
    """An archive cannot reach beyond its scope."""
    said("a", store=store)
    said("olive", store=store, id="other")
    with Archive(store, "s") as archive, pytest.raises(NotFoundError):
        archive.forget("other")
    assert asked(store, "olive", session="other") == ["olive"]


def test_rebuilding_gives_the_same_answers(store):
    """The index is made from the journal; what was stored by hand stays."""
    said("fresh coconut", "dried coconut", store=store)
    with Archive(store, "s") as archive:
        archive.store(["stored coconut"], at=1.0)
        before = archive.retrieve("coconut")
        archive.rebuild()
        assert archive.retrieve("coconut") == before
        assert len(before) == 3


def test_a_new_session_under_an_old_name_begins_empty(store):
    """What a deleted session said is not found in its successor."""
    said("secret pomelo", "more pomelo", store=store)
    assert len(asked(store, "pomelo")) == 2
    store.delete("s")
    said("public", store=store)
    assert asked(store, "pomelo") == []


def test_wrong_calls_say_so(store):
    """A scope that does not exist and a number below one are refused."""
    with pytest.raises(SettingError):
        Archive(store, "s", scope="planet")
    with Archive(store, "s") as archive, pytest.raises(InputError):
        archive.retrieve("x", 0)


def test_the_weights_are_settings(store):
    """Without a share for neighbours there are none."""
    said("question about nectarine", "answer", store=store)
    with Archive(store, "s", ranking=Ranking(near=())) as archive:
        assert [found.text for found in archive.retrieve("nectarine")] == ["question about nectarine"]


WHO = st.sampled_from([None, "ann", "bob", ""])


@given(
    sessions=st.lists(st.tuples(WHO, WHO), min_size=1, max_size=5),
    scope=st.sampled_from(["session", "project", "user", "all"]),
    sessions_asked=st.none() | st.lists(st.sampled_from(["s0", "s1", "s2", "x"])),
)
def test_nothing_outside_the_scope_is_ever_found(sessions, scope, sessions_asked):
    """A passage found belongs to this session, or to one that names the same project or user."""
    store = MemoryStore()
    for place, (user, project) in enumerate(sessions):
        named = {key: value for key, value in (("user", user), ("project", project)) if value is not None}
        said("raisin " + "abcde"[place], "sultana", store=store, id=f"s{place}")
        store.set_settings(f"s{place}", json.dumps(named).encode())
    with Archive(store, "s0", scope=scope) as archive:
        found = {each.session for each in archive.retrieve("raisin", 50, sessions=sessions_asked)}
    own = {"user": sessions[0][0], "project": sessions[0][1]}
    allowed = {
        f"s{place}"
        for place, (user, project) in enumerate(sessions)
        if place == 0 or scope == "all" or (own.get(scope) and {"user": user, "project": project}[scope] == own[scope])
    }
    assert found == (allowed if sessions_asked is None else allowed & set(sessions_asked))


def test_words_in_this_order_are_found_among_many_that_have_them(store):
    """A literal stands first however many other passages are made of its words."""
    others = [f"status status git git {number}" for number in range(30)]
    said(*others, "a long text in which somebody runs git status " + "and more " * 50, *others, store=store)
    with Archive(store, "s", ranking=Ranking(candidates=10)) as archive:
        assert "runs git status" in archive.retrieve("git status", 1)[0].text


def test_a_deleted_session_leaves_nothing_in_memory():
    """An index that is not the store's own follows what the store deletes."""
    store = said("the secret zebra", id="gone", store=said("hello"))
    with Archive(store, "s", scope="all") as archive:
        assert len(archive.retrieve("zebra")) == 1
        store.delete("gone")
        archive.retrieve("hello")
    index = store.search_index()
    (left,) = index.sessions(["s", "gone"])
    assert left.id == "s"
    everywhere = range((left.key + 1) << 32, ((left.key + 1) << 32) + 10)
    assert index.passages(everywhere) == {}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"k": 0}, "k is 0"),
        ({"budget": -1}, "budget is -1"),
        ({"roles": ["nobody"]}, "no role 'nobody'"),
        ({"after": float("nan")}, "after is nan"),
        ({"now": float("nan")}, "now is nan"),
    ],
)
def test_what_cannot_be_meant_is_named(options, named):
    """A mistake is an error that says what it is, instead of nothing found."""
    with pytest.raises(InputError, match=named):
        asked(said("one apple"), "apple", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"k": 10**30},
        {"roles": "user"},
        {"within": [(1, 10**30)]},
        {"after": -(10**400)},
        {"before": float("inf")},
        {"now": float("inf")},
        {"now": -1e20},
        {"sessions": "s"},
    ],
)
def test_numbers_and_names_may_be_at_the_edges(store, options):
    """What is larger than anything there is limits nothing, and one name need not be in a list."""
    assert asked(said("one apple", store=store), "apple last week", **options) == ["one apple"]


@pytest.mark.parametrize("options", [{"budget": 0}, {"roles": []}, {"tools": ["\ud800"]}, {"within": [(5, 1)]}])
def test_limits_that_leave_nothing_find_nothing(options):
    """They are no mistake."""
    assert asked(said("one apple"), "apple", **options) == []


@pytest.mark.parametrize("question", ["=>", "😀", "?!\x00", "👩‍👩‍👧"])
def test_what_has_no_letters_is_found_as_it_is_written(question):
    """Operators and emoji are no words, and still stand somewhere."""
    assert asked(said(f"x {question} y", "other"), question, 1) == [f"x {question} y"]


@pytest.mark.parametrize(
    "question",
    ["NEAR(apple tree, 5)", "app* OR apple", "^apple", "words: apple", '"apple', "apple\ud800", "-apple AND NOT"],
)
def test_nothing_of_a_question_is_syntax(question):
    """What the full-text index would take for its own language are words or nothing."""
    assert asked(said("one apple", "one pear"), question, 1) == ["one apple"]


def test_a_program_that_looks_for_words_says_how_many():
    """The same rules hold for `mentions`."""
    with Archive(said("one apple"), "s") as archive:
        assert [found.text for found in archive.mentions(["apple"], 10**30)] == ["one apple"]
        with pytest.raises(InputError, match="k is -1"):
            archive.mentions(["apple"], -1)
