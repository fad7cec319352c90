"""Where sessions are kept, and how an address is understood."""

from pathlib import Path

import pytest

from windowsill.errors import StoreError, WindowsillError
from windowsill.store import database_file, default_place, open_store
from windowsill.store.memory import MemoryStore
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.unit

HOME = {"HOME": "/home/ada"}


def test_the_setting_wins(tmp_path: Path):
    """WINDOWSILL_HOME comes before a local folder."""
    (tmp_path / ".windowsill").mkdir()
    assert default_place({"WINDOWSILL_HOME": "/data", **HOME}, tmp_path, platform="linux") == Path("/data")
    assert default_place({"WINDOWSILL_HOME": "~/w", **HOME}, tmp_path, platform="linux") == Path("/home/ada/w")
    assert default_place({"WINDOWSILL_HOME": "w", **HOME}, tmp_path, platform="linux") == tmp_path / "w"


def test_a_local_folder_is_used_when_it_exists(tmp_path: Path):
    """`.windowsill/` in the current folder comes before the user's data folder."""
    assert default_place(HOME, tmp_path, platform="linux") == Path("/home/ada/.local/share/windowsill")
    (tmp_path / ".windowsill").mkdir()
    assert default_place({"WINDOWSILL_HOME": "", **HOME}, tmp_path, platform="linux") == tmp_path / ".windowsill"


@pytest.mark.parametrize(
    ("platform", "env", "place"),
    [
        ("linux", {"XDG_DATA_HOME": "/xdg"}, "/xdg/windowsill"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "/home/ada/.local/share/windowsill"),
        ("darwin", {"XDG_DATA_HOME": "/xdg"}, "/home/ada/Library/Application Support/windowsill"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/windowsill"),
        ("win32", {}, "/home/ada/AppData/Local/windowsill"),
    ],
)
def test_the_users_data_folder(tmp_path: Path, platform: str, env: dict[str, str], place: str):
    """Each system has its own place for a program's data."""
    assert default_place({**HOME, **env}, tmp_path, platform=platform) == Path(place)


@pytest.mark.parametrize(
    ("address", "file"),
    [
        ("/data", "/data/sessions.db"),
        (Path("/data"), "/data/sessions.db"),
        ("/data/mine.db", "/data/mine.db"),
        ("/data/mine.sqlite", "/data/mine.sqlite"),
        ("mine.db", "/here/mine.db"),
        ("~/mine.db", "/home/ada/mine.db"),
        ("sqlite:////data/mine.db", "/data/mine.db"),
        ("sqlite:///mine.db", "/here/mine.db"),
        ("sqlite:///folder", "/here/folder/sessions.db"),
    ],
)
def test_an_address_means_a_file(address: str | Path, file: str):
    """A database's ending makes it the file; anything else is the folder around `sessions.db`."""
    assert database_file(address, HOME, Path("/here")) == Path(file)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("postgresql://u:secret@host/db?no=option", "the address of the PostgreSQL store cannot be read"),
        ("postgresql://u:secret@host/db?schema=", "is not a name"),
        ("postgresql://u:secret@host/db?pool=many", "pool=many in the store's address is no number"),
        ("postgresql://u:secret@127.0.0.1:1/db?connect_timeout=1", "the connection failed"),
        ("mysql://u:secret@host/db", "no store is known for mysql:// addresses"),
        ("", "the store's address is empty"),
        ("sqlite:///", "the store's address is empty"),
    ],
)
def test_an_address_that_means_nothing(address: str, says: str):
    """The error names the kind of address, and never the password in it."""
    with pytest.raises(WindowsillError, match=says) as caught:
        open_store(address)
    assert "secret" not in str(caught.value)


def test_a_file_is_not_a_folder(tmp_path: Path):
    """A file without a database's ending is not taken for a folder."""
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(StoreError, match="is a file, not a folder"):
        open_store(tmp_path / "notes")


@pytest.mark.parametrize("address", [":memory:", "sqlite://", "sqlite:///:memory:"])
def test_memory_has_no_file(address: str):
    """A store in memory is opened by its usual names."""
    assert isinstance(open_store(address), MemoryStore)


def test_opens_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without an address the sessions are where the setting says, for their owner alone."""
    monkeypatch.setenv("WINDOWSILL_HOME", str(tmp_path / "home"))
    store = open_store()
    assert isinstance(store, SQLiteStore)
    store.create("s", at=1.0)
    files = sorted((tmp_path / "home").iterdir())
    assert [file.name for file in files] == ["sessions.db", "sessions.db-shm", "sessions.db-wal"]
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}
    assert oct((tmp_path / "home").stat().st_mode & 0o777) == "0o700"
    store.close()
    assert [file.name for file in (tmp_path / "home").iterdir()] == ["sessions.db"]


def test_the_wait_for_other_writers_is_part_of_an_address(tmp_path, monkeypatch):
    """Seconds, whole or not; anything else behind the question mark is refused, and a plain path may hold one."""
    monkeypatch.chdir(tmp_path)
    for address, seconds in (("sqlite:///a.db?wait=0.5", 0.5), ("sqlite:///a.db", 10.0), ("a?wait=3.db", 10.0)):
        store = open_store(address)
        assert store._connections._busy_seconds == seconds
        store.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.db", "a?wait=3.db"]
    for wrong in ("?wait=soon", "?waiting=3", "?wait="):
        with pytest.raises(StoreError, match=r"give \?wait=SECONDS"):
            open_store(f"sqlite:///b.db{wrong}")
