"""A process that is killed while it keeps an output loses nothing else, and leaves nothing that stays."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.kept_outputs import Clock, say
from support.stores import child_env
from windowsill.messages import OutputRef
from windowsill.outputs import Outputs
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.integration

LINE = b"a line of an ordinary log\n"
CHILD = """
import sys
from itertools import count
from windowsill.messages import OutputRef
from windowsill.outputs import Outputs
from windowsill.store.sqlite import SQLiteStore

outputs = Outputs(SQLiteStore(sys.argv[1]), "s")
print(outputs.keep(["an earlier one"]).id, flush=True)

def pieces():
    for number in count():
        yield LINE * 10_000
        print(number, flush=True)

LINE = b"a line of an ordinary log\\n"
outputs.keep(pieces())
"""


@pytest.mark.parametrize("piece", [20, 60])
def test_a_writing_that_is_killed(tmp_path: Path, piece: int):
    """Earlier outputs are whole, the same content can be kept again, and what was left behind is collected."""
    path = tmp_path / "sessions.db"
    store = SQLiteStore(path)
    store.create("s", at=1.0)
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], env=child_env(), stdout=subprocess.PIPE, text=True
    ) as child:
        earlier = child.stdout.readline().strip()
        while child.stdout.readline().strip() != str(piece):
            pass
        child.send_signal(signal.SIGKILL)
    clock = Clock()
    # The killed process looked at the real one.
    clock.now = time.time()
    outputs = Outputs(store, "s", clock=clock)
    outputs.verify(earlier)
    assert store.check() == []
    assert len(store.blob_ids("s", "output/index/")) == 1

    ref = outputs.keep(LINE * 10_000 for _ in range(64))
    outputs.verify(ref.id)
    left = len(store.blob_ids("s", "output/part/"))
    clock.now += 2 * 3600
    say(store, (), (), refs=(OutputRef(id=earlier, bytes=1, lines=1), ref))
    outputs.collect()
    outputs.verify(earlier)
    outputs.verify(ref.id)
    remaining = len(store.blob_ids("s", "output/part/"))
    assert remaining == 1 + len(outputs.open(ref.id).parts) < left
    store.close()
