"""What is chosen from a state (L4, M6)."""

import pytest

from support.archives import Synonyms
from windowsill.errors import SettingError
from windowsill.state import State
from windowsill.state.layers import (
    Checklist,
    ChecklistItem,
    Citation,
    Decision,
    Definition,
    Draft,
    Episodic,
    Evidence,
    Execution,
    Fact,
    FileChange,
    Hypothesis,
    Knowledge,
    Measurement,
    Memory,
    Milestone,
    Observation,
    Plan,
    Policy,
    Preference,
    Procedural,
    Procedure,
    Retrieved,
    Runtime,
    Semantic,
    ShortTerm,
    Skill,
    Step,
    Summary,
    System,
    Task,
    Template,
    Trouble,
    Turn,
    Variable,
    Work,
)
from windowsill.state.prompt import Builder, Limits, StateSettings

pytestmark = pytest.mark.unit

GOAL = "mend the login page"
"""Three words that count: mend, login, page."""
NEAR, FAR = "the login works", "the weather"
"""One word in common is a third, which is above .3."""
NOW = 10_000.0


def chosen(path, *, goal=GOAL, embedder=None, limits=None, **layers):
    """The keys of what is shown of a list, in the order of the text."""
    state = State(task=Task(goal=goal), **layers)
    built = Builder(len, StateSettings(picks=limits or Limits()), embedder=embedder).build(state, 10**6, now=NOW)
    return [piece.key for piece in built.pieces if piece.path == path]


def semantic(**lists):
    return {"memory": Memory(semantic=Semantic(**lists))}


def facts(*given, **options):
    found = tuple(Fact(id=str(place), source="s", **each) for place, each in enumerate(given))
    return chosen("memory.semantic.facts", **semantic(facts=found), **options)


def test_facts_are_verified_and_relevant_the_surest_first():
    """What is unverified stays out, what is far from the goal comes last; ties stay in the order of the state."""
    assert facts(
        {"content": NEAR, "confidence": 0.5},
        {"content": NEAR, "confidence": 0.9},
        {"content": FAR},
        {"content": NEAR, "verified": False},
        {"content": NEAR, "confidence": 0.5},
    ) == ["1", "0", "4", "2"]


def test_ten_facts_at_most():
    """Of twelve that fit, the ten surest."""
    found = facts(*({"content": NEAR, "confidence": place / 100} for place in range(12)))
    assert found == ["11", "10", "9", "8", "7", "6", "5", "4", "3", "2"]


def skills(*descriptions, **options):
    found = tuple(Skill(id=str(place), name="s", description=each) for place, each in enumerate(descriptions))
    return chosen("memory.procedural.skills", memory=Memory(procedural=Procedural(skills=found)), **options)


def test_relevance_has_to_be_above_the_mark():
    """Of the words of a skill a quarter is too little; a third is enough."""
    goal = "alpha beta gamma delta epsilon"
    assert skills("alpha one two three", "alpha one two", goal=goal) == ["1"]
    assert skills("alpha one two three", goal=goal, limits=Limits(relevance=0.25)) == []
    assert skills("alpha one two three", goal=goal, limits=Limits(relevance=0.24)) == ["0"]


def test_what_a_program_recorded_reaches_the_model_under_a_long_goal():
    """A goal of many words hides nothing: what shares most words with it comes first."""
    goal = "Please look through all services of the platform, find why invoices are late and mend it before Friday"
    billing, shelf = {"content": "The billing service sends invoices"}, {"content": "Shelves are green"}
    assert facts(shelf, billing, goal=goal) == ["1", "0"]
    assert facts(*[shelf] * 12, billing, goal=goal)[0] == "12"


def test_the_current_step_counts_beside_the_goal():
    """A fact about the step that is worked on comes before one about something else."""
    plan = Plan(steps=(Step(id="1", description="measure the kiln"),), current="1")
    found = (Fact(id="far", content="shelf", source="s"), Fact(id="near", content="kiln", source="s"))
    assert chosen("memory.semantic.facts", **semantic(facts=found), work=Work(plan=plan)) == ["near", "far"]


