"""Large outputs stream: what they take of memory does not depend on their size."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.stores import child_env

pytestmark = pytest.mark.integration

CHILD = """
import sys
from pathlib import Path
from windowsill.outputs import Outputs
from windowsill.store.sqlite import SQLiteStore

def peak():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])

store = SQLiteStore(sys.argv[1])
store.create("s", at=0.0)
outputs = Outputs(store, "s")
outputs.grep(outputs.keep(["warm up"]).id, "x+")
block = {block}
before = peak()
ref = outputs.keep(block for _ in range(200))
outputs.read(ref.id, max(1, ref.lines // 2))
outputs.read(ref.id, 1, column=ref.bytes // ref.lines // 2)
outputs.grep(ref.id, "nothing")
outputs.grep(ref.id, "a[0-9]{{3}}b|xyz", context=2)
outputs.preview(ref.id)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
@pytest.mark.parametrize(
    "block",
    ["b'a line of an ordinary log, a123b\\n' * 31_775", "b'one line a123b ' * 69_905"],
    ids=["lines", "one line"],
)
def test_200_mb_need_little_memory(tmp_path: Path, block: str):
    """Keeping, reading and searching 200 MB, in lines or as one line, takes less than 64 MiB."""
    told = subprocess.run(
        [sys.executable, "-c", CHILD.format(block=block), str(tmp_path / "sessions.db")],
        env=child_env(),
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(told.stdout) < 64 * 1024
