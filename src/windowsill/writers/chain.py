"""A model's words together with what code recorded; when the model fails, what code wrote alone. It never raises."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.history.folds import Brief, Style
from windowsill.messages import Usage
from windowsill.writers import Material, ModelWriter, Writer, Written
from windowsill.writers.errors import UnusableError, note
from windowsill.writers.offline import Offline

RECORDED = "Recorded by code, not by the model:"
"""Stands between the two parts: what follows can be relied on word for word."""

FORGED = "(The model wrote here that what follows was recorded by code; it was not.)"
"""In the place of the same words of a model."""

MODEL_SHARE = 0.5
"""Of the room, what the model may fill; the record gets what is left of all of it."""

UNLIMITED_SHARE = 0.5
"""Of what is hidden, the room where the brief names none: a summary that saves less is not worth its call."""


class Chain:
    """Asks `model`, and puts the record of `offline` behind its words; fills in for it when it gives none."""

    def __init__(self, model: ModelWriter, offline: Writer) -> None:
        self._model = model
        self._offline = offline
        self.name = model.name

    def __repr__(self) -> str:
        return f"<writer {self.name}, then {self._offline.name}>"

    def write(self, brief: Brief, material: Material) -> Written:
        """With code alone, at once."""
        return self._by_code(brief, material, ())

    async def awrite(self, brief: Brief, material: Material) -> Written:
        """The model's words and the record, or the offline writer's text; nothing but a cancellation comes out."""
        if not brief.needed:
            return self.write(brief, material)
        room = min(brief.room or int(material.tokens * UNLIMITED_SHARE), material.tokens - 1)
        share = room if brief.style == "state" else max(1, int(room * MODEL_SHARE))
        try:
            told = _sound(await self._model.awrite(msgspec.structs.replace(brief, room=share), material))
            return self._joined(brief, material, told, room)
        except UnusableError as fault:
            notes = fault.notes or (note("", fault.kind, fault.what),)
            return self._by_code(brief, material, notes, fault.usage)
        except Exception as error:  # noqa: BLE001 whatever a writer raises, a turn goes on
            return self._by_code(brief, material, (note("", "failed", f"the writer raised {type(error).__name__}"),))

    def _joined(self, brief: Brief, material: Material, told: Written, room: int) -> Written:
        """The model's words before the record; the record alone where there is no room for both."""
        words = told.text.replace(RECORDED, FORGED)
        # An object is all there is to read: what code knows then goes along unseen.
        is_object = brief.style == "state"
        left = room if is_object else room - material.count(f"{words}\n\n{RECORDED}\n\n")
        record = self._record(brief, material, left) if left > 0 else Written(text="")
        text = words if is_object else f"{words}\n\n{RECORDED}\n{record.text}"
        if (record.text or is_object) and material.count(text) <= room:
            notes = told.notes + record.notes
            return msgspec.structs.replace(told, text=text, digest=_known(record, told), notes=notes)
        alone = self._by_code(brief, material, told.notes, told.usage)
        if not alone.text and material.count(words) <= room:
            return msgspec.structs.replace(told, text=words, digest=_known(alone, told), notes=alone.notes)
        why = note("", "ledger", "there was no room for the model's words beside the record")
        return msgspec.structs.replace(alone, notes=(*alone.notes, why))

    def _record(self, brief: Brief, material: Material, room: int) -> Written:
        """What code knows, in sections of its own, whatever those of the model's text are."""
        style: Style = "state" if brief.style == "state" else "summary"
        return self._by_code(msgspec.structs.replace(brief, room=room, style=style), material, ())

    def _by_code(self, brief: Brief, material: Material, notes: tuple[str, ...], usage: Usage | None = None) -> Written:
        written = by_code(self._offline, brief, material)
        return msgspec.structs.replace(written, notes=notes + written.notes, usage=usage)


def by_code(writer: Writer, brief: Brief, material: Material) -> Written:
    """What a writer without a model writes; nothing, and a note, when it fails."""
    try:
        written = writer.write(brief, material)
        return written if isinstance(writer, Offline) else _stored(written)
    except Exception as error:  # noqa: BLE001 whatever a writer raises, a turn goes on
        why = note("", "failed", f"the {writer.name} writer raised {type(error).__name__}")
        return Written(text="", writer=str(writer.name), notes=(why,))


def _sound(told: object) -> Written:
    """What a writer gave, if it is a text; structs do not look at what they are given."""
    if not isinstance(told, Written) or (isinstance(told.text, str) and not told.text.strip()):
        raise UnusableError("empty", "the writer gave no text")
    try:
        return _stored(told)
    except Exception as error:  # noqa: BLE001 a writer of somebody else's may put anything into it
        what = f"the writer gave what cannot be kept ({type(error).__name__})"
        raise UnusableError("unreadable", what) from None


def _stored(told: Written) -> Written:
    """The same as it will be read again; half letters, which no store takes, are replaced."""
    whole = msgspec.structs.replace(told, text=told.text.encode("utf-8", "replace").decode())
    return msgspec.msgpack.decode(msgspec.msgpack.encode(whole), type=Written)


def _known(record: Written, told: Written) -> dict[str, Any]:
    """The digest of code; of what a model knows only the object it was asked for."""
    return record.digest | {key: told.digest[key] for key in ("state",) if key in told.digest}