def test_an_embedder_decides_by_meaning():
    """No word in common, and yet the same."""
    near = Synonyms(("dog", "hound"), ("lorry",))
    assert facts({"content": "lorry"}, {"content": "hound"}, goal="dog", embedder=near) == ["1", "0"]


def test_an_embedder_that_fails_leaves_the_words():
    """The state is shown all the same."""

    class Broken:
        name, dimensions = "broken", 2

        def embed(self, _texts):
            raise OSError("no weights")

    assert facts({"content": FAR}, {"content": NEAR}, embedder=Broken()) == ["1", "0"]


@pytest.mark.parametrize("goal", ["", "  \n", "?!"])
def test_without_a_goal_everything_is_relevant(goal):
    """Also when it has no words; what is unverified stays out all the same."""
    assert facts({"content": FAR}, {"content": NEAR, "verified": False}, goal=goal) == ["0"]


def test_without_a_goal_a_low_relevance_is_no_reason():
    """It was stated for some goal, and there is none; it still decides the order."""
    found = tuple(Retrieved(id=id, content="c", source="s", relevance=near) for id, near in (("a", 0.1), ("b", 0.2)))
    assert chosen("evidence.retrieved", goal="", evidence=Evidence(retrieved=found)) == ["b", "a"]


def test_the_five_most_relevant_summaries():
    """What is stated wins over what words say, also when it is too little."""
    given = [
        Summary(id="words", text="mend the login page"),
        Summary(id="stated", text=FAR, relevance=0.9),
        Summary(id="refused", text=GOAL, relevance=0.1),
        *(Summary(id=f"x{place}", text=NEAR) for place in range(5)),
    ]
    memory = Memory(episodic=Episodic(summaries=tuple(given)))
    assert chosen("memory.episodic.summaries", memory=memory) == ["words", "stated", "x0", "x1", "x2"]


def test_only_so_many_episodes_are_in_sight():
    """M6: of each kind the latest `max_entries`."""
    stones = tuple(Milestone(id=str(place), event="e") for place in range(5))
    for most, seen in ((2, ["3", "4"]), (0, [])):
        memory = Memory(episodic=Episodic(milestones=stones, max_entries=most))
        assert chosen("memory.episodic.milestones", memory=memory) == seen


def test_milestones_above_low():
    """In the order in which they were reached."""
    stones = (
        Milestone(id="a", event="e", significance="medium"),
        Milestone(id="b", event="e", significance="low"),
        Milestone(id="c", event="e", significance="high"),
    )
    assert chosen("memory.episodic.milestones", memory=Memory(episodic=Episodic(milestones=stones))) == ["a", "c"]


def test_decisions_that_have_to_do_with_the_goal():
    """Of what is remembered; five at most."""
    made = (Decision(id="far", description=FAR), *(Decision(id=str(place), description=NEAR) for place in range(6)))
    memory = Memory(episodic=Episodic(decisions=made))
    assert chosen("memory.episodic.decisions", memory=memory) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("path", "elements", "keys"),
    [
        (
            "semantic.definitions",
            (Definition(term="login", definition="x"), Definition(term="b", definition=FAR)),
            ["login", "b"],
        ),
        (
            "semantic.preferences",
            (Preference(category="page", name="width", value=3), Preference(category="z", name="y", value="login")),
            ["page/width", "z/y"],
        ),
        (
            "semantic.project_knowledge",
            (Knowledge(id="k", category="login", content="x"), Knowledge(id="c", category="c", content=FAR)),
            ["k", "c"],
        ),
        (
            "procedural.skills",
            (
                Skill(id="name", name="login"),
                Skill(id="said", name="x", description="of a page"),
                Skill(id="far", name="x", steps=(GOAL,)),
            ),
            ["name", "said"],
        ),
        (
            "procedural.templates",
            tuple(Template(id=text, name="t", content=text) for text in ("page", FAR, "login", GOAL, "mend")),
            [GOAL, "page", "login"],
        ),
        (
            "procedural.checklists",
            (Checklist(id="c", name="x", items=(ChecklistItem(description=NEAR),)), Checklist(id="d", name=FAR)),
            ["c", "d"],
        ),
        (
            "procedural.procedures",
            (Procedure(id="far", name=FAR), Procedure(id="p", name="x", description=NEAR)),
            ["far", "p"],
        ),
    ],
)
def test_what_is_known_and_how_it_is_done_is_chosen_by_the_goal(path, elements, keys):
    """Definitions, preferences, knowledge, skills, templates (three), checklists and procedures."""
    kind, name = path.split(".")
    part = {"semantic": Semantic, "procedural": Procedural}[kind](**{name: elements})
    assert chosen(f"memory.{path}", memory=Memory(**{kind: part})) == keys


