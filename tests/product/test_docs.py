"""The documentation's examples run, so that they cannot drift."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from windowsill.providers import ProviderSpec

pytestmark = pytest.mark.end_to_end

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text()], ids=lambda page: page.name
)
def test_the_python_examples_of_a_page_run_one_after_the_other(page, tmp_path):
    """A reader who types in a page from top to bottom sees no error."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={"WINDOWSILL_HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


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
