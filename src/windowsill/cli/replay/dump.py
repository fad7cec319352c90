"""The dump of a replay: one line of JSON for each model call, with the request exactly as it would be sent."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from windowsill.cli.replay.walking import Turn


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One model call."""

    session: str
    turn: int
    request: msgspec.Raw
    tokens: int
    folds: tuple[str, ...]


class Dump:
    """Writes lines to a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, session: str, turn: Turn) -> None:
        """One more model call."""
        # A line break in JSON can only stand between values, where a space means the same.
        body = turn.body.replace(b"\n", b" ").replace(b"\r", b" ")
        line = Line(session=session, turn=turn.turn, request=msgspec.Raw(body), tokens=turn.tokens, folds=turn.folds)
        self._file.write(msgspec.json.encode(line) + b"\n")


@contextmanager
def dump_to(path: str | None) -> Iterator[Dump | None]:
    """A dump into a new file, compressed where its name ends in .gz; `None` where no dump was asked for."""
    if path is None:
        yield None
        return
    with Path(path).open("wb") as file:
        if not path.endswith(".gz"):
            yield Dump(file)
            return
        # Neither name nor time in the header: the same replay gives the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            yield Dump(packed)  # type: ignore[arg-type]  # it writes bytes, which is all a dump needs
