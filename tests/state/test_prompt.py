import pytest

from windowsill.errors import InputError, SettingError
from windowsill.state import LAYERS, State
from windowsill.state.layers import (
    Audit,
    Constraints,
    Criterion,
    Definition,
    Draft,
    Evidence,
    Fact,
    Memory,
    Observation,
    OutputFormat,
    Plan,
    Policy,
    Role,
    Runtime,
    Semantic,
    ShortTerm,
    Step,
    System,
    Task,
    TaskLimits,
    Variable,
    Work,
)
from windowsill.state.prompt import Builder, Limits, StateSettings
from windowsill.state.shares import ShareSettings
from windowsill.tokens import counter

pytestmark = pytest.mark.unit

STATE = State(
    system=System(
        role=Role(name="Clerk", description="", capabilities=("files",), limitations=()),
        policies=(Policy(id="p", rule="Be <kind>"),),
        constraints=Constraints(max_seconds=3_600.0, max_file_bytes=None, allowed_domains=(), forbidden_paths=()),
        audit=Audit(require_approval=("delete",)),
    ),
    task=Task(
        goal="sort the mail",
        success_criteria=(Criterion(id="c", description="all sorted"),),
        output_format=OutputFormat(type="json", schema={"type": "object"}),
        limits=TaskLimits(max_cost=0.5),
    ),
    runtime=Runtime(phase="executing", permissions=()),
    memory=Memory(
        short_term=ShortTerm(variables=(Variable(name="n", value=3), Variable(name="s", value="3"))),
        semantic=Semantic(definitions=(Definition(term="mail", definition="letters\nand cards", examples=("a",)),)),
    ),
    evidence=Evidence(observations=(Observation(id="o", at=60, tool="ls", result=["a"]),)),
    work=Work(plan=Plan(steps=(Step(id="1", description="open", status="in_progress"),), current="1")),
)

XML = """\
<context>
<system>
<role><name>Clerk</name><capability>files</capability></role>
<constraints max_seconds="3600"><allowed_domains>none</allowed_domains></constraints>
<audit><require_approval>delete</require_approval></audit>
<policies>
<policy id="p" category="safety" priority="50" enforcement="hard">Be &lt;kind&gt;</policy>
</policies>
</system>
<task>
<goal>sort the mail</goal>
<output_format type="json"><schema as="json">{"type": "object"}</schema></output_format>
<limits max_cost="0.5"/>
<about created_by="user" priority="medium"/>
<success_criteria>
<criterion id="c" measurable="false">all sorted</criterion>
</success_criteria>
</task>
<runtime_state>
<phase>executing</phase>
<environment>dev</environment>
<permissions/>
</runtime_state>
<evidence>
<recent_observations>
<observation id="o" source="tool" tool="ls" as="json">["a"]</observation>
</recent_observations>
</evidence>
<memory>
<short_term>
<working_variables>
<variable name="n" as="json">3</variable>
<variable name="s">3</variable>
</working_variables>
</short_term>
<semantic>
<definitions>
<definition term="mail">letters
and cards<example>a</example></definition>
</definitions>
</semantic>
</memory>
<work_buffer>
<plan>
<step id="1" status="in_progress">open</step>
</plan>
</work_buffer>
</context>"""

MARKDOWN = """\
# context
## memory
### short_term
#### working_variables
- variable name="n" as="json": 3
- variable name="s": 3
### semantic
#### definitions
- definition term="mail"
  > letters
  > and cards
  - example: a
## work_buffer
### plan
- step id="1" status="in_progress": open
"""


def build(state=STATE, tokens=100_000, *, count=len, now=60.0, layers=LAYERS, size="balanced", **settings):
    return Builder(count, StateSettings(**settings), size=size).build(state, tokens, now=now, layers=layers)


def test_the_context_as_xml():
    """All layers, the most important first; empty parts are not there, and no permission is said to be none."""
    assert build().text == XML


def test_the_context_as_markdown():
    """Some layers, in their own order; nothing that is said begins a line."""
    assert build(layers=("work", "memory"), format="markdown").text == MARKDOWN


