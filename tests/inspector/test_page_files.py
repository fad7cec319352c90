"""The files of the inspector's page: small, without markup from texts, with libraries that are fetched and checked."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit
ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "windowsill" / "inspector" / "static"
OWN = sorted(STATIC.glob("*.js"))


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The build hook, filling a folder of its own."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "VENDOR", tmp_path / "vendor")
    return module


def test_the_page_weighs_less_than_a_quarter_of_a_megabyte():
    """All files that a browser loads, libraries included, stay under 250 KB."""
    loaded = [file for file in STATIC.rglob("*") if file.suffix in (".js", ".css", ".html")]
    assert len(loaded) > 10
    assert sum(file.stat().st_size for file in loaded) < 250_000


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.name)
def test_texts_never_become_markup(file: Path):
    """No module writes HTML, evaluates text, or names another machine."""
    text = file.read_text()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "://"):
        assert word not in text, word


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.name)
def test_every_import_is_a_file_beside_the_page(file: Path):
    """Imports are static and relative, so that a strict policy allows them and an export can hold them."""
    names = re.findall(r'from "([^"]+)"', file.read_text())
    assert "import(" not in file.read_text()
    pinned = (ROOT / "hatch_build.py").read_text()
    for name in names:
        assert name.startswith("./")
        assert (STATIC / name).is_file() or f'"{Path(name).name}"' in pinned


def test_a_package_with_another_hash_is_refused(hook, monkeypatch: pytest.MonkeyPatch, capsys):
    """Nothing is written when an archive is not the pinned one, and the build goes on."""

    def pack(arguments: list[str], **_: object) -> None:
        folder = Path(arguments[arguments.index("--pack-destination") + 1])
        subprocess.run(["tar", "-czf", str(folder / "preact.tgz"), "-C", str(ROOT), "LICENSE"], check=True)

    monkeypatch.setattr(hook.shutil, "which", lambda _: "npm")
    real = subprocess.run
    monkeypatch.setattr(hook.subprocess, "run", lambda a, **k: pack(a, **k) if a[0] == "npm" else real(a, **k))
    assert hook.try_vendor(hook.VENDOR) is False
    assert "preact@11.2.0 does not have the pinned hash" in capsys.readouterr().err
    assert not hook.VENDOR.exists()


def test_without_npm_the_build_goes_on_and_says_what_is_missing(hook, monkeypatch: pytest.MonkeyPatch, capsys):
    """The reason and the remedy are printed."""
    monkeypatch.setattr(hook.shutil, "which", lambda _: None)
    assert hook.try_vendor(hook.VENDOR) is False
    assert "npm is not installed" in capsys.readouterr().err


def test_what_is_there_already_is_not_fetched_again(hook, monkeypatch: pytest.MonkeyPatch):
    """A folder that holds the pinned packages is left alone, so that an archive can be built without npm."""
    monkeypatch.setattr(hook, "fetch", lambda: pytest.fail("it was fetched"))
    hook.vendor(STATIC / "vendor")


def test_libraries_get_paths_and_lose_the_addresses_of_their_maps(hook):
    """Bare names become paths, and the chart library becomes a module."""
    text = 'import{h}from"preact";x();\n//# sourceMappingURL=a.mjs.map'
    assert hook.adapt("signals.js", text) == 'import{h}from"./preact.js";x();'
    assert hook.adapt("uplot.js", "var uPlot=1;").endswith("export default uPlot;\n")
