"""Reads what a command is given: a file, a compressed file, or standard input."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windowsill.errors import FormatError

STANDARD_INPUT = "-"

RECORDED = (".jsonl", ".jsonl.gz", ".json")
"""How the names of files end that are looked for in a folder."""


def files_of(source: str) -> list[str]:
    """The files of a folder and the folders in it that may hold recordings, sorted; a file is itself."""
    folder = Path(source)
    if source == STANDARD_INPUT or not folder.is_dir():
        return [source]
    return sorted(str(path) for path in folder.rglob("*") if path.name.endswith(RECORDED) and path.is_file())


def read_source(source: str) -> bytes:
    """All bytes of a file (unpacked where its name ends in .gz), or of standard input for `-`."""
    if source == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    with naming(source):
        data = Path(source).read_bytes()
    return unpacked(data, source) if source.endswith(".gz") else data


def unpacked(data: bytes, source: str) -> bytes:
    """The content of a gzip file."""
    try:
        return gzip.decompress(data)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise not_gzip(source, error) from None


def not_gzip(source: str, error: Exception) -> FormatError:
    """The error for a compressed file that cannot be read."""
    return FormatError(f"not a whole gzip file ({error})", where=source, remedy="compress it again")


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Let errors about the content, or about reading it, say which file it is."""
    try:
        yield
    except FormatError as error:
        raise FormatError(error.what, where=_name(source), remedy=error.remedy) from None
    except OSError as error:
        if error.filename is None:
            error.filename = _name(source)
        raise


def _name(source: str) -> str:
    return "standard input" if source == STANDARD_INPUT else source


def require_content(data: bytes, source: str) -> bytes:
    """The bytes; an error when there are none."""
    if not data.strip():
        raise FormatError("it is empty", where=_name(source), remedy="pass a request body or a message list as JSON")
    return data