def seen(*ages, ttl=300.0):
    return tuple(Observation(id=f"{age:g}", at=NOW - age, result="r", ttl=ttl) for age in ages)


def test_observations_of_the_short_term_within_their_time():
    """M6: the five newest, the newest first; an age that is the time to live is too old."""
    memory = Memory(short_term=ShortTerm(observations=seen(299, 300, 5, 400, 1, 2, 4, 3)))
    assert chosen("memory.short_term.observations", memory=memory) == ["1", "2", "3", "4", "5"]
    memory = Memory(short_term=ShortTerm(observations=seen(299, 300)))
    assert chosen("memory.short_term.observations", memory=memory) == ["299"]


def test_the_shorter_of_two_times_decides():
    """An observation has a time of its own, and so has the short term."""
    path = "memory.short_term.observations"
    assert chosen(path, memory=Memory(short_term=ShortTerm(observations=seen(20, ttl=10.0)))) == []
    assert chosen(path, memory=Memory(short_term=ShortTerm(observations=seen(20), ttl=10.0))) == []


def test_evidence_of_the_last_minute():
    """The five newest; those of the same moment by their place, the later first."""
    evidence = Evidence(observations=(*seen(60, 59, 1, 2, 3, 4), Observation(id="same", at=NOW - 1, result="r")))
    assert chosen("evidence.observations", evidence=evidence) == ["same", "1", "2", "3", "4"]
    assert chosen("evidence.observations", evidence=Evidence(observations=seen(59, 60, -5))) == ["-5", "59"]


def test_ten_of_what_was_retrieved():
    """Above .3, the most relevant first."""
    found = tuple(Retrieved(id=str(place), content="c", source="s", relevance=place / 20) for place in range(5, 18))
    assert chosen("evidence.retrieved", evidence=Evidence(retrieved=found)) == [
        str(place) for place in range(17, 7, -1)
    ]
    assert chosen("evidence.retrieved", evidence=Evidence(retrieved=found[:3])) == ["7"]


def test_the_latest_measurement_of_each_metric():
    """By its time; where that is the same, by its place."""
    taken = (
        Measurement(id="a", metric="ms", value=1, at=5),
        Measurement(id="b", metric="kb", value=1),
        Measurement(id="c", metric="ms", value=2, at=3),
        Measurement(id="d", metric="kb", value=2),
    )
    assert chosen("evidence.measurements", evidence=Evidence(measurements=taken)) == ["a", "d"]


def test_hypotheses_that_are_open():
    """Tested ones only if nothing came of it."""
    guesses = (
        Hypothesis(id="untested", description="d"),
        Hypothesis(id="confirmed", description="d", tested=True, result="confirmed"),
        Hypothesis(id="unclear", description="d", tested=True, result="inconclusive"),
    )
    assert chosen("work.hypotheses", work=Work(hypotheses=guesses)) == ["untested", "unclear"]


