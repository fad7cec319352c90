"""The documentation's examples run, so that they cannot drift."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import doc_examples
from support.doc_examples import END, Example, examples, problems
from windowsill.providers import ProviderSpec

pytestmark = pytest.mark.end_to_end

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A process that has loaded the library, and reads each page in a child."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", doc_examples.__file__],
        cwd=tmp_path_factory.mktemp("reader"),
        env={"PATH": os.defpath, "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.stdin.close()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text()], ids=lambda page: page.name
)
def test_each_python_example_runs_alone_and_prints_what_the_page_says(page, reader):
    """A reader who pastes one example sees no error, the output that the page shows, and no file in the data folder."""
    reader.stdin.write(f"{page}\n")
    reader.stdin.flush()
    lines = [reader.stdout.readline()]
    while lines[-1] and not lines[-1].startswith(END):
        lines.append(reader.stdout.readline())
    assert lines == [f"{END}0\n"]


@pytest.mark.parametrize(
    ("code", "output", "problem"),
    [
        ("print(1 + 1)  # 2", None, None),
        ("print('a', 7)  # a ...", None, None),
        ("for number in range(3):\n    print(number)\n    # 2", None, None),
        ("print(1)\nprint(2)", "1\n2\n", None),
        ("print(1 + 1)  # 3", None, "the page says '3', it prints '2'"),
        ("print(1)", None, "does not say what it prints"),
        ("print(1)", "2\n", "the page says '2', it prints '1'"),
        ("missing", None, "NameError"),
        ("import windowsill\nwindowsill.Session.open('s', window=9_000)", None, "data folder"),
    ],
)
def test_examples_that_lie_are_found(code, output, problem, monkeypatch):
    """The check itself can fail: on another output, none, an error, and a file where none is expected."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HOME", os.environ.get("HOME", ""))
    monkeypatch.setenv("XDG_DATA_HOME", "")
    monkeypatch.delenv("WINDOWSILL_HOME", raising=False)
    found = problems(Example(1, code, output))
    assert (problem is None) == (not found)
    assert problem is None or problem in found[0]


def test_packages_that_examples_import_can_be_installed_as_the_page_says():
    """A page whose examples import what Windowsill does not bring names the command that installs it."""
    for page in PAGES:
        text = page.read_text()
        for example in examples(text):
            for name in re.findall(r"^(?:import|from) (\w+)", example.code, flags=re.MULTILINE):
                if name not in {*sys.stdlib_module_names, "windowsill", "msgspec"}:
                    assert "pip install" in text, f"{page.name}: {name}"


def test_the_help_texts_on_the_page_are_what_the_commands_print(monkeypatch):
    """`make docs` was run after the last change of an option."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    page = (ROOT / "docs" / "cli.md").read_text()
    assert importlib.import_module("help").filled(page) == page


def test_every_relative_link_leads_somewhere():
    """No page points to a file that is not there."""
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"


def test_every_page_is_linked_from_the_readme_or_another_page():
    """A reader who follows links from the README finds every page."""
    found, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        found.add(page)
        links = re.findall(r"\]\((?!https?:)([^)#]+\.md)", page.read_text())
        waiting += {(page.parent / link).resolve() for link in links} - found
    missing = {ROOT / "ARCHITECTURE.md", *PAGES} - found
    assert not missing


def test_every_class_in_the_glossary_is_in_the_code():
    """No word of the glossary names a class that is gone."""
    code = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    classes = set(re.findall(r"^class (\w+)", code, flags=re.MULTILINE))
    named = set(re.findall(r"[`.]([A-Z][a-z]\w+)`", (ROOT / "docs" / "glossary.md").read_text()))
    assert named
    assert named <= classes


def test_the_page_on_providers_names_every_field_of_a_spec():
    """Whoever adds a provider finds each fact that can be stated."""
    named = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "adding-a-provider.md").read_text()))
    assert set(ProviderSpec.__struct_fields__) <= named
