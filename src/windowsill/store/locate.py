"""Where sessions are kept: from an address, a setting or the machine's habits to a database file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from windowsill.errors import StoreError

DATABASE = "sessions.db"
MEMORY = ":memory:"
_FILE_ENDINGS = (".db", ".sqlite", ".sqlite3")
_SQLITE = "sqlite:///"
_POSTGRESQL = ("postgresql", "postgres")


def default_place(env: Mapping[str, str], cwd: Path, *, platform: str = sys.platform) -> Path:
    """The folder for sessions: `WINDOWSILL_HOME`, else `.windowsill/` here if there is one, else the user's data."""
    stated = env.get("WINDOWSILL_HOME")
    if stated:
        return cwd / _expand(stated, env)
    local = cwd / ".windowsill"
    return local if local.is_dir() else _data_folder(env, platform) / "windowsill"


def database_file(address: str | Path | None, env: Mapping[str, str], cwd: Path) -> Path | None:
    """The database file an address means; `None` for one that lives in memory only.

    `sqlite:///x.db` is relative to the current folder and `sqlite:////x.db` is not, as elsewhere in Python. A path with
    a database's ending is the file itself; any other is the folder that holds `sessions.db`.
    """
    if address is None:
        return default_place(env, cwd) / DATABASE
    text = str(address)
    if text in (MEMORY, _SQLITE + MEMORY, "sqlite://"):
        return None
    if "://" in text and not isinstance(address, Path):
        text = _without_scheme(text)
    if not text:
        raise StoreError("the store's address is empty", remedy="give a folder, or a file that ends with .db")
    path = cwd / _expand(text, env)
    if path.suffix in _FILE_ENDINGS:
        return path
    if path.is_file():
        raise StoreError(
            f"{path} is a file, not a folder", remedy="give a folder, or a database file that ends with .db", path=path
        )
    return path / DATABASE


def _without_scheme(address: str) -> str:
    scheme = address.partition("://")[0].lower()
    if address.startswith(_SQLITE):
        return address.removeprefix(_SQLITE)
    # The address itself stays out of the message: it may hold a password.
    if scheme.partition("+")[0] in _POSTGRESQL:
        raise StoreError("PostgreSQL is not available in this version", remedy="give a folder or sqlite:///FILE")
    raise StoreError(f"no store is known for {scheme}:// addresses", remedy="give a folder or sqlite:///FILE")


def _data_folder(env: Mapping[str, str], platform: str) -> Path:
    home = _home(env)
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        stated = env.get("LOCALAPPDATA")
        return Path(stated) if stated else home / "AppData" / "Local"
    stated = env.get("XDG_DATA_HOME")
    # The XDG rules say to ignore a path that is not absolute.
    return Path(stated) if stated and Path(stated).is_absolute() else home / ".local" / "share"


def _expand(text: str, env: Mapping[str, str]) -> Path:
    if text == "~" or text.startswith(("~/", "~\\")):
        return _home(env) / text[2:]
    return Path(text)


def _home(env: Mapping[str, str]) -> Path:
    stated = env.get("HOME") or env.get("USERPROFILE")
    if stated:
        return Path(stated)
    try:
        return Path.home()
    except RuntimeError as error:
        raise StoreError("this user has no home folder", remedy="set WINDOWSILL_HOME to a folder") from error
