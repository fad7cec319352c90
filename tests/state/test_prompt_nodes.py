import pytest

from windowsill.state.layers import FileChange, Step
from windowsill.state.prompt.catalogue import Child, Look, node_of, number_text, time_text, value_text
from windowsill.state.prompt.formats import Node, clean, digest

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("dirty", "shown"),
    [
        ("a\x00b\x1fc\x7f", "a\u2400b\u241fc\u2421"),
        ("a\r\nb\rc\u0085d\u2028e\u2029f\n", "a\nb\nc\nd\ne\nf\n"),
        ("a\ud800b\ufffec\uffff", "a\ufffdb\ufffdc\ufffd"),
        ("tab\tand 日本語 \U0001f600 stay", "tab\tand 日本語 \U0001f600 stay"),
    ],
)
def test_a_text_is_made_clean(dirty, shown):
    """Line breaks become one kind, controls are seen, what is no character is marked; all else stays."""
    assert clean(dirty) == shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("5", "5"),
        (5, "5"),
        ({"b": 1, "a": ["日", None]}, '{"a": ["日", null], "b": 1}'),
        ({"\x00": "\ud800"}, '{"\\u0000": "\ufffd"}'),
        ({1: "x", "y": 2}, "{1: 'x', 'y': 2}"),
        (Step(description="d").status, "pending"),
    ],
)
def test_a_value_as_text(value, text):
    """Texts as they are, anything else as JSON with its keys in order."""
    assert value_text(value) == text


def test_a_value_without_end_is_shown_all_the_same():
    """What holds itself, or goes down too deep, does not stop a build."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    ring: list[object] = []
    ring.append(ring)
    assert value_text(deep) == "a value too deep to be shown"
    assert value_text(ring) == "[[...]]"


def test_a_text_and_a_number_do_not_look_the_same():
    """What is written as JSON says so."""
    look = Look("step", "result")
    assert node_of(look, Step(description="d", result="5")) == Node("step", (), "5")
    assert node_of(look, Step(description="d", result=5)) == Node("step", (("as", "json"),), "5")


def test_empty_fields_are_left_out():
    """A tag says only what there is to say, but an empty file is not the same as none."""
    look = Look(
        "change", attributes=("id", "target"), children=(Child("after", "after", keep_empty=True), Child("before", "b"))
    )
    assert node_of(look, FileChange(target="a.py", after="", before="")) == Node(
        "change", (("target", "a.py"),), "", (Node("after"),)
    )


def test_numbers_and_times_as_one_writes_them():
    """Whole numbers without a point, times in UTC; what no calendar has stays a number."""
    assert [number_text(value) for value in (3600.0, 0.25, 1e300)] == ["3600", "0.25", "1e+300"]
    assert time_text(1_700_000_000.7) == "2023-11-14T22:13:20Z"
    assert [time_text(at) for at in (1e300, float("nan"))] == ["1e+300", "nan"]


def test_a_digest_tells_any_change():
    """Also where a text moves from one place to another."""
    nodes = [Node("a", text="bc"), Node("ab", text="c"), Node("a", (("b", "c"),)), Node("a", children=(Node("b"),))]
    assert len({digest(each) for each in nodes}) == 4
    assert digest(Node("a", text="bc")) == digest(nodes[0])
