"""A whole tool output: cut into parts at its line ends, kept in memory or as blobs of the store, read line by line.

A stored output is its parts and one index that makes them an output:

    output/part/TOKEN/0000000        a part; TOKEN names one writing
    output/part/TOKEN/alive-TIME     the writing was still going on then
    output/index/REF/TIME-TOKEN      what the parts of a finished writing are

Each writing has blobs of its own, so that nobody ever removes a part that somebody else relies on. The same content
written twice has two indexes for a moment; the newest one counts, and the others go.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from windowsill.errors import DamagedError
from windowsill.messages import Block
from windowsill.store import Store

PART_BYTES = 2 * 1024 * 1024
"""The most bytes of a part: opening it in the store costs little against reading it, which takes 1 ms; it still fits a
core's own cache while it is checked and searched."""

BINARY_HEAD = 8 * 1024
"""Bytes in which a NUL makes an output binary, as for grep and git."""

_SLICE = 256 * 1024
"""Characters encoded at once."""

_BLOCK = 16 * 1024
"""Bytes whose line feeds are counted at once on the way to a line."""

_CONTINUES = range(0x80, 0xC0)
"""The bytes of a UTF-8 sequence after its first."""

_LONGEST_TAIL = 3
_RETURN = ord("\r")


class Part(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of an output: whole lines, or a piece of one line that is longer than a part may be."""

    line: int
    """The number of its first line, from 1."""
    column: int
    """The character of that line it begins at, from 1; above 1 it continues the line of the part before."""
    offset: int
    size: int
    check: int
    """CRC-32 of its bytes."""
    returns: bool
    """True when it contains a carriage return."""


class Cutter:
    """Cuts bytes into parts as they come; the parts depend on the content alone, not on how it arrived."""

    def __init__(self, size: int = PART_BYTES) -> None:
        self.size = 0
        """The bytes cut off so far."""
        self._part_size = size
        self._held = bytearray()
        self._line = self._column = 1
        self._inside = False
        """True when the last part ended inside a line."""

    @property
    def lines(self) -> int:
        """The lines cut off so far; a last one without a line end counts."""
        return self._line - (not self._inside)

    def take(self, piece: bytes) -> Iterator[tuple[Part, bytes]]:
        """Yield the parts that are complete with this piece."""
        view = memoryview(piece)
        for start in range(0, len(view), self._part_size):
            self._held += view[start : start + self._part_size]
            # More than a part, so that the byte after a cut is always known.
            while len(self._held) > self._part_size:
                find = self._held.find if self._inside else self._held.rfind
                yield self._cut(find(b"\n", 0, self._part_size) + 1 or self._inner_end())

    def rest(self) -> Iterator[tuple[Part, bytes]]:
        """Yield what is left at the end of the stream."""
        while self._held:
            # An unfinished giant line ends here or at its line end; whole lines after it are a part of their own.
            end = self._held.find(b"\n") + 1 if self._inside else 0
            yield self._cut(end or len(self._held))

    def _inner_end(self) -> int:
        """Return where to cut inside a line: not within a character, nor within its line end."""
        end = self._part_size
        for back in range(_LONGEST_TAIL + 1):
            if self._held[end - back] not in _CONTINUES:
                end -= back
                break
        return end - 1 if self._held[end - 1] == _RETURN else end

    def _cut(self, end: int) -> tuple[Part, bytes]:
        data = bytes(self._held[:end])
        del self._held[:end]
        part = Part(self._line, self._column, self.size, len(data), zlib.crc32(data), b"\r" in data)
        self.size += end
        self._line += data.count(b"\n")
        self._inside = not data.endswith(b"\n")
        self._column = self._column + len(data.decode(errors="replace")) if self._inside else 1
        return part, data


def encode_text(text: str) -> Iterator[bytes]:
    """Yield text as bytes, some at a time; half a surrogate pair, which UTF-8 cannot hold, is replaced."""
    for start in range(0, len(text), _SLICE):
        piece = text[start : start + _SLICE]
        try:
            yield piece.encode()
        except UnicodeEncodeError:
            yield piece.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class Output:
    """One tool output, whole. Parts are read one at a time, so that none has to fit in memory with the others."""

    id: str
    """Its ref."""
    size: int
    """Its bytes."""
    lines: int
    """Its lines; a last one without a line end counts."""
    parts: Sequence[Part]
    blocks: tuple[Block, ...] = ()
    """Its blocks when it came inside a message, images and documents whole."""

    def data(self, number: int) -> bytes:
        """Return the bytes of a part; `DamagedError` when they are not what was written."""
        raise NotImplementedError

    def verify(self) -> None:
        """Read everything; `DamagedError` when it is not, byte for byte, what was written."""

    def part_of(self, line: int, column: int = 1) -> int:
        """Return the number of the part that holds a character of a line; one past the end reads as the last."""
        place = bisect_left(self.parts, (line, column + 1), key=lambda part: (part.line, part.column))
        return max(0, place - 1)

    def last_piece(self, number: int) -> int:
        """Return the last part of the very long line that a part begins; the part itself when it has whole lines."""
        line = self.parts[number].line
        return max(number, bisect_left(self.parts, line + 1, key=lambda part: part.line) - 1)

    @property
    def is_binary(self) -> bool:
        """True when it does not look like text."""
        return bool(self.parts) and b"\0" in self.data(0)[:BINARY_HEAD]


class MessageOutput(Output):
    """An output in memory, from the message it came in."""

    def __init__(
        self, id: str, pieces: Iterable[bytes], blocks: tuple[Block, ...] = (), *, part_bytes: int = PART_BYTES
    ) -> None:
        cutter = Cutter(part_bytes)
        cuts = [cut for piece in pieces for cut in cutter.take(piece)]
        cuts += cutter.rest()
        self.id = id
        self.size = cutter.size
        self.lines = cutter.lines
        self.blocks = blocks
        self.parts = tuple(part for part, _ in cuts)
        self._data = [data for _, data in cuts]

    def data(self, number: int) -> bytes:
        """Return the bytes of a part."""
        return self._data[number]


def chunks(output: Output, from_line: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yield the output from the part that holds a line, as `(number of the first line, bytes)`."""
    for number in range(output.part_of(from_line), len(output.parts)):
        yield output.parts[number].line, output.data(number)


class Line(msgspec.Struct, frozen=True):
    """A line, or the stretch of it that was asked for."""

    number: int
    text: str
    column: int
    """The character its text begins at, from 1."""
    length: int
    """The characters of the whole line."""
    end: str = "\n"

    @property
    def left(self) -> int:
        """The characters after its text."""
        return max(0, self.length - (self.column - 1) - len(self.text))


def lines(output: Output, first: int, last: int, *, width: int) -> Iterator[Line]:
    """Yield lines `first` to `last`, each at most `width` characters from its beginning."""
    number = output.part_of(first)
    while number < len(output.parts) and output.parts[number].line <= last:
        part = output.parts[number]
        final = output.last_piece(number)
        if final > number:
            yield stretch(output, part.line, 1, width)
        else:
            skip = max(0, first - part.line)
            rows = _rows(output.data(number), skip, last - part.line - skip + 1)
            yield from (line_from(place, row, 1, width) for place, row in enumerate(rows, part.line + skip))
        number = final + 1


def stretch(output: Output, number: int, column: int, width: int) -> Line:
    """Return one line from a column on, at most `width` characters of it."""
    begin = output.part_of(number)
    final = output.last_piece(begin)
    if final == begin:
        return line_from(number, _rows(output.data(begin), number - output.parts[begin].line, 1)[0], column, width)
    text, place = "", output.part_of(number, column)
    start = output.parts[place].column
    while place <= final and start + len(text) < column + width:
        text += _decode(output.data(place).removesuffix(b"\n"))
        place += 1
    end = output.data(final).removesuffix(b"\n").removesuffix(b"\r")
    length = output.parts[final].column - 1 + len(_decode(end))
    skipped = column - start
    return Line(number, text[skipped : skipped + width][: max(0, length - column + 1)], column, length)


def _rows(data: bytes, skip: int, count: int) -> list[bytes]:
    """Return `count` lines after the first `skip`, as far as there are, without their line feeds."""
    place = skip_lines(data, 0, skip)
    found = data[place : skip_lines(data, place, count)]
    return found.removesuffix(b"\n").split(b"\n") if found else []


def skip_lines(data: bytes, place: int, count: int) -> int:
    """Return where the text after so many line feeds begins; its end when there are fewer."""
    while count and place < len(data):
        found = data.count(b"\n", place, place + _BLOCK)
        if found >= count:
            for _ in range(count):
                place = data.find(b"\n", place) + 1
            return place
        count -= found
        place += _BLOCK
    return min(place, len(data))


def line_from(number: int, data: bytes, column: int, width: int) -> Line:
    """Return a line from a column on, given its bytes."""
    text = _decode(data.removesuffix(b"\r"))
    return Line(number, text[column - 1 : column - 1 + width], column, len(text))


def _decode(data: bytes) -> str:
    """Return bytes as text; what is not text becomes replacement characters, one for each NUL."""
    return data.decode(errors="replace").replace("\0", "\ufffd")


INDEXES = "output/index/"
PARTS = "output/part/"
_ALIVE = "alive-"
_DIGEST = 32


class Index(msgspec.Struct, frozen=True, array_like=True):
    """The list of an output's parts."""

    digest: bytes
    """SHA-256 of the whole content."""
    size: int
    lines: int
    parts: tuple[Part, ...]


class Copy(msgspec.Struct, frozen=True, order=True):
    """One finished writing of an output; the greatest is the one that counts."""

    at: int
    """The time it was finished, in milliseconds."""
    token: str
    ref: str
    blob: str


def index_id(ref: str, at: int, token: str) -> str:
    """Return the id of an index blob."""
    return f"{INDEXES}{ref}/{at:015d}-{token}"


def part_id(token: str, number: int) -> str:
    """Return the id of a part's blob."""
    return f"{PARTS}{token}/{number:07d}"


def alive_id(token: str, at: int) -> str:
    """Return the id of the blob that says a writing was still going on."""
    return f"{PARTS}{token}/{_ALIVE}{at:015d}"


def token_of(blob: str) -> str:
    """Return the writing that a blob under `PARTS` belongs to."""
    return blob.removeprefix(PARTS).partition("/")[0]


def alive_at(blob: str) -> int | None:
    """Return the time in the id of an alive blob, in milliseconds."""
    name = blob.rpartition("/")[2]
    return _time(name.removeprefix(_ALIVE), blob) if name.startswith(_ALIVE) else None


def _time(text: str, blob: str) -> int:
    """Read the time in an id; `DamagedError` for an id that was never written."""
    if not text.isdecimal():
        raise DamagedError(
            f"the kept outputs are damaged: {blob!r} is no id of theirs",
            remedy="`windowsill sessions verify` says what is damaged; `windowsill store repair` saves the rest",
        )
    return int(text)


def copies(store: Store, session: str, ref: str = "") -> list[Copy]:
    """Return the finished writings of an output, or of all, the one that counts last."""
    found = []
    for blob in store.blob_ids(session, f"{INDEXES}{ref}/" if ref else INDEXES):
        name, _, written = blob.removeprefix(INDEXES).partition("/")
        at, _, token = written.partition("-")
        found.append(Copy(_time(at, blob), token, name, blob))
    return sorted(found)


def pack_index(index: Index) -> bytes:
    """Return an index as it is stored, with its own hash before it."""
    data = msgspec.msgpack.encode(index)
    return hashlib.sha256(data).digest() + data


def unpack_index(stored: bytes, ref: str) -> Index:
    """Return the index that was stored; `DamagedError` when it is not what was written."""
    data = stored[_DIGEST:]
    if hashlib.sha256(data).digest() != stored[:_DIGEST]:
        raise DamagedError(
            f"tool output {ref!r} is damaged: its index is not what was written",
            remedy="run the tool again; `windowsill sessions verify` says what else is damaged",
            ref=ref,
        )
    return msgspec.msgpack.decode(data, type=Index)


class StoredOutput(Output):
    """An output whose parts are blobs. Several threads may read it."""

    def __init__(self, store: Store, session: str, copy: Copy, index: Index, checked: set[str] | None = None) -> None:
        self.id = copy.ref
        self.size = index.size
        self.lines = index.lines
        self.parts = index.parts
        self.digest = index.digest
        self._store = store
        self._session = session
        self._token = copy.token
        self._checked = set() if checked is None else checked
        self._last: tuple[int, bytes] = (-1, b"")

    def data(self, number: int) -> bytes:
        """Return the bytes of a part, checked when it is read for the first time; the last one is kept at hand."""
        if self._last[0] != number:
            # Freed first, so that the next part takes its place in memory: fresh pages cost as much as the reading.
            self._last = (-1, b"")
            self._last = (number, self._read(number))
        return self._last[1]

    def verify(self) -> None:
        """Read everything; `DamagedError` when it is not, byte for byte, what was written."""
        whole = hashlib.sha256()
        for number in range(len(self.parts)):
            whole.update(self._read(number, again=True))
        if whole.digest() != self.digest:
            raise DamagedError(
                f"tool output {self.id!r} is damaged: its content is not what was written",
                remedy="run the tool again",
                ref=self.id,
            )

    def _read(self, number: int, *, again: bool = False) -> bytes:
        blob = part_id(self._token, number)
        data = self._store.blob(self._session, blob)
        if data is None:
            data = self._elsewhere(number)
            blob = part_id(self._token, number)
        part = self.parts[number]
        if data is None:
            raise self._damage(number, "is missing")
        # Overwritten pages can give any type.
        sound = isinstance(data, bytes) and len(data) == part.size
        if not sound or ((again or blob not in self._checked) and zlib.crc32(data) != part.check):
            raise self._damage(number, "is not what was written")
        self._checked.add(blob)
        return data

    def _elsewhere(self, number: int) -> bytes | None:
        """Return the part from a newer copy: the same content was kept again since this one was opened."""
        for copy in reversed(copies(self._store, self._session, self.id)):
            if copy.token != self._token:
                self._token = copy.token
                return self._store.blob(self._session, part_id(copy.token, number))
        return None

    def _damage(self, number: int, how: str) -> DamagedError:
        part = self.parts[number]
        following = next(iter(self.parts[number + 1 : number + 2]), None)
        last = self.lines if following is None else following.line - (following.column == 1)
        return DamagedError(
            f"tool output {self.id!r} is damaged: what holds lines {part.line:,}-{last:,} {how}",
            remedy="the other lines can still be read; run the tool again for these",
            ref=self.id,
            first=part.line,
            last=last,
        )


def find_stored(store: Store, session: str, ref: str, checked: set[str] | None = None) -> StoredOutput | None:
    """Return the stored output with this ref, or `None`; `checked` remembers the parts that were found whole."""
    for copy in reversed(copies(store, session, ref)):
        stored = store.blob(session, copy.blob)
        # It is gone when the same content was kept again between the two calls: then the next one is not.
        if stored is not None:
            return StoredOutput(store, session, copy, unpack_index(stored, ref), checked)
    return None


_PLACE = re.compile(r"o([1-9][0-9]{0,9})(?:\.([1-9][0-9]{0,3}))?")
_KEPT = re.compile(r"b[0-9a-f]{16,64}")


def ref_at(seq: int, number: int = 1, *, of: int = 1) -> str:
    """Return the ref of the `number`-th of `of` results in the message of entry `seq`."""
    return f"o{seq}" if of == 1 else f"o{seq}.{number}"


def place_of(ref: str) -> tuple[int, int | None] | None:
    """Return the entry that a ref names and the number of its result, if that is stated; `None` for no such ref."""
    found = _PLACE.fullmatch(ref)
    return found and (int(found[1]), int(found[2]) if found[2] else None)


def is_stored(ref: str) -> bool:
    """Tell whether a ref is spelled like that of a stored output."""
    return _KEPT.fullmatch(ref) is not None
