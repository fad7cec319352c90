"""Fetch the JavaScript libraries of the inspector's page: at each build, and by `python hatch_build.py`.

The files go to `static/vendor`, which git ignores and which wheels and source archives contain. Each package is pinned
by version and hash. Where npm is missing or offline the build goes on, and the page says what is missing.
"""

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # run by make, outside of a build
    BuildHookInterface = object

VENDOR = Path(__file__).parent / "src" / "windowsill" / "inspector" / "static" / "vendor"
TIME_LIMIT = 120  # seconds for all packages

# Package and version, sha512 of its archive, and the files taken from it with the names they get.
PACKAGES: list[tuple[str, str, dict[str, str]]] = [
    (
        "preact@11.2.0",
        "/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        {"dist/preact.mjs": "preact.js", "hooks/dist/hooks.mjs": "hooks.js", "LICENSE": "preact.LICENSE"},
    ),
    (
        "htm@3.1.1",
        "983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {"dist/htm.mjs": "htm.js", "LICENSE": "htm.LICENSE"},
    ),
    (
        "@preact/signals-core@1.14.5",
        "vcRv7Ityz5JVmeiVqIluLFzT/PDS/AlhHUpw3/aUWqcVUs6bDGIPXE/6RSC4evBNWYvnniozg5Syfj33al3gkg==",
        {"dist/signals-core.mjs": "signals-core.js", "LICENSE": "signals-core.LICENSE"},
    ),
    (
        "@preact/signals@2.11.4",
        "Rb+5RPo9gWSaHtzJeauhHxiC8KP/IF2DEPkHPEOGOnuy2wnJzRqyeLRankUCYd6ADqtxS6GnWGv6Ie343d8aYw==",
        {"dist/signals.mjs": "signals.js", "LICENSE": "signals.LICENSE"},
    ),
    (
        "uplot@1.6.32",
        "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        {"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css", "LICENSE": "uplot.LICENSE"},
    ),
]
# A browser resolves no bare names without an import map, which a strict content policy forbids: they become paths.
IMPORTS = {
    "preact": "./preact.js",
    "preact/hooks": "./hooks.js",
    "@preact/signals-core": "./signals-core.js",
}


def fetch() -> dict[str, tarfile.TarFile]:
    """Return the archives of the packages by their hash, as npm finds them in its registry."""
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        packages = [package for package, _, _ in PACKAGES]
        arguments = [npm, "pack", "--silent", "--ignore-scripts", "--prefer-offline", "--fetch-retries=1"]
        arguments += ["--pack-destination", folder, *packages]
        subprocess.run(arguments, check=True, capture_output=True, cwd=folder, timeout=TIME_LIMIT)  # noqa: S603  # ours
        archives = [path.read_bytes() for path in Path(folder).glob("*.tgz")]
    return {
        base64.b64encode(hashlib.sha512(data).digest()).decode(): tarfile.open(fileobj=io.BytesIO(data), mode="r:gz")
        for data in archives
    }


def adapt(name: str, text: str) -> str:
    """Return a library's file with imports by path, as a module, and without the address of its source map."""
    text = re.sub(r"\n?(//|/\*)# sourceMappingURL=\S+( \*/)?", "", text)
    text = re.sub(r'(from|import)"([^"./][^"]*)"', lambda found: f'{found[1]}"{IMPORTS[found[2]]}"', text)
    return text + "\nexport default uPlot;\n" if name == "uplot.js" else text


def vendor(folder: Path) -> None:
    """Fill the folder with the pinned files, unless it holds them already."""
    stamp = folder / "packages.json"
    pinned = json.dumps([[package, digest, files] for package, digest, files in PACKAGES], indent=1)
    if stamp.is_file() and stamp.read_text() == pinned:
        return
    archives = fetch()
    texts: dict[str, str] = {}
    for package, digest, files in PACKAGES:
        if digest not in archives:
            raise ValueError(f"the archive of {package} does not have the pinned hash sha512-{digest}")
        for path, name in files.items():
            member = archives[digest].extractfile(f"package/{path}")
            if member is None:
                raise ValueError(f"{package} has no file {path}")
            texts[name] = adapt(name, member.read().decode())
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    stamp.write_text(pinned)


def try_vendor(folder: Path = VENDOR) -> bool:
    """Fill the folder, or print why that is impossible and return False."""
    try:
        vendor(folder)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        sys.stderr.write(
            f"windowsill: npm could not fetch the libraries of the inspector's page: {text.strip()}\n"
            "Remedy: install npm, or reach its registry, and install again.\n"
        )
        return False
    return True


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc,valid-type]  # object outside of a build
    """Fetch the libraries before hatchling collects the files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # hatchling's signature
        """Fill `static/vendor`."""
        try_vendor()


if __name__ == "__main__":
    sys.exit(0 if try_vendor() else 1)
