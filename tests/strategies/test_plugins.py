"""Plug-ins: found through entry points, loaded when they are asked for, reported when they cannot be used."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from support.cli_calls import anthropic_turns, saved
from support.sessions import opened, talk
from windowsill import NotFoundError, SettingError, strategies
from windowsill.strategies import registry
from windowsill.strategies.sliding_window import SlidingWindow

pytestmark = pytest.mark.integration

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "windowsill-quiet"

GOOD = """
import msgspec
from windowsill import Plan, Strategy

class Good(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    '''A good one.'''
    size: int = 3
    '''How large.'''
    name = "good"
    def plan(self, view, budget):
        return Plan(notes=(f"good {self.size}",))
"""

BROKEN = {
    "raises": ("raise RuntimeError('boom')", "RuntimeError: boom"),
    "exits": ("raise SystemExit(3)", "SystemExit: 3"),
    "needs": ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
    "lacks": ("", "AttributeError"),
    "shapeless": ("Good = 5", "5 is not a class derived from windowsill.Strategy"),
    "function": ("def Good(): raise OSError('called')", "is not a class derived from windowsill.Strategy"),
    "foreign": ("class Good:\n    name = 'x'\n    def plan(self, *_): pass", "is not a class derived from"),
    "unmade": (
        "from windowsill import Strategy\nclass Good(Strategy):\n    def __init__(self): raise OSError('no')",
        "cannot be made (OSError: no)",
    ),
}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs modules as plug-ins: `installed(name=source)`."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(**modules):
        points = []
        for name, source in modules.items():
            (tmp_path / f"{name}_module.py").write_text(source)
            points.append(EntryPoint(name, f"{name}_module:Good", registry.GROUP))
        offer(monkeypatch, *points)

    yield install
    forget()
    for name in [each for each in sys.modules if each.endswith("_module") and "." not in each]:
        sys.modules.pop(name)


def offer(monkeypatch, *points):
    """Let these be the entry points of installed packages."""
    forget()
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: points)


def forget():
    registry.plugin_points.cache_clear()
    registry.find_plugin.cache_clear()


def plan_of(strategy):
    session = opened()
    talk(session, 40)
    return strategy.plan(session.view, session.composer.budget(0))


def test_plug_ins_are_listed_with_ours(installed):
    """Without being loaded."""
    installed(good=GOOD, raises="raise RuntimeError('boom')")
    assert set(strategies.names()) == {*registry.BUILT_IN, "good", "raises"}
    assert "good_module" not in sys.modules


def test_a_plug_in_is_a_strategy_by_its_name_with_settings(installed):
    """Read as those of a built-in one are."""
    installed(good=GOOD)
    assert plan_of(strategies.get("good:size=8")).notes == ("good 8",)
    assert plan_of(strategies.get("good", {"size": 9})).notes == ("good 9",)
    assert strategies.settings_of("good") == {"size": 3}


def test_a_setting_that_a_plug_in_does_not_take_is_the_users_mistake(installed):
    """It is refused, not replaced."""
    installed(good=GOOD)
    with pytest.raises(SettingError, match=r"setting 'good\.sise' is '8'; give size"):
        strategies.get("good:sise=8")


def test_a_name_of_ours_stays_ours(installed, caplog):
    """The plug-in that wanted it is reported."""
    installed(native=GOOD)
    assert type(strategies.get("native")).__module__ == "windowsill.strategies.native"
    assert strategies.settings_of("native") != {"size": 3}
    assert strategies.names() == tuple(sorted(registry.BUILT_IN))
    assert "plug-in 'native' of native_module: windowsill has a strategy of this name already" in caplog.text


def test_only_the_plug_in_that_is_asked_for_is_loaded(installed):
    """Another one that fails costs nothing."""
    installed(good=GOOD, raises="raise RuntimeError('boom')")
    strategies.get("good")
    assert "raises_module" not in sys.modules


@pytest.mark.parametrize(("name", "source", "error"), [(name, *rest) for name, rest in BROKEN.items()])
def test_a_plug_in_that_cannot_be_used_is_reported_and_the_default_takes_over(name, source, error, installed, caplog):
    """With name, package and error, in the log and in every plan's notes."""
    installed(**{name: source})
    plan = plan_of(strategies.get(name))
    assert plan.notes[0].startswith(f"strategy {name!r} of {name}_module ")
    assert error in plan.notes[0]
    assert plan.notes[0] in caplog.text
    assert plan.proposals[0].strategy == SlidingWindow.name


def test_threads_that_ask_for_the_same_plug_in_all_get_it(installed):
    """However long it takes to load."""
    installed(good="import time; time.sleep(0.1)\n" + GOOD)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: strategies.get("good:size=5"), range(8)))
    assert {plan_of(each).notes for each in made} == {("good 5",)}


def test_damaged_metadata_of_some_package_cost_no_strategy_of_ours(monkeypatch, caplog):
    """They are told in the log."""

    def damaged(**_):
        raise ValueError("no section")

    forget()
    monkeypatch.setattr(importlib.metadata, "entry_points", damaged)
    assert set(strategies.names()) == set(registry.BUILT_IN)
    assert "plug-ins cannot be looked for: ValueError: no section" in caplog.text
    forget()


