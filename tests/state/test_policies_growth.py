"""The work of a check grows with the text of a call, not with its square."""

from __future__ import annotations

import pytest

from support.growth import TIMES, is_linear
from windowsill.messages import Tool
from windowsill.state import State
from windowsill.state.layers import Constraints, System
from windowsill.state.policies import Guard
from windowsill.state.tools import ToolOffer

pytestmark = pytest.mark.unit

SHAPES = {
    "one long word": (2_000, lambda n: {"command": "cat > f <<'E'\n" + "aGVsbG8x" * n + "\nE"}),
    "a long word with an address": (1_000, lambda n: {"command": "cat " + "aGVsbG8x" * n + "://x"}),
    "brackets": (4_000, lambda n: {"command": "echo " + "[" * n}),
    "brackets, one closed": (4_000, lambda n: {"command": "echo []" + "[" * n}),
    "stars": (500, lambda n: {"command": "cat /" + "*a" * n}),
    "braces": (2_000, lambda n: {"command": "echo " + "{" * n}),
    "choices": (1_000, lambda n: {"command": "echo " + "{a,b}" * n}),
    "quotes": (1_000, lambda n: {"command": "echo " + "'" * (2 * n + 1)}),
    "backslashes": (2_000, lambda n: {"command": "echo " + "\\" * n}),
    "substitutions": (1_000, lambda n: {"command": "$(" * n}),
    "backticks": (1_000, lambda n: {"command": "`a" * n}),
    "variables": (1_000, lambda n: {"command": "echo " + "${a" * n}),
    "folders in turn": (500, lambda n: {"command": "cd a; " * n}),
    "words after a folder": (500, lambda n: {"command": "cd x && echo " + " ".join(f"w{i}" for i in range(n))}),
    "hosts": (500, lambda n: {"command": "curl " + "a.b " * n}),
    "one long host": (4_000, lambda n: {"command": "curl " + "a." * n}),
    "here-documents": (300, lambda n: {"command": "cat <<E\na\n" * n}),
    "functions": (100, lambda n: {"command": "f() { cat $1; }; f a; " * n}),
    "lists": (100, lambda n: {"command": "c=(a b); cat ${c[0]}; " * n}),
    "strings in code": (500, lambda n: {"command": 'python -c "f(' + "'a'," * n + ')"'}),
    "names of searched files": (200, lambda n: {"command": "grep -r x " + "--include=a b " * n}),
    "words handed on": (200, lambda n: {"command": "echo a | xargs -I{} cat {}; " * n}),
    "a path of many parts": (4_000, lambda n: {"path": "a/" * n}),
    "a path that goes up": (4_000, lambda n: {"path": "a/../" * n}),
    "a long address": (4_000, lambda n: {"url": "http://" + "a." * n}),
    "many arguments": (500, lambda n: {"path": [f"a{i}" for i in range(n)]}),
    "a patch": (500, lambda n: {"patch": "*** Update File: a\n+x\n" * n}),
}


@pytest.mark.growth
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_eight_times_the_text_is_about_eight_times_the_work(shape, tmp_path):
    """A square would be sixty-four times."""
    size, make = shape
    constraints = Constraints(allowed_domains=("example.com",), max_tool_calls=None)
    guard, tool = Guard(System(constraints=constraints), base=tmp_path), ToolOffer(Tool(name="bash", schema={}))
    calls = {n: make(n) for n in (size, TIMES * size)}
    assert is_linear(lambda n: guard.judge(tool, calls[n], State()), size)