def test_sizes_are_those_of_the_text():
    """The whole is counted on the whole, each layer on its part; here they add up, but for the outermost tags."""
    built = build()
    assert built.tokens == len(XML)
    assert built.layers["runtime"] == len(XML[XML.index("<runtime_state>") : XML.index("<evidence>")])
    assert set(built.layers) == set(LAYERS)
    assert sum(built.layers.values()) == len(XML) - len("<context>\n</context>")


def test_a_real_counter_counts_the_text():
    """Also where the parts do not add up."""
    count = counter("o200k_base").count
    assert build(count=count).tokens == count(XML)


def test_every_piece_is_in_the_text():
    """In its order, with where it comes from; single values have no key."""
    built = build()
    places = [built.text.index(piece.text) for piece in built.pieces]
    assert places == sorted(places)
    shown = {piece.id: (piece.layer, piece.path, piece.key, piece.text) for piece in built.pieces}
    assert shown["task.goal#"] == ("task", "task.goal", "", "<goal>sort the mail</goal>")
    assert shown["memory.short_term.variables#s"][2:] == ("s", '<variable name="s">3</variable>')
    assert built.digests == {piece.id: piece.digest for piece in built.pieces}


def test_the_ratio_is_that_to_everything():
    """Half of what there is: as much is left out as is shown; and 1 when nothing is."""
    assert build().ratio == 1.0
    facts = tuple(Fact(id=id, content="mail", source="s", verified=id == "a") for id in "ab")
    state = State(task=Task(goal="mail"), memory=Memory(semantic=Semantic(facts=facts)))
    built = build(state)
    left = len('<fact id="b" source="s" confidence="1">mail</fact>\n')
    assert built.ratio == built.tokens / (built.tokens + left)


def test_what_had_no_room_is_marked_as_not_told():
    """It has a digest, and the digest says so."""
    state = State(work=Work(drafts=tuple(Draft(id=str(place), content="x" * 300) for place in range(9))))
    built = build(state, tokens=3_000, picks=Limits(drafts=9))
    digest = build(state, picks=Limits(drafts=9)).digests["work.drafts#0"]
    assert built.digests["work.drafts#0"] == f"-{digest}"


def test_a_text_too_long_for_its_layer_is_shortened_and_says_so():
    """By the offline writer; it counts as told, and the digest is that of the whole."""
    lines = [f"Module {place} was checked. We decided to keep src/mod{place}.py." for place in range(200)]
    state = State(work=Work(scratchpad="\n".join(lines)))
    built = build(state, tokens=4_000)
    assert built.tokens <= 4_000
    assert '<scratchpad shortened_from_tokens="' in built.text
    assert "We decided to keep src/mod" in built.text
    whole = build(state)
    assert built.digests == whole.digests
    assert built.shortened == {"work.scratchpad#": next(p.tokens for p in whole.pieces if p.path == "work.scratchpad")}


def test_importance_is_a_setting_that_orders_the_text():
    """With memory more important than evidence it stands before it."""
    text = build(shares=ShareSettings(importance={"memory": 90})).text
    assert text.index("<memory>") < text.index("<evidence>")


def test_a_digest_is_the_same_in_every_format():
    """A change of format is no change of the state."""
    assert build().digests == build(format="markdown").digests


def test_the_same_state_gives_the_same_bytes():
    """From two builders, from one twice, and from a state that was read back."""
    builder = Builder(len)
    first = builder.build(STATE, 2_000, now=60.0)
    assert builder.build(STATE, 2_000, now=60.0) == first
    assert build(State.from_json(STATE.to_json()), 2_000) == first


def test_the_size_of_the_model_and_the_phase_decide_the_shares():
    """Executing with a small model: 40 of 100 points for the work buffer."""
    assert build(tokens=1_000_000, size="small").shares.work == 360_000


def test_nothing_to_show_is_an_empty_frame():
    """No layer, no element."""
    assert build(layers=()).text == "<context>\n</context>"
    assert build(layers=("evidence",), now=1e6).text == "<context>\n</context>"


def test_a_wrong_layer_or_format_is_refused():
    """The error says which there are."""
    with pytest.raises(InputError, match="no layer 'mind'; the layers are system, task"):
        build(layers=("mind",))
    with pytest.raises(SettingError, match="xml or markdown"):
        Builder(len, StateSettings(format="yaml"))
