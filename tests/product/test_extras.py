"""What is missing is named with what to install."""

import subprocess
import sys

import pytest

import windowsill
from windowsill.errors import InputError
from windowsill.extras import extra, require
from windowsill.mcp import http_app
from windowsill.schemas import validator

pytestmark = pytest.mark.unit


@pytest.fixture
def without(monkeypatch):
    """Make the import of a package fail, as if it had never been installed."""
    return lambda package: monkeypatch.setitem(sys.modules, package, None)


def test_failed_import_names_the_extra(without):
    """The error says what needs the package, and the command that installs it."""
    without("httpx2")
    with pytest.raises(InputError) as caught, extra("http", "calling a model"):
        import httpx2  # noqa: F401, PLC0415 - it is made to fail
    assert str(caught.value) == (
        "calling a model needs a package that is missing: httpx2; run in a clone of windowsill: pip install '.[http]'"
    )


def test_package_that_is_there_is_not_loaded_by_asking():
    """Asking early is cheap."""
    sys.modules.pop("colorsys", None)
    require("x", "y", "colorsys")
    assert "colorsys" not in sys.modules


def writer():
    windowsill.Session.open("s", model="gpt-5", writer="openai:gpt-5-mini", store=":memory:")


def engine():
    windowsill.Engine(windowsill.Session.open("s", model="gpt-5", store=":memory:"), model=print)


def schema():
    validator({"type": "object"})


def mcp():
    http_app(windowsill.Session.open("s", model="gpt-5", store=":memory:").tools)


@pytest.mark.parametrize(
    ("begin", "package", "name"),
    [
        (writer, "httpx2", "http"),
        (engine, "jsonschema", "agent"),
        (schema, "jsonschema", "agent"),
        (mcp, "mcp_types", "mcp"),
    ],
)
def test_each_feature_names_its_extra_before_it_begins(without, monkeypatch, begin, package, name):
    """Not in the middle of a run."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    without(package)
    with pytest.raises(InputError, match=rf"pip install '\.\[{name}\]'"):
        begin()


WITHOUT_EXTRAS = """
import sys
for package in ("httpx2", "jsonschema", "referencing", "mcp", "mcp_types", "uvicorn", "numpy", "wordllama"):
    sys.modules[package] = None
import windowsill
from windowsill import strategies
from windowsill.cli.main import run

messages = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "word " * 60} for n in range(41)]
for name in strategies.names():
    fitted = windowsill.fit(messages, model="claude-sonnet-5", budget=2_000, strategy=name)
    assert fitted.tokens <= 2_000
assert windowsill.validate(fitted.messages, "anthropic") == []
session = windowsill.Session.open("s", model="gpt-5", store="kept")
session.extend(messages)
session.compose_sync()
assert not session.tools.call("history_search", {"query": "word"}).is_error
session.close()
sys.exit(run(["sessions", "verify", "s", "--store", "kept"]))
"""


def test_core_needs_no_extra(tmp_path):
    """Fitting with every strategy, validating, sessions with their tools and the command line work without."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "s: sound\n"), done.stderr