def test_of_two_packages_with_one_name_the_same_gets_it_every_time(installed, monkeypatch, caplog):
    """The first by package; the other is reported."""
    installed(good=GOOD, other=GOOD)
    offer(monkeypatch, *(EntryPoint("x", f"{name}_module:Good", registry.GROUP) for name in ("other", "good")))
    assert registry.find_plugin("x").package == "good_module"
    assert "plug-in 'x' of other_module: good_module has a strategy of this name already" in caplog.text


def test_a_name_that_nobody_offers_is_still_unknown(installed):
    """The error lists those of plug-ins too."""
    installed(good=GOOD)
    with pytest.raises(NotFoundError, match=r"there is no strategy 'bad'; use one of .*good"):
        strategies.get("bad")


def test_a_plug_in_is_a_stage_of_a_pipeline(installed):
    """As any other."""
    installed(good=GOOD)
    assert strategies.get("good:size=1+sliding-window").name == "good+sliding-window"


@pytest.mark.parametrize(
    "code",
    [
        "import windowsill",
        "import windowsill; windowsill.Session.open('s', window=9000, store=':memory:').close()",
        "from windowsill.cli.main import run; run(['--help']); run(['strategies', '--help'])",
        "from windowsill.cli.main import run; run(['fit', '--help'])",
    ],
)
def test_nothing_looks_for_plug_ins_before_one_is_needed(code, tmp_path):
    """The metadata of packages are not read."""
    looked = "from windowsill.strategies.registry import plugin_points; print(plugin_points.cache_info().currsize)"
    done = python(tmp_path, "-c", f"{code}\n{looked}")
    assert done.stdout.splitlines()[-1] == "0", done.stderr


def python(folder, *arguments, flags=("-W", "error"), site=None):
    """Run Python, with what is installed in `site` too."""
    paths = os.pathsep.join(filter(None, (site and str(site), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, *flags, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """A folder into which pip built and installed the example package."""
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    site = folder / "site"
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    done = python(folder, "-m", "pip", "install", *offline, "--target", site, source, flags=())
    assert done.returncode == 0, done.stderr
    return site


def test_the_example_package_is_installed_with_its_entry_point(quiet):
    """As an installer leaves it: the module, and metadata that name it under the group `windowsill`."""
    assert (quiet / "windowsill_quiet" / "__init__.py").is_file()
    [info] = quiet.glob("windowsill_quiet-*.dist-info")
    assert (info / "entry_points.txt").read_text().splitlines()[:2] == [
        "[windowsill]",
        "quiet = windowsill_quiet:Quiet",
    ]


def test_the_example_package_is_found_and_used(quiet, tmp_path):
    """By its name on the command line, with a setting; its fold is in the report."""
    body = saved(tmp_path / "body.json", anthropic_turns(30))
    report = tmp_path / "report.json"
    done = python(
        tmp_path,
        *("-m", "windowsill", "fit", body, "--budget", "2000", "--strategy", "quiet:keep=2", "--report", report),
        site=quiet,
    )
    assert done.returncode == 0, done.stderr
    folds = json.loads(report.read_text())["folds"]
    assert [fold["strategy"] for fold in folds] == ["quiet"]


def test_the_example_package_is_listed_with_its_package(quiet, tmp_path):
    """And with what its setting means."""
    done = python(tmp_path, "-m", "windowsill", "strategies", "quiet", site=quiet)
    assert done.stdout.splitlines() == [
        "quiet (plug-in of windowsill-quiet): Hides the largest messages first, so that as few as possible are hidden.",
        "  keep=4  The latest messages that are never hidden.",
    ]


def test_the_example_package_is_used_by_a_session(quiet, tmp_path):
    """By its name in code, and it is loaded from where it was installed."""
    code = """
import windowsill, sys
session = windowsill.Session.open("s", window=2_000, strategy="quiet:keep=2", store=":memory:")
for number in range(80):
    session.add({"role": ("user", "assistant")[number % 2], "content": f"step {number} " + "word " * (number % 90)})
print({fold.strategy for fold in session.compose_sync().report.folds}, sys.modules["windowsill_quiet"].__file__)
"""
    done = python(tmp_path, "-c", code, site=quiet)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{{'quiet'}} {quiet / 'windowsill_quiet' / '__init__.py'}"


def test_the_strategy_of_the_example_has_twenty_lines():
    """What the page promises."""
    code = (EXAMPLE / "src" / "windowsill_quiet" / "__init__.py").read_text().partition("class ")[2]
    assert len([line for line in code.splitlines() if line.strip()]) <= 20


def test_the_page_shows_the_example_as_it_is():
    """Word for word, followed by its use in a session, so that the example runs alone."""
    page = (EXAMPLE.parents[1] / "docs" / "plugins.md").read_text()
    assert f"```python\n{(EXAMPLE / 'src' / 'windowsill_quiet' / '__init__.py').read_text()}\n\nimport" in page
    assert (EXAMPLE / "pyproject.toml").read_text().partition("[project.entry-points")[2].partition("\n\n")[0] in page
