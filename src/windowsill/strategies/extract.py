"""Extract: a JSON object by the user's schema takes the place of the conversation, updated after each user input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from windowsill.budget import Budget
from windowsill.errors import SettingError
from windowsill.history.folds import Proposal
from windowsill.history.view import Unit, View
from windowsill.strategies.base import (
    MARKER_TOKENS,
    Plan,
    SummaryStrategy,
    items_of,
    latest_words,
    least_gain,
    new_tokens,
    oldest_units,
    units_after,
    units_after_task,
    units_before,
)

_TEXTS = {"type": "array", "items": {"type": "string"}}

GENERAL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "facts": _TEXTS,
        "preferences": _TEXTS,
        "decisions": _TEXTS,
        "open_questions": _TEXTS,
    },
}
"""The schema of what most conversations establish, for those who state none. A model can fill it, code hardly can."""


class Extract(SummaryStrategy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps a JSON object by `schema` instead of the conversation; after each user input it is brought up to date.

    The task, pins, the user's latest words and what came after them stay. Past the high mark the steps since those
    words are summarised too, until the next input takes them into the object.
    """

    schema: dict[str, Any] | str = ""
    """The JSON schema of the object: itself, as JSON text, or the path of a file that holds it. Without one nothing is
    done before the high mark is passed, and the object then has a goal, facts, preferences, decisions and open
    questions."""
    least: int = 2 * MARKER_TOKENS
    """The tokens by which the conversation must have grown; less waits for the next input. The object and the frame
    around it have to be smaller than what they replace."""

    name = "extract"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least < 0:
            raise SettingError("least", self.least, "tokens, 0 or more")
        if self.schema:
            msgspec.structs.force_setattr(self, "schema", read_schema(self.schema))

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether the user said something since the object was last updated, and enough was said before it."""
        return bool(self.schema) and self._has_grown(view, _before(units_after_task(view), latest_words(view)))

    def plan(self, view: View, budget: Budget) -> Plan:
        """Update the object with all that was said before the user's latest words."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        middle = units_after_task(view)
        words = latest_words(view)
        earlier = _before(middle, words)
        urgent = total > budget.limit
        proposals: list[Proposal | None] = []
        if (self.schema or wanted > 0) and (self._has_grown(view, earlier) or (urgent and earlier)):
            schema = self.schema if isinstance(self.schema, dict) else GENERAL
            brief = self.brief("state", budget, schema=schema)
            proposals.append(self.rewrite(view, earlier, reason="the user said something new", brief=brief))
            wanted -= new_tokens(view, earlier) - int(self.room * budget.limit)
        if total > budget.high and wanted > 0:
            steps = units_after(middle, -1 if words is None else words)
            proposals.append(self._steps(view, budget, steps, wanted, urgent=urgent))
        return Plan(proposals=tuple(each for each in proposals if each is not None), middle=items_of(view, middle))

    def _has_grown(self, view: View, earlier: Sequence[Unit]) -> bool:
        return new_tokens(view, earlier) >= max(1, self.least)

    def _steps(
        self, view: View, budget: Budget, steps: Sequence[Unit], wanted: int, *, urgent: bool
    ) -> Proposal | None:
        """Summarise the oldest steps since the user's latest words; the user's prompt is for the object alone."""
        brief = msgspec.structs.replace(self.brief("summary", budget), instructions="")
        chosen = oldest_units(view, steps, cut=0, wanted=wanted, room=brief.room)
        if not urgent and new_tokens(view, chosen) < least_gain(budget):
            return None
        reason = f"{budget.fixed + view.tokens():,} tokens passed {budget.high:,}"
        return self.rewrite(view, chosen, reason=reason, brief=brief)


def _before(listed: Sequence[Unit], position: int | None) -> list[Unit]:
    """Return the units before a position; none where there is no position."""
    return [] if position is None else units_before(listed, position)


def read_schema(given: dict[str, Any] | str) -> dict[str, Any]:
    """Read a schema from itself, JSON text or a file; `SettingError` when it is not the schema of an object."""
    schema = _parsed(given) if isinstance(given, str) else given
    if not isinstance(schema, dict):
        raise SettingError("schema", given, "a JSON schema: an object")
    if schema.get("type", "object") != "object":
        raise SettingError("schema", given, 'a schema of an object: `"type": "object"` at the top')
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or not all(isinstance(each, dict | bool) for each in properties.values()):
        raise SettingError("schema", given, "a schema whose `properties` are schemas by name")
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
        raise SettingError("schema", given, "a schema whose `required` is a list of names")
    return schema


def _parsed(text: str) -> Any:
    """Decode JSON text, or the file of that name."""
    stripped = text.strip()
    where = "JSON text"
    if not stripped.startswith(("{", "[")):
        where = "a file of JSON"
        try:
            stripped = Path(stripped).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise SettingError("schema", text, f"the path of a file that can be read ({error})") from None
    try:
        return msgspec.json.decode(stripped)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SettingError("schema", text, f"{where} ({error})") from None
