"""Which tools a state shows, in which order, and what hid the others."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.offered_tools import ALL, COMMANDS, DELETABLE, RULES, TEXT, letters, projected, state, tool
from windowsill.errors import InputError, SettingError
from windowsill.state.layers import PERMISSIONS, PHASES
from windowsill.state.tools import HiddenTool, Narrow, Projection, ToolDecision, ToolOffer

pytestmark = pytest.mark.unit

BIG = 10_000


def names(found):
    return [each.name for each in found.tools]


def hidden(found):
    return {each.name: each.rule for each in found.hidden}


def test_planning_shows_what_looks_around():
    """The first example of the source: a plan needs search and reading."""
    found = projected(at=state("planning", ("read",)), rules=RULES)
    assert names(found) == ["search", "readFile"]
    assert hidden(found) == dict.fromkeys(("writeFile", "deleteFile", "execute", "test", "deploy"), "phase")


def test_executing_shows_what_acts():
    """The second example: deleting and deploying need permissions that are not held."""
    found = projected(at=state("executing", ("read", "write", "execute")), rules=RULES)
    assert names(found) == ["readFile", "writeFile", "execute", "test"]
    assert hidden(found) == {"search": "phase", "deleteFile": "permission", "deploy": "permission"}
    assert found.decision.narrowed == ()


def test_production_narrows_schemas():
    """The third example: deleting and running are shown with their allow-lists, deploying is not."""
    found = projected(at=state("executing", ("read", "write", "execute", "admin"), "production"), rules=RULES)
    assert names(found) == ["readFile", "writeFile", "deleteFile", "execute", "test"]
    shown = {each.name: each.schema["properties"] for each in found.tools}
    assert shown["deleteFile"]["path"]["enum"] == list(DELETABLE)
    assert shown["execute"]["command"]["enum"] == list(COMMANDS)
    assert found.decision.narrowed == ("deleteFile", "execute")
    assert found.hidden[-1].name == "deploy"
    assert "permission deploy" in found.hidden[-1].why


@pytest.mark.parametrize(
    ("phase", "shown"),
    [
        ("initializing", ["search", "readFile"]),
        ("planning", ["search", "readFile"]),
        ("executing", ["readFile", "writeFile", "deleteFile", "execute", "test", "deploy"]),
        ("reflecting", ["test"]),
        ("verifying", ["search", "readFile", "test"]),
        ("completed", []),
        ("failed", []),
    ],
)
def test_every_phase_shows_its_categories(phase, shown):
    """Who begins looks around as in planning; who has ended has nothing left to do."""
    assert names(projected(at=state(phase, PERMISSIONS))) == shown


def test_a_tool_without_a_category_is_shown_only_where_things_are_changed():
    """Its name does not matter: neither a word for reading nor one that nobody knows lets it in elsewhere."""
    offered = [tool("bash"), tool("read_everything"), tool("search")]
    shown = {phase: names(projected(offered, state(phase, PERMISSIONS))) for phase in PHASES}
    assert shown == {phase: [each.name for each in offered] if phase == "executing" else [] for phase in PHASES}


def test_a_category_of_one_s_own_works_where_a_phase_names_it_and_is_refused_otherwise():
    """A typing mistake does not hide a tool for ever."""
    offered = [ToolOffer(tool("forecast"), "weather")]
    with pytest.raises(InputError, match="'forecast' has the category 'weather', which no phase shows"):
        projected(offered)
    assert names(projected(offered, state("planning"), phases={"planning": ["weather"]})) == ["forecast"]


def test_phases_are_settings():
    """A phase that is named shows what is stated, the others what they always show."""
    chosen = {"planning": ["execute"]}
    assert names(projected(at=state("planning", PERMISSIONS), phases=chosen)) == ["execute"]
    assert names(projected(at=state("reflecting", PERMISSIONS), phases=chosen)) == ["test"]


def test_a_tool_in_several_environments_is_hidden_elsewhere():
    """`production` and `prod` are one."""
    offered = [
        ToolOffer(tool("test"), environments=("production",)),
        ToolOffer(tool("read"), environments=("dev", "staging")),
    ]
    assert names(projected(offered, state(environment="prod"))) == ["test"]
    assert hidden(projected(offered, state(environment="dev"))) == {"test": "environment"}


def test_the_first_rule_that_hides_is_told():
    """Phase comes before permission, permission before environment."""
    offered = [ToolOffer(tool("deploy"), permissions=("deploy",), environments=("prod",))]
    rules = [
        projected(offered, state(phase, held)).hidden[0].rule
        for phase, held in [("planning", ()), ("executing", ()), ("executing", ("deploy",))]
    ]
    assert rules == ["phase", "permission", "environment"]


def test_admin_is_no_superset():
    """Unless the settings say that one permission brings others with it."""
    at = state("executing", ("admin",))
    assert "deploy" not in names(projected(at=at))
    assert "deploy" in names(projected(at=at, implied={"admin": ["write", "execute"], "execute": ["deploy"]}))


def test_the_highest_priority_gets_room_first():
    """Tools are chosen by priority and sent in the order they were given in."""
    offered = [ToolOffer(tool(f"read_{number}"), priority=number) for number in (1, 3, 2)]
    size = letters('{"name":"read_1","description":"","input_schema":') + letters(
        '{"type":"object","properties":{},"additionalProperties":false}}'
    )
    found = projected(offered, budget=2 * size)
    assert names(found) == ["read_3", "read_2"]
    assert found.tokens == 2 * size
    assert found.hidden == (
        HiddenTool("read_1", "budget", f"its definition needs more than the 0 tokens left of {2 * size}"),
    )


def test_equal_priorities_get_room_as_given():
    """The first of two equal tools is shown."""
    assert names(projected([tool("read_a"), tool("read_b")], budget=150)) == ["read_a"]


def test_a_smaller_tool_may_still_fit():
    """What is too large is left out, and what comes after it is tried."""
    large = ToolOffer(tool("read_large", description="x" * 400), priority=90)
    assert hidden(projected([large, tool("read_small")], budget=300)) == {"read_large": "budget"}


def test_each_tool_is_told_the_room_it_found():
    """What was left when its turn came."""
    offered = [ToolOffer(tool("read_a", description="x" * 400), priority=90), tool("read_b"), tool("read_c", a=TEXT)]
    assert [each.why for each in projected(offered, budget=200).hidden] == [
        "its definition needs more than the 200 tokens left of 200",
        "its definition needs more than the 88 tokens left of 200",
    ]


def test_the_budget_counts_the_narrowed_definition():
    """An allow-list makes a definition longer."""
    rule = Narrow(tool="execute", parameter="command", allow=("x" * 300,))
    offered = [tool("execute", command=TEXT)]
    assert names(projected(offered, state(environment="dev"), rules=[rule], budget=200)) == ["execute"]
    assert names(projected(offered, state(environment="prod"), rules=[rule], budget=200)) == []


def test_the_default_budget_is_two_thousand():
    """Of tools with 1,000 tokens each, two fit."""
    offered = [tool(name) for name in ("read_a", "read_b", "read_c")]
    assert names(projected(offered, count=lambda _: 1_000)) == ["read_a", "read_b"]


@pytest.mark.parametrize(
    "at",
    [
        state(priority="high"),
        state(priority="critical"),
        state(limit=100.0, used=90.1),
        state(limit=100.0, used=200.0),
    ],
)
def test_an_urgent_task_has_five_tools(at):
    """By priority, or because less than a tenth of its time is left."""
    offered = [ToolOffer(tool(f"read_{number}"), priority=number) for number in range(8)]
    found = projected(offered, at)
    assert names(found) == [f"read_{number}" for number in range(3, 8)]
    assert hidden(found) == dict.fromkeys(("read_0", "read_1", "read_2"), "urgent")


@pytest.mark.parametrize("at", [state(), state(priority="low"), state(limit=100.0, used=90.0), state(used=1e9)])
def test_a_task_with_time_has_all(at):
    """A tenth of the time is enough; without a limit nothing runs out."""
    assert len(projected([tool(f"read_{number}") for number in range(8)], at).tools) == 8


def test_an_urgent_task_keeps_its_budget():
    """The five are those that fit."""
    offered = [
        ToolOffer(tool("read_large", description="x" * 400), priority=90),
        *[tool(f"read_{n}") for n in range(3)],
    ]
    found = projected(offered, state(priority="high"), urgent=2, budget=350)
    assert hidden(found) == {"read_large": "budget", "read_2": "urgent"}


def test_masking_sends_every_definition():
    """The very same bytes in every phase; what is hidden is told all the same."""
    projection = Projection(ALL, count=letters, mode="mask", rules=RULES, budget=0)
    plan, act = projection.project(state("planning")), projection.project(state("executing"))
    assert plan.tools == act.tools
    assert names(plan) == [each.name for each in ALL]
    assert plan.names == ("search", "readFile")
    assert hidden(act) == {"search": "phase", "deleteFile": "permission", "deploy": "permission"}
    assert plan.tokens == sum(letters(msgspec.json.encode(_wire(each.tool)).decode()) for each in ALL)


def _wire(one):
    return {"name": one.name, "description": one.description, "input_schema": one.schema}


def test_masking_narrows_by_environment():
    """An environment lasts, so its definitions do: they are narrowed in every phase alike."""
    projection = Projection(ALL, count=letters, mode="mask", rules=RULES)
    plan, act = (projection.project(state(phase, environment="prod")) for phase in ("planning", "executing"))
    assert plan.tools == act.tools
    assert plan.tools[4].schema["properties"]["command"]["enum"] == list(COMMANDS)


def test_the_same_state_gives_the_same_result():
    """What changed besides phase, permissions, environment and urgency does not matter."""
    projection = Projection(ALL, count=letters)
    assert projection.project(state(used=1.0)) is projection.project(state(used=2.0))
    assert projection.project(state()) is not projection.project(state(priority="high"))


def test_a_tool_is_counted_once():
    """Neither another state nor another environment makes it count again; one that is narrowed there has its own."""
    counted = []
    projection = Projection(ALL, count=lambda text: counted.append(text) or 1, rules=RULES)
    assert len(counted) == len(ALL) + len(RULES)
    for environment in ("dev", "staging", "prod"):
        projection.project(state("planning", environment=environment))
    assert len(counted) == len(ALL) + len(RULES)


def test_the_decision_can_be_recorded():
    """It is a plain value that comes back from JSON as it was."""
    decision = projected(at=state(permissions=("execute", "read")), rules=RULES).decision
    assert msgspec.json.decode(msgspec.json.encode(decision), type=ToolDecision) == decision
    assert decision.permissions == ("read", "execute")
    assert decision.names == ("readFile", "writeFile", "execute", "test")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"phases": {"plan": ["read"]}}, "no phase 'plan'; use initializing, planning,"),
        ({"phases": {"planning": "read"}}, "give a list"),
        ({"implied": {"root": []}}, "no permission 'root'; use read, write, execute, delete, admin, deploy"),
        ({"implied": {"admin": ["everything"]}}, "no permission 'everything'"),
        ({"rules": [Narrow(tool="exec", remove=("x",))]}, "'exec', which is not offered; offered are search"),
    ],
)
def test_unknown_words_in_settings_are_told(settings, said):
    """With those that are known."""
    with pytest.raises(InputError, match="(?s).*" + said):
        projected(**settings)


@pytest.mark.parametrize("setting", [{"budget": -1}, {"urgent": 0}, {"mode": "hide"}])
def test_settings_have_ranges(setting):
    """The error names the setting."""
    with pytest.raises(SettingError, match=next(iter(setting))):
        projected(**setting)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (state("thinking"), "no phase 'thinking'"),
        (state(permissions=("search",)), "no permission 'search'; use read, write"),
        (state(environment="test"), "no environment 'test'; use dev, staging, prod"),
    ],
)
def test_unknown_words_in_a_state_are_told(at, said):
    """A state that was put together by hand is checked too."""
    with pytest.raises(InputError, match=said):
        projected(at=at)


def test_a_name_is_offered_once():
    """Two tools of one name could not be told apart in a call."""
    with pytest.raises(InputError, match="'read' is offered twice"):
        projected([tool("read"), tool("read")])


OFFERS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "test", "search", "other"]),
        st.lists(st.sampled_from(PERMISSIONS), unique=True, max_size=2),
        st.sampled_from([None, ("dev",), ("prod",)]),
        st.integers(0, 3),
        st.integers(0, 300),
    ),
    max_size=12,
)


@given(
    OFFERS,
    st.sampled_from(PHASES),
    st.lists(st.sampled_from(PERMISSIONS), unique=True),
    st.sampled_from(["dev", "staging", "prod"]),
    st.integers(0, 900),
    st.sampled_from(["medium", "high"]),
)
def test_every_tool_is_shown_or_told_of(offers, phase, held, environment, budget, priority):
    """Shown and hidden together are all tools, each list in the given order, within the budget and the permissions."""
    offered = [
        ToolOffer(tool(f"{word}_{place}", description="x" * size), "", tuple(needs), where, rank)
        for place, (word, needs, where, rank, size) in enumerate(offers)
    ]
    found = projected(offered, state(phase, tuple(held), environment, priority=priority), budget=budget)
    order = [each.name for each in offered]
    gone = [each.name for each in found.hidden]
    assert sorted([*found.names, *gone], key=order.index) == order
    assert [*found.names] == sorted(found.names, key=order.index) == names(found)
    assert gone == sorted(gone, key=order.index)
    assert found.tokens <= budget
    assert all(set(offered[order.index(name)].permissions) <= set(held) for name in found.names)
    assert len(found.names) <= (5 if priority == "high" else BIG)
