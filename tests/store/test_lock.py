"""A lock's holder: its name, and whether it lives."""

import os
import socket
import subprocess
import sys
import threading

import pytest

from windowsill.store.base import holder_name, is_dead

pytestmark = pytest.mark.unit

NAME = "from windowsill.store.base import holder_name; print(holder_name(), flush=True); input()"


def test_a_name_says_where_and_who():
    """The name begins with the host and the process, and ends with the thread."""
    host, pid, _, thread = holder_name().rsplit(":", 3)
    assert host.startswith(socket.gethostname())
    assert (int(pid), int(thread)) == (os.getpid(), threading.get_native_id())


def test_a_name_stays_the_same():
    """A thread that asks twice is the same holder, so that it can renew."""
    assert holder_name() == holder_name()


def test_threads_have_names_of_their_own():
    """Two threads of a process are two holders."""
    names = [holder_name()]
    thread = threading.Thread(target=lambda: names.append(holder_name()))
    thread.start()
    thread.join()
    assert names[0] != names[1]


def test_a_process_is_dead_when_it_was_killed():
    """A holder lives while its process does, and is dead as soon as it is killed, even before it is buried."""
    with subprocess.Popen(
        [sys.executable, "-c", NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        name = child.stdout.readline().strip()
        assert not is_dead(name)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_dead(name)
    assert is_dead(name)


def test_a_number_that_was_given_again_is_somebody_else():
    """The same process number with another start time is a dead holder."""
    host, pid, _, thread = holder_name().rsplit(":", 3)
    assert is_dead(f"{host}:{pid}:1:{thread}")


@pytest.mark.parametrize("name", ["me", "", "a:b:c:d", "elsewhere:999999:1:1", "elsewhere/4026531836:1:1:1"])
def test_what_cannot_be_known_from_here_is_not_dead(name: str):
    """Names of other hosts, and names of another form, live until their time is over."""
    assert not is_dead(name)
