"""Which sessions an archive may look into."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import msgspec

from windowsill.errors import SettingError
from windowsill.store import SessionInfo, Store

Scope: TypeAlias = Literal["session", "project", "user", "all"]


def check_scope(scope: str) -> None:
    """Refuse a scope that does not exist."""
    if scope not in get_args(Scope):
        raise SettingError("scope", scope, "one of " + ", ".join(get_args(Scope)))


def visible(store: Store, session: str, scope: Scope) -> list[SessionInfo]:
    """The sessions within a scope, as they are now.

    `project` and `user` are those whose settings name the same project or user as this one's; a session that names
    none is alone.
    """
    own = store.info(session)
    if scope == "session":
        return [own] if own else []
    every = store.sessions()
    if scope == "all":
        return every
    wanted = _named(own, scope) if own else None
    return [info for info in every if info.id == session or (wanted is not None and _named(info, scope) == wanted)]


def _named(info: SessionInfo, scope: str) -> str | None:
    try:
        settings: Any = msgspec.json.decode(info.settings)
    except msgspec.DecodeError:
        return None
    value = settings.get(scope) if isinstance(settings, dict) else None
    return value if isinstance(value, str) and value else None
