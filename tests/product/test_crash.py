"""A disk that is full: what a session said it has, it has. `tests/soak/test_kills.py` kills its processes."""

import subprocess
import sys

import pytest

from support.sessions import opened
from support.stores import child_env

pytestmark = pytest.mark.integration

DISK_FULL = """
import resource, sys
from support.sessions import opened, problems, talk
from windowsill import StoreError

session = opened(sys.argv[1])
talk(session, 20)
session.compose_sync(system="You mend.")
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, most))
for _ in range(2):
    try:
        session.add({"role": "assistant", "content": "huge " + "x" * 1_000_000})
    except StoreError as error:
        print(type(error).__name__, error)
print(len(list(session.messages())), len(session.view.items))
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
print(session.add({"role": "assistant", "content": "huge " + "x" * 1_000_000}))
print(session.add({"role": "user", "content": "and on"}))
payload = session.compose_sync(system="You mend.")
print(payload.tokens <= 1_500, problems(payload), session.verify())
print(len(list(session.messages())), len(session.calls))
session.close()
"""

DISK_FULL_COMPOSING = """
import resource, sys
from pathlib import Path
from support.sessions import opened, problems, shown, talk
from windowsill import StoreError

session = opened(sys.argv[1])
talk(session, 40)
before = shown(session)
wal = next(Path(sys.argv[1]).glob("*-wal")).stat().st_size
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (wal, most))
try:
    session.compose_sync(system="You mend.")
except StoreError as error:
    print(type(error).__name__, error)
print(shown(session) == before)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
payload = session.compose_sync(system="You mend.")
print(payload.tokens <= 1_500, problems(payload), len(session.folds), session.verify())
session.close()
"""


def output(code, folder):
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], env=child_env(), text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_full_disk_in_the_middle_of_adding(tmp_path):
    """The error says what to do; with room again the same process goes on, and nothing is lost or there twice."""
    said = output(DISK_FULL, tmp_path)
    assert [line.partition(" ")[0] for line in said[:2]] == ["StoreError", "StoreError"]
    assert "check free space" in said[0]
    assert said[2].startswith("41 ")
    assert said[5] == "True [] []"
    assert said[6] == "43 2"
    with opened(tmp_path) as again:
        kept = [message.id for message in again.messages()]
        assert kept[-2:] == said[3:5]
        assert len(kept) == len(set(kept)) == 43
        assert again.verify() == []


def test_a_full_disk_in_the_middle_of_composing(tmp_path):
    """A fold that could not be written was not made; with room again it is made once."""
    said = output(DISK_FULL_COMPOSING, tmp_path)
    assert said[0].startswith("StoreError ")
    assert said[1] == "True"
    assert said[2] == "True [] 1 []"
