"""Commands put together at random: what a shell really reads of a forbidden file is refused before it runs."""

import random
import subprocess
from pathlib import Path

import pytest

from windowsill.messages import Tool
from windowsill.state import State
from windowsill.state.layers import Constraints, System
from windowsill.state.policies import Guard
from windowsill.state.tools import ToolOffer

pytestmark = pytest.mark.integration

COMMANDS = 60
"""Commands in `make test`."""
SECRET = "TOPSECRET"
SHELL = ToolOffer(Tool(name="bash", schema={"type": "object", "properties": {"command": {"type": "string"}}}))

READERS = (
    *("cat {}", "head -n 1 {}", "tail -n1 {}", "sed -n p {}", "awk 1 {}", "grep . {}", "sort {}", "tee < {}", "nl {}"),
    *("cat < {}", "cut -c1- {}", "od -c {} >/dev/null; cat {}", "diff /dev/null {}", "xargs cat <<< {}", "cat -- {}"),
    *("bash -c 'cat {}'", 'sh -c "cat {}"', "env cat {}", "timeout 5 cat {}", "while read l; do echo $l; done < {}"),
    *("f={}; cat $f", 'f={}; cat "${f}"', "for f in {}; do cat $f; done", "echo hi && cat {}", "cat ./a {}"),
    *("(cat {})", "{{ cat {}; }}", "echo $(cat {})", "echo `cat {}`", "cat {} | cat", "cat {} # it's", "eval cat {}"),
    *("python3 -c \"print(open('{}').read())\"", "perl -pe1 {}", "true; cat {} 2>/dev/null", "! cat {}"),
    *("x=1 cat {}", "command cat {}", "exec cat {}", "time cat {}", "nice cat {}", "nohup cat {} 2>/dev/null"),
    "if true; then cat {}; fi",
)


def spelled(rng: random.Random, base: Path) -> str:
    """Write the path of the secret in one of the ways of a shell, seen from the folder `project` beside it."""
    whole = f"{base}/vault/key"
    return rng.choice(
        [
            *(whole, "../vault/key", "./../vault/key", f"{base}//vault/./key", f"{base}/project/../vault/key"),
            *(f"{base}/va''ult/key", f'{base}/"vault"/key', f"{base}/vaul\\t/key", f"{base}/'vault'/k\\ey"),
            *(f"{base}/vaul[t]/key", f"{base}/v*lt/key", f"{base}/?ault/key", f"{base}/[!a]ault/k*", "../v*/key"),
            *(f"{base}/{{vault,none}}/key", f"{base}/va{{ul,xx}}t/key", f"{base}/vault/{{key,key}}"),
            *("$PWD/../vault/key", "${PWD}/../vault/key", "~+/../vault/key", f"{base}/vault/ke${{none}}y"),
        ]
    )


def changed_folder(rng: random.Random, base: Path) -> str:
    """Return a change of the folder, after which the secret is near, or nothing."""
    return rng.choice(
        ["", "", "", f"cd {base}/vault; ", "cd ..; ", "cd ../vault && ", f"cd -- {base} && ", "pushd .. >/dev/null; "]
    )


def test_a_command_that_reads_a_forbidden_file_is_refused(tally, tmp_path):
    """Whatever its reader, its spelling and its folder, as far as its words show them."""
    base = tmp_path.resolve()
    project, vault = base / "project", base / "vault"
    project.mkdir()
    vault.mkdir()
    (vault / "key").write_text(f"{SECRET}\n")
    (project / "a").write_text("nothing\n")
    guards = [
        Guard(System(constraints=Constraints(max_tool_calls=None, forbidden_paths=(str(path),))), base=str(project))
        for path in (vault, vault / "key")
    ]

    def trial(rng: random.Random) -> list[str]:
        path, folder = spelled(rng, base), changed_folder(rng, base)
        near = {"cd ..; ": "vault/key", f"cd -- {base} && ": "./vault/key", "pushd .. >/dev/null; ": "vault/key"}
        if folder:
            path = near.get(folder, "key") if rng.random() < 0.7 else f"{base}/vault/key"
        command = folder + rng.choice(READERS).replace("{{", "{").replace("}}", "}").replace("{}", path)
        done = subprocess.run(
            ["bash", "-c", command], cwd=project, capture_output=True, text=True, check=False, timeout=20
        )
        if SECRET not in done.stdout:
            return []
        tally.count("commands: that read the file")
        outcomes = [guard.judge(SHELL, {"command": command}, State()).outcome for guard in guards]
        return [command] if "allowed" in outcomes else []

    tally.run("commands: tried", COMMANDS, trial)
    tally.check()