def test_the_last_three_errors():
    """And as many warnings and decisions of the run."""
    troubles = tuple(Trouble(id=str(place), message="m") for place in range(5))
    made = tuple(Decision(id=str(place), description="d") for place in range(4))
    runtime = Runtime(execution=Execution(errors=troubles, warnings=troubles[:2], decisions=made))
    assert chosen("runtime.execution.errors", runtime=runtime) == ["2", "3", "4"]
    assert chosen("runtime.execution.warnings", runtime=runtime) == ["0", "1"]
    assert chosen("runtime.execution.decisions", runtime=runtime) == ["1", "2", "3"]


def test_policies_by_priority_hard_ones_first():
    """Soft ones are shown and say that they are."""
    rules = (
        Policy(id="soft", rule="r", priority=99, enforcement="soft"),
        Policy(id="low", rule="r", priority=1),
        Policy(id="high", rule="r", priority=50),
    )
    assert chosen("system.policies", system=System(policies=rules)) == ["high", "low", "soft"]
    text = Builder(len).build(State(system=System(policies=rules)), 10**6, now=NOW).text
    assert '<policy id="soft" category="safety" priority="99" enforcement="soft">r</policy>' in text


def test_everything_of_the_work_that_is_not_done():
    """All steps, changes that are not applied, drafts, citations, turns and variables, whatever the goal."""
    work = Work(
        plan=Plan(
            steps=(Step(id="1", description="d", status="completed"), Step(id="2", description="d")), current="2"
        ),
        changes=(FileChange(id="a", target="t", applied=True), FileChange(id="b", target="t")),
        drafts=(Draft(id="d", content="c"),),
        scratchpad="notes",
    )
    memory = Memory(
        short_term=ShortTerm(variables=(Variable(name="v", value=1),), turns=(Turn(id="t", role="user", text=FAR),))
    )
    evidence = Evidence(citations=(Citation(id="c", text="t", source="s"),))
    shown = State(task=Task(goal=GOAL), work=work, memory=memory, evidence=evidence)
    pieces = Builder(len).build(shown, 10**6, now=NOW, layers=("memory", "evidence", "work")).pieces
    assert [piece.id for piece in pieces] == [
        "evidence.citations#c",
        "memory.short_term.variables#v",
        "memory.short_term.turns#t",
        "work.scratchpad#",
        "work.plan.current#",
        "work.plan.steps#1",
        "work.plan.steps#2",
        "work.changes#b",
        "work.drafts#d",
    ]


def test_how_many_are_chosen_is_a_setting():
    """And a wrong one is refused by name."""
    assert facts({"content": NEAR}, {"content": NEAR}, limits=Limits(facts=1)) == ["0"]
    for wrong in ({"facts": -1}, {"relevance": 1.5}, {"seconds": float("nan")}):
        with pytest.raises(SettingError, match=f"picks.{next(iter(wrong))}"):
            Limits(**wrong)


def test_what_has_no_key_goes_by_what_it_says():
    """Two elements without an id, and two with the same one, are told apart."""
    found = (Fact(content="a", source="s"), Fact(content="b", source="s"), Fact(id="x", content="c", source="s"))
    state = State(memory=Memory(semantic=Semantic(facts=(*found, Fact(id="x", content="d", source="s")))))
    ids = [piece.id for piece in Builder(len).build(state, 10**6, now=NOW, layers=["memory"]).pieces]
    assert len(set(ids)) == 4
    assert ids[2] == "memory.semantic.facts#x"


def test_an_embedder_is_given_text_that_can_be_written():
    """Half a character is shown as a sign, and others' code never sees it."""

    class Strict(Synonyms):
        def embed(self, texts):
            assert "".join(texts).encode()
            return super().embed(texts)

    facts = (Fact(id="f", content="hound \ud800", source="s"),)
    embedder = Strict(("dog", "hound"))
    assert chosen(
        "memory.semantic.facts", goal="dog \udfff", embedder=embedder, memory=Memory(semantic=Semantic(facts=facts))
    )
