"""Runs the Python examples of a page, each pasted alone, and compares what they print with what the page says.

What an example prints is said in the comment behind or below each `print`, or in a ```text block right after the
example. `...` stands for anything. Run as a program it reads paths of pages; for each a child of it, which finds the
library loaded, writes the problems to standard output, one on each line, and `END` with its exit code follows.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import os
import re
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from windowsill import Session, agent, models

KEPT = "data folder"
"""Words with which an example says that it writes to the user's own sessions."""

_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n?```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


class Example(NamedTuple):
    line: int
    """The line of the page on which its code begins."""
    code: str
    output: str | None
    """What the block after it says that it prints."""


def examples(page: str) -> list[Example]:
    return [Example(page.count("\n", 0, each.start(1)) + 1, each[1], each[2]) for each in _BLOCK.finditer(page)]


def matches(expected: str, printed: str) -> bool:
    """Tell whether a text is the expected one, where `...` stands for anything."""
    pattern = ".*".join(map(re.escape, expected.strip().split("...")))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def problems(example: Example) -> list[str]:
    """List what is wrong with an example: an error, another output, an output that is not shown, a file left behind."""
    printed: list[tuple[int, str]] = []

    def record(*values: Any, sep: str = " ", **_: Any) -> None:
        printed.append((sys._getframe(1).f_lineno, sep.join(map(str, values))))

    found = _run(example.code, record)
    if example.output is not None:
        whole = "\n".join(text for _, text in printed)
        if not matches(example.output, whole):
            found.append(f"the page says {example.output.strip()!r}, it prints {whole!r}")
        return found
    lines = example.code.splitlines()
    for node in ast.walk(ast.parse(example.code)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"):
            continue
        end = node.end_lineno or node.lineno
        after = itertools.takewhile(lambda line: line.lstrip().startswith("# "), lines[end:])
        said = lines[end - 1].partition("  # ")[2] or "\n".join(line.lstrip()[2:] for line in after)
        texts = [text for line, text in printed if node.lineno <= line <= end]
        if not said:
            found.append(f"line {node.lineno} of it does not say what it prints: {texts[-1:]}")
        elif texts and not matches(said, texts[-1]):
            found.append(f"line {node.lineno} of it: the page says {said!r}, it prints {texts[-1]!r}")
    return found


def _run(code: str, record: Any) -> list[str]:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        os.chdir(folder)
        os.environ |= {"HOME": home, "XDG_DATA_HOME": home}
        names = {"__name__": "__main__", "__builtins__": {**vars(builtins), "print": record}}
        try:
            exec(compile(code, "example", "exec"), names)
        except BaseException:  # noqa: BLE001 - whatever it is, it is reported
            return [traceback.format_exc(limit=-2)]
        finally:
            os.chdir("/")
        if any(Path(home).rglob("*.db")) and KEPT not in code:
            return [f"it writes to the user's data folder and does not say so ({KEPT!r})"]
    return []


END = "end of the page: "


def warm_up() -> None:
    """Load what most pages would load: vocabulary, prices, the engine, without a thread that a fork would lose."""
    session = Session.open("s", model="claude-sonnet-4-5", store=":memory:")
    models.prices(session.model)
    session.state.set_goal("x")
    session.add("x")
    agent.Engine(session, model=lambda _: "x", tools=[])
    session.compose_sync(tools=session.tools.tools)
    session.close()


def main() -> None:
    warm_up()
    for line in sys.stdin:
        sys.stdout.flush()
        if not (child := os.fork()):
            return check(Path(line.rstrip("\n")))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{END}{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    return None


def check(page: Path) -> None:
    for example in examples(page.read_text()):
        for problem in problems(example):
            sys.stdout.write(f"{page.name}:{example.line}: {problem}\n")


if __name__ == "__main__":
    main()
