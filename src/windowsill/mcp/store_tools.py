"""The tools of all sessions of a store: those of one session, each with the session to ask, and a list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from windowsill.errors import NotFoundError, WindowsillError
from windowsill.messages import Tool
from windowsill.search.archive import setting_of
from windowsill.session import Session
from windowsill.session.toolbox import TOOLS, Answer, definition
from windowsill.store import Store

LIST_TOOL = "sessions_list"
MOST_LISTED = 50

_SESSION = {
    "type": "string",
    "description": f"The session to ask, as {LIST_TOOL} shows it; this conversation, or the last used, if left out.",
}
_LISTS = Tool(
    name=LIST_TOOL,
    description="List the sessions that are kept, the last used first.",
    schema={"type": "object", "properties": {}, "required": [], "additionalProperties": False},
)


class StoreToolbox:
    """Tools with which a model reads and searches any session of a store; they lock and change none.

    Asked without a session they take the one that `current` names, else the last used of `project`, else the last used.
    """

    def __init__(self, store: Store, *, current: Callable[[], str] | None = None, project: str = "") -> None:
        self._store = store
        self._current = current
        self._project = project

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The definitions."""
        return (*(_with_session(definition(name)) for name in TOOLS), _LISTS)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Answer:
        """Run a tool. Whatever a model may get wrong is answered, not raised."""
        given = dict(arguments or {})
        try:
            if name == LIST_TOOL:
                return Answer(self._list())
            id = self._find(given.pop("session", None))
            with Session.open(id, store=self._store, config=False) as session:
                return session.tools.call(name, given)
        except WindowsillError as error:
            return Answer(f"Error: {error}", is_error=True)

    def _find(self, wanted: object) -> str:
        known = self._store.sessions()
        if wanted is None:
            held = self._current() if self._current is not None else ""
            # A conversation beside another, such as one that asked for a title, is not the one that is meant.
            whole = [info for info in known if "/" not in info.id] or known
            here = [info for info in whole if info.id == held] or [
                info for info in whole if self._project and setting_of(info, "project") == self._project
            ]
            if not whole:
                raise NotFoundError("no session is kept here yet", remedy="say something first")
            return (here or whole)[0].id
        found = [info.id for info in known if info.id == wanted] or [
            info.id for info in known if info.id.startswith(str(wanted))
        ]
        if len(found) != 1:
            what = "no session has" if not found else f"{len(found)} sessions begin with"
            raise NotFoundError(f"{what} the id {str(wanted)[:100]!r}", remedy=f"see {LIST_TOOL}")
        return found[0]

    def _list(self) -> str:
        known = self._store.sessions()
        lines = [f"{info.id}: {info.version:,} entries" for info in known[:MOST_LISTED]]
        if len(known) > MOST_LISTED:
            lines.append(f"and {len(known) - MOST_LISTED:,} older")
        return "\n".join(lines) or "no session is kept here yet"


def _with_session(tool: Tool) -> Tool:
    schema = {**tool.schema, "properties": {**tool.schema["properties"], "session": _SESSION}}
    return msgspec.structs.replace(tool, schema=schema)
