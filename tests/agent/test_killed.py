"""An engine that is killed between any two steps, and started again."""

import json
import signal
import subprocess
import sys

import pytest

from support import killed_agent as killed_engine
from windowsill.agent.calls import INTERRUPTED

pytestmark = pytest.mark.end_to_end

MOST = 40


@pytest.fixture(scope="module")
def agents():
    """A process that forks agents which have everything loaded."""
    with subprocess.Popen(
        [sys.executable, killed_engine.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


def ran(agents, folder, deadline=""):
    """Tell whether an agent that works there came to its end."""
    agents.stdin.write(f"{folder}\t{deadline}\n")
    agents.stdin.flush()
    code = int(agents.stdout.readline())
    assert code in (0, -signal.SIGKILL)
    return code == 0


@pytest.mark.parametrize(
    ("kind", "when", "every", "least"),
    [
        ("append", "before", 4, 3),  # The store is as after the append before: a few of them are enough.
        ("append", "after", 1, 12),
        ("tool", "before", 1, 3),
        ("tool", "after", 1, 3),
        ("look", "before", 1, 1),
        ("model", "before", 1, 4),
    ],
)
def test_a_killed_engine_goes_on_where_it_was_and_does_nothing_twice(agents, tmp_path, kind, when, every, least):
    """Whatever the moment: the task is done, and a call whose effect is uncertain is told, not repeated."""
    tasks = []
    for number in range(1, MOST, every):
        folder = tmp_path / str(number)
        folder.mkdir()
        if ran(agents, folder, f"{kind}:{number}:{when}"):
            break
        assert ran(agents, folder)
        ended = json.loads((folder / "ended.json").read_text())
        assert (ended["status"], ended["phase"], ended["problems"]) == ("completed", "completed", [])
        tasks.append(ended["tasks"])
        done = (folder / "done.log").read_text().split()
        assert len(done) == len(set(done))
        told = [said for name, said in ended["results"] if name == "put"]
        assert len(told) == 3
        # What was not done for sure is told as uncertain; what was told as done was done.
        assert sum(said != INTERRUPTED for said in told) <= len(done) <= 3
        assert {said for said in told if said != INTERRUPTED} <= {f"wrote {path}" for path in done}
        assert sum(said == INTERRUPTED for said in told) <= 1
    assert least <= len(tasks) < (MOST - 1) // every
    # Killed when the end was written already, the same task is a new one.
    assert set(tasks[:-1]) <= {1}
    assert tasks[-1] == (2 if (kind, when) == ("append", "after") else 1)
