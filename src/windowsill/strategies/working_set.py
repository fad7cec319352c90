"""The working set of hidden messages: the lines of files and outputs, and the names, that later calls may need.

It is written into the text that stands for the messages. What the text holds, with a few numbers that travel with the
fold, is enough to choose again when several such texts become one: hidden messages are not read a second time.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import msgspec

from windowsill.history.view import Item, View
from windowsill.messages import Block, Message, Reasoning, ToolResult, ToolUse, text_of, texts_in
from windowsill.secrets.documents import redact_for_reading
from windowsill.summaries.collect import is_refused, read_json
from windowsill.summaries.quotes import LINE_OF, REMINDER
from windowsill.text import MOST_NESTED, inline, one_line, strings
from windowsill.tokens import Weight
from windowsill.tool_arguments import Arguments

Kind: TypeAlias = Literal["read", "change", "output"]

Source: TypeAlias = tuple[int, int, str, int]
"""A hidden read or change of a file: its entry and block, the path, and the characters."""

FACTS = "working_set"
"""The name under which a fold keeps the numbers of its working set."""

AGE = 40
"""Entries after which what was shown, or a file that was touched, is worth half as much. A turn makes about four."""

CHANGED_FILE = 4.0
"""A line of a file that was changed is so many times as likely to be needed as one of a file that was only read."""

CHANGED_LINE = 4.0
"""So is a line that was written by a call, against one that was read."""

OUTPUT_LINE = 0.3
"""A line of any other output, against one of a file."""

OUTPUT_ROOM = (0.5, 600)
"""The share of the room for lines that outputs may have, and the most tokens: a file is quoted line by line, of an
output the values are used, and those are names. The cap was chosen on all sessions of customer service, where fewer
lines at 10,000 tokens lost no value; at 6,000 the share holds."""

ARGUMENT = 5
"""A name that a call was given counts as so many mentions."""

SAID = 10
"""Entries after which what was said is worth half as much for telling which lines are being worked on."""

PASSAGE = 12
"""Lines after which a passage ends at the next empty line; twice as many are the most that are chosen as one."""

UNSAID = 0.02
"""The weight of a passage that has none of the words that were said."""

SHORTEST_LINE = 12
"""Characters below which a line tells nothing by itself."""

LONGEST_LINE = 160
"""Characters above which a line of an output, which may be one long record, is taken in pieces."""

LONGEST_ROW = 320
"""Characters up to which a record of an output in JSON is one line: part of it would tell something else."""

SEARCH_SAMPLE = 20
"""Lines at the start of a result of which more than half have a path and a number when a search of files gave them."""

SHORTEST_NAME = 4
LONGEST_NAME = 100
MOST_NAMES = 4_000
"""Names that are compared: more of them would only cost time, the room is used up long before."""

REMEMBERED = 16_384
"""Tokens of which it is remembered whether they are names: a session shows the same ones again and again."""

MOST_AGAIN = 400_000
MOST_SOURCES = 100
"""Characters of hidden messages, and files in them, that are read again for a stand-in: a long session costs no more
than a short one."""

HEAD = 0.1
"""The weight of an output's first value over its last: what is asked for mostly stands near the head."""

LARGEST_TEXT = 200_000
"""Characters of one output that are looked at, half from each end."""

_NAME = re.compile(r"(?:[a-z]*+[^A-Za-z0-9_./:@#-]++)*+(?:([A-Za-z0-9_./:@#-]++)|\Z)")
"""Anything but a plain word: to pass over those here is faster than to sort them out."""
_TELLING = re.compile(r"\d{5}|[A-Za-z].*\d|\d.*[A-Za-z]|\d[.:/-]\d|\w[/_.#@]\w|^[/#@.]\w|[a-z][A-Z]", re.ASCII)
_STRING = re.compile(r'"([^"]*)"(\s*:)?')
_NUMBER = re.compile(r"(?<=[:,\[\s])-?\d[\d.]{3,30}(?=[,\]}\s])")
_ESCAPED = re.compile(r"\\[nrt]")
_WORDS = tuple(re.compile(r"[^\W\d]\w{3,}", flags) for flags in (re.UNICODE, re.ASCII))
"""For any text, and for one in ASCII: half as long, and the same words."""
_DIGIT = re.compile(r"\d")
_SPACE = re.compile(r"\s")
_STARTS = ":-"
_ENDS = ".:-/#"
_PIECE = re.compile(r'(?<=[,;]) ?(?=["{\[(])|(?<=[.;]) ')
_FOUND_LINE = re.compile(r"(?:((?:[\w.@~+-]*/)*[\w.@~+-]*\.[A-Za-z]\w{0,9})[:-])?(\d{1,7})[:-](.*)")
_LINE_NUMBER = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)


class Region(msgspec.Struct, frozen=True, dict=True):
    """Lines that stood together in a file or an output, and the entry that showed them."""

    source: str
    kind: Kind
    at: int
    lines: list[str]

    @functools.cached_property
    def passages(self) -> list[tuple[list[str], frozenset[str]]]:
        """Its passages, each with its words."""
        # Words are the same in many passages: one object for each keeps what is remembered small.
        return [(lines, frozenset(map(sys.intern, _words("\n".join(lines))))) for lines in _passages(self.lines)]


class WorkingSet(msgspec.Struct):
    """Lines, names with `(mentions, last entry)`, and files with `(last entry, changes)`."""

    regions: list[Region] = []
    names: dict[str, tuple[float, int]] = {}
    touched: dict[str, tuple[int, int]] = {}
    sources: list[Source] = []
    replaced: dict[str, dict[str, int]] = {}
    """Lines of each file that a change took out, with the entry of the change."""


_SOURCES: WeakKeyDictionary[View, dict[tuple[int, int], WorkingSet]] = WeakKeyDictionary()
"""Regions and replaced lines of the sources of each session, by entry and block: entries never change, so the next fold
need not read them again. Those that a fold no longer tells of are forgotten."""


class Rooms(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that the parts of a stand-in may have."""

    lines: int
    names: int
    record: int


class Sight(msgspec.Struct, frozen=True):
    """The context of a stand-in, as the model sees it: one text, its lines, and the files that were touched."""

    text: str
    lines: frozenset[str]
    touched: dict[str, tuple[int, int]]
    said: Mapping[str, float]
    """The words of the user, the model and its calls: the more and the later they were said, the larger the number."""

    @classmethod
    def of(cls, view: View, shown: Iterable[Item], worked: Iterable[Item]) -> Sight:
        """Return the sight that the items that are shown give, and the files that those that `worked` touched."""
        blocks = [block for item in shown for block in view.read(item).blocks if not isinstance(block, Reasoning)]
        text = "\n".join(text for block in blocks for text in texts_in(block))
        worked = list(worked)
        lines = frozenset(map(str.strip, text.split("\n")))
        return cls(text, lines, _touched_files(view, worked), words_said(view, worked))


class Written(msgspec.Struct, frozen=True):
    """A working set as text, and the numbers that are kept with it."""

    text: str
    facts: str


class _Numbers(msgspec.Struct, array_like=True):
    """The numbers that a fold keeps: as JSON in one text, which is quicker to look through than thousands of values."""

    regions: list[tuple[str, Kind, int, int]] = []
    """Source, kind, entry and number of lines of each region, in the order of the text."""
    names: list[tuple[float, int]] = []
    """Mentions and last entry of each name, in the order of the text."""
    touched: dict[str, tuple[int, int]] = {}
    calls: int = 0
    """Calls in a row, without a pause, up to the end of what is hidden."""
    sources: list[Source] = []


def calls_before(item: Item) -> int:
    """Return the calls in a row up to the end of what a stand-in hides; 0 where it does not say."""
    numbers = _numbers(item)
    return 0 if numbers is None else numbers.calls


def _numbers(item: Item) -> _Numbers | None:
    try:
        return msgspec.json.decode(item.facts.get(FACTS, ""), type=_Numbers)
    except msgspec.DecodeError:
        # A stand-in of another strategy, or one whose numbers were damaged: its text is still read.
        return None


def collect(view: View, items: Sequence[Item], messages: Sequence[Message], earlier: Iterable[Item] = ()) -> WorkingSet:
    """Collect the working set of visible items, given with their messages; stand-ins give what they hold.

    The latest files that these stand-ins and the `earlier` ones tell of are read again: what was of little use before
    may be what is worked on now.
    """
    found = WorkingSet(regions=[], names={}, touched={}, sources=[], replaced={})
    known = _SOURCES.setdefault(view, {})
    calls: dict[str, _Call] = {}
    for item, message in zip(items, messages, strict=True):
        if item.fold:
            _take_over(found, view.read(item), _numbers(item))
        else:
            _take(found, message, item.seq, calls, known)
    _read_again(found, view, [item for item in (*items, *earlier) if item.fold])
    return found


def _read_again(found: WorkingSet, view: View, stand_ins: Iterable[Item]) -> None:
    """Add the lines of files that these stand-ins tell of as they stood in the messages."""
    regions, found.regions = found.regions, []
    sources = _latest(source for each in map(_numbers, stand_ins) if each for source in each.sources)
    known = _SOURCES[view]
    for seq, number, path, _ in sources:
        if (seq, number) not in known:
            hidden = Item(seq=seq, first=seq, last=seq, id="", role="user", weight=Weight())
            blocks = redact_for_reading(view.read(hidden)).blocks
            known[seq, number] = _read_source(blocks[number] if number < len(blocks) else None, path, seq)
        _add_source(found, known[seq, number])
    kept = {(seq, number) for seq, number, _, _ in (*sources, *found.sources)}
    _SOURCES[view] = {place: known[place] for place in known if place in kept}
    # What was read again is there whole: what a stand-in had kept of it would only come twice.
    again = {(region.source, region.at) for region in found.regions}
    found.regions += [region for region in regions if (region.source, region.at) not in again]


def _read_source(block: Block | None, path: str, at: int) -> WorkingSet:
    """Return the lines that a change writes and takes out, or those that a result shows of a file."""
    found = WorkingSet(regions=[], names={}, touched={}, sources=[], replaced={})
    if isinstance(block, ToolUse):
        _take_change(found, block, at)
    elif isinstance(block, ToolResult) and (text := _file_text(block)):
        found.regions += _regions(path, "", at, text)
    return found


def _add_source(found: WorkingSet, source: WorkingSet) -> None:
    found.regions += source.regions
    for path, lines in source.replaced.items():
        gone = found.replaced.setdefault(path, {})
        for line, at in lines.items():
            gone[line] = max(at, gone.get(line, 0))


def _latest(sources: Iterable[Source]) -> list[Source]:
    """Return the latest of these, within the characters that are read again."""
    left, kept = MOST_AGAIN, []
    for source in sorted(set(sources), reverse=True)[:MOST_SOURCES]:
        left -= min(source[-1], LARGEST_TEXT)
        if left < 0:
            break
        kept.append(source)
    return kept


class _Call(NamedTuple):
    """A call whose result is still to come: where it stands, the file it is about, and whether it changes that."""

    use: ToolUse
    at: int
    number: int
    path: str
    changed: bool


def _take(
    found: WorkingSet,
    message: Message,
    at: int,
    calls: dict[str, _Call],
    known: dict[tuple[int, int], WorkingSet],
) -> None:
    for number, block in enumerate(message.blocks):
        if isinstance(block, ToolUse):
            path, changed, _ = _read_call(block)
            calls[block.id] = _Call(block, at, number, path, changed)
            if path:
                _touch(found, path, at, changes=changed)
            _mention_arguments(found, block, at)
        elif isinstance(block, ToolResult):
            call = calls.get(block.tool_use_id)
            text = _file_text(block)
            if call is None or not call.path:
                if text:
                    found.regions += _regions("", call.use.name if call else block.name or "output", at, text)
            # A refusal to read a file is no line of it, and a change that was refused took none out. What a change
            # was answered with may show the file, behind the first line.
            elif (text or call.changed) and not (
                block.is_error or is_refused(text.partition("\n")[0] if call.changed else text)
            ):
                place = (call.at, call.number) if call.changed else (at, number)
                known[place] = _read_source(call.use if call.changed else block, call.path, place[0])
                _add_source(found, known[place])
                found.sources.append((*place, call.path, len(call.use.arguments if call.changed else text)))
            _mention_output(found, text, at)
    if words := message.text:
        # Some models answer in JSON.
        _mention_output(found, _ends(words), at)


def _file_text(block: ToolResult) -> str:
    text = _ends(text_of(block.content).partition(REMINDER)[0])
    return _LINE_NUMBER.sub("", text) if "→" in text or "\t" in text else text


def _take_change(found: WorkingSet, call: ToolUse, at: int) -> None:
    """Add the lines that a call writes, and those that it takes out."""
    path, _, written = _read_call(call)
    if written:
        found.regions.append(Region(path, "change", at, written.splitlines()))
    stay = {line.strip() for line in written.splitlines()}
    gone = found.replaced.setdefault(path, {})
    for line in Arguments(call.input).text("old").splitlines():
        if (bare := line.strip()) not in stay:
            gone[bare] = max(at, gone.get(bare, 0))


def _read_call(call: ToolUse) -> tuple[str, bool, str]:
    """Return the file that a call is about, whether it changes it, and the text it writes there."""
    arguments = Arguments(call.input)
    path = arguments.text("path")
    if not path or "\n" in path:
        return "", False, ""
    written = arguments.text("new")
    return path, bool(written or arguments.has("old") or arguments.has("patch")), written


def _regions(path: str, tool: str, at: int, text: str) -> list[Region]:
    """Return what a result shows: lines of a file, of each file that a search found lines in, or of an output."""
    lines = text.splitlines()
    first = list(map(_FOUND_LINE.match, lines[:SEARCH_SAMPLE]))
    sample = [match for match in first if match]
    named = any(match[1] for match in sample)
    # Without a path only numbers that grow are those of lines: others are hours, or the beginning of a date.
    grow = bool(path) and all(int(one[2]) < int(other[2]) for one, other in itertools.pairwise(sample))
    if 2 * len(sample) > len(first) and (named or grow):
        matches = itertools.chain(first, map(_FOUND_LINE.match, lines[len(first) :]))
        shown = [
            (match[1] or "", match[3]) if match and (match[1] or not named) else ("", line)
            for line, match in zip(lines, matches, strict=True)
        ]
        groups = (
            (source, [line for _, line in group]) for source, group in itertools.groupby(shown, lambda one: one[0])
        )
        return [
            Region(source or path or tool, "read" if source or path else "output", at, several)
            for source, several in groups
            if source or any(line.strip("- ") for line in several)
        ]
    if path:
        return [Region(path, "read", at, lines)]
    value = read_json(text)
    return [Region(tool, "output", at, _pieces(lines) if value is None else list(_rows(value)))]


def _rows(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    """Write a value of JSON in lines: a record that is short in one, so that no line tells a part of it alone."""
    head = f"{name}: " if name else ""
    if not isinstance(value, (dict, list)) or depth > MOST_NESTED:
        yield from _pieces((head + inline(value)).splitlines())
        return
    long: list[tuple[str, Any]] = []
    row = ""
    for key, each in value.items() if isinstance(value, dict) else (("", each) for each in value):
        told = inline({key: each} if key else each)
        if len(told) > LONGEST_LINE or "\n" in told or (not key and isinstance(each, dict)):
            long.append((one_line(key) or name, each))
        elif told:
            if row and len(row) + len(told) > LONGEST_ROW:
                yield head + row
                row = ""
            row += f", {told}" if row else told
    yield from (head + row,) if row else ()
    for key, each in long:
        short = isinstance(each, dict) and len(told := inline(each)) <= LONGEST_ROW and "\n" not in told
        yield from (f"{key}: {told}" if key else told,) if short else _rows(each, key, depth + 1)


def _pieces(lines: Iterable[str]) -> list[str]:
    return [piece for line in lines for piece in (_PIECE.split(line) if len(line) > LONGEST_LINE else (line,)) if piece]


def _ends(text: str) -> str:
    return text if len(text) <= LARGEST_TEXT else f"{text[: LARGEST_TEXT // 2]}\n{text[-LARGEST_TEXT // 2 :]}"


def _mention_all(found: WorkingSet, text: str, at: int, mentions: float = 1) -> None:
    for name in names_in(text):
        _mention(found, name, mentions, at)


def _mention_arguments(found: WorkingSet, call: ToolUse, at: int) -> None:
    for value in strings(call.input):
        if SHORTEST_NAME <= len(value) <= LONGEST_NAME and not _SPACE.search(value):
            _mention(found, value, ARGUMENT, at)
        else:
            _mention_all(found, value, at, ARGUMENT)


def _mention_output(found: WorkingSet, text: str, at: int) -> None:
    """Mention the names of an output; of JSON its values, whatever they look like, and no key but one with a number.

    The keys are the tool's own words: the values are what the next call is given.
    """
    if text.lstrip()[:1] not in {"{", "["}:
        _mention_all(found, text, at)
        return
    # Without escapes a quote is one that begins or ends a string, and a string with one is no name.
    bare = text.replace("\\\\", " ").replace('\\"', " ")
    found_strings = _STRING.findall(bare)
    keys = {name for name, is_key in found_strings if is_key and not _DIGIT.search(name)}
    values = [
        value for value, _ in found_strings if value not in keys and not _SPACE.search(value) and "\\" not in value
    ]
    # Numbers stand between strings, where nothing is quoted.
    numbers = _NUMBER.findall(_STRING.sub(r'""\2', bare))
    for place, value in enumerate(dict.fromkeys((*values, *numbers)), start=1):
        if SHORTEST_NAME <= len(value) <= LONGEST_NAME:
            _mention(found, value, 1 + HEAD / place, at)
    for name in sorted(names_in(text) - keys):
        if name not in found.names:
            _mention(found, name, 1, at)


def names_in(text: str) -> set[str]:
    """Return the paths, ids, numbers and identifiers of a text."""
    names = set(map(_name, set(_NAME.findall(_ESCAPED.sub(" ", text)))))
    names.discard("")
    return names


@functools.lru_cache(maxsize=REMEMBERED)
def _name(token: str) -> str:
    """Return the name in a token; empty for an ordinary word."""
    name = LINE_OF.sub(r"\1", token).lstrip(_STARTS).rstrip(_ENDS)
    return name if SHORTEST_NAME <= len(name) <= LONGEST_NAME and _TELLING.search(name) else ""


def _mention(found: WorkingSet, name: str, mentions: float, at: int) -> None:
    before, last = found.names.get(name, (0, 0))
    found.names[name] = (before + mentions, max(last, at))


def _touch(found: WorkingSet, path: str, at: int, *, changes: int) -> None:
    last, before = found.touched.get(path, (0, 0))
    found.touched[path] = (max(last, at), before + changes)


def _merge_touched(found: WorkingSet, kept: dict[str, tuple[int, int]]) -> None:
    for path, (last, changes) in kept.items():
        _touch(found, path, last, changes=changes)


def _touched_files(view: View, items: Iterable[Item]) -> dict[str, tuple[int, int]]:
    """Return the files that calls of these items touched, and those that stand-ins tell of."""
    found = WorkingSet(regions=[], names={}, touched={})
    for item in items:
        if item.fold:
            numbers = _numbers(item)
            _merge_touched(found, numbers.touched if numbers is not None else {})
        elif item.calls:
            for block in view.read(item).blocks:
                if isinstance(block, ToolUse):
                    path, changed, _ = _read_call(block)
                    if path:
                        _touch(found, path, item.seq, changes=changed)
    return found.touched


def _words(text: str) -> list[str]:
    return _WORDS[text.isascii()].findall(text)


def words_said(view: View, items: Sequence[Item]) -> dict[str, float]:
    """Return the words that were said and given to calls; results are not said, and stand-ins were not said here."""
    said: dict[str, float] = {}
    for item in items:
        if item.fold:
            continue
        message = view.read(item)
        calls = (text for block in message.blocks if isinstance(block, ToolUse) for text in strings(block.input))
        worth = 1 / (SAID + items[-1].seq - item.seq)
        for word in set(_words("\n".join((message.text, *calls)))):
            said[word] = said.get(word, 0.0) + worth
    return said


# The text

NAMES = "Names: "
_HEADING = "== "
_OF_A_RECORD = re.compile(rf"{_HEADING}|{NAMES}|## |> \(m|\[m\d+, line ")
"""Beginnings of the lines that only a record itself may write: headings, names, words of the user, sources."""


def write(
    found: WorkingSet, now: int, sight: Sight, rooms: Rooms, count: Callable[[str], int], *, calls: int = 0
) -> Written:
    """Write the most valuable lines and names within their rooms; what is in sight already is left out."""
    regions = _choose([_current(region, found.replaced) for region in found.regions], now, sight, rooms.lines, count)
    regions.sort(key=lambda region: (region.source, region.at))
    written: list[str] = []
    for place, region in enumerate(regions):
        if not place or regions[place - 1].source != region.source:
            written.append(_HEADING + " ".join(region.source.split()))
        written.extend(region.lines)
    text = "\n".join(written)
    listed = _choose_names(found, now, text + sight.text, rooms.names, count)
    numbers = _Numbers(
        [(each.source, each.kind, each.at, len(each.lines)) for each in regions],
        [found.names[name] for name in listed],
        {path: found.touched[path] for path in sorted({each.source for each in regions} & found.touched.keys())},
        calls,
        _latest(found.sources),
    )
    head = NAMES + " ".join(listed) + "\n" if listed else ""
    return Written((head + text).rstrip("\n"), msgspec.json.encode(numbers).decode())


def _current(region: Region, replaced: Mapping[str, Mapping[str, int]]) -> Region:
    """Return a region without the lines that a later change took out; one that stands there twice may have stayed."""
    gone = {line for line, at in replaced.get(region.source, {}).items() if at > region.at}
    if not gone:
        return region
    times = Counter(line.strip() for line in region.lines)
    kept = [line for line in region.lines if line.strip() not in gone or times[line.strip()] > 1]
    return msgspec.structs.replace(region, lines=kept)


def _choose(regions: Sequence[Region], now: int, sight: Sight, room: int, count: Callable[[str], int]) -> list[Region]:
    """Choose lines within `room`, the most valuable passages first, no line twice."""
    seen = set(sight.lines)
    chosen: dict[tuple[int, int], list[str]] = {}
    share, most = OUTPUT_ROOM
    rest = room - min(most, int(share * room))
    for place, passage, lines in _by_worth(regions, now, sight):
        # What only files may have is not for other outputs.
        least = rest if regions[place].kind == "output" else 0
        kept: list[str] = []
        for line in lines if room > least else ():
            bare = line.strip()
            if len(bare) < SHORTEST_LINE or bare in seen:
                continue
            # What a page or a file says cannot pass for a heading, or for words of the user.
            safe = f" {line}" if _OF_A_RECORD.match(line) else line
            cost = count(safe) + 1
            if cost > room - least:
                room = least
                break
            seen.add(bare)
            kept.append(safe)
            room -= cost
        if regions[place].kind != "output":
            rest = min(rest, room)
        if kept:
            chosen[place, passage] = kept
    found: dict[int, list[str]] = {}
    for place, passage in sorted(chosen):
        found.setdefault(place, []).extend(chosen[place, passage])
    return [msgspec.structs.replace(regions[place], lines=lines) for place, lines in found.items()]


def _by_worth(regions: Sequence[Region], now: int, sight: Sight) -> list[tuple[int, int, list[str]]]:
    """Return the passages of regions, with the places of both, the most valuable first.

    A passage is worth more the more of the words that were said lately it has, and the fewer other passages have them.
    """
    said = sight.said.keys()
    found: list[tuple[int, int, list[str]]] = []
    words: list[set[str]] = []
    for place, region in enumerate(regions):
        for passage, (lines, its_words) in enumerate(region.passages):
            found.append((place, passage, lines))
            words.append(said & its_words)
    shown = Counter(itertools.chain.from_iterable(words))
    rare = {word: math.log(len(found) / number) * sight.said[word] for word, number in shown.items()}
    worth = [_worth(region, now, sight.touched) for region in regions]
    values = [
        worth[place] * (UNSAID + math.fsum(map(rare.__getitem__, each)) / math.sqrt(len(lines)))
        for (place, _, lines), each in zip(found, words, strict=True)
    ]
    order = sorted(range(len(found)), key=lambda n: (-values[n], -regions[found[n][0]].at, found[n][:2]))
    return [found[n] for n in order]


def _passages(lines: Sequence[str]) -> list[list[str]]:
    """Split lines where an empty one stands, or where that would be too far."""
    found: list[list[str]] = []
    start = 0
    for end, line in enumerate(lines, start=1):
        size = end - start
        if size >= PASSAGE and (size >= 2 * PASSAGE or not line.strip()):
            found.append(list(lines[start:end]))
            start = end
    return [*found, list(lines[start:])] if start < len(lines) else found


def _worth(region: Region, now: int, touched: dict[str, tuple[int, int]]) -> float:
    """Value a region: less with its age and that of its file, more where something was changed."""
    age = AGE + now - region.at
    if region.kind == "output":
        return OUTPUT_LINE / age / age
    last, changes = touched.get(region.source, (region.at, 0))
    worth = 1.0 / age / (AGE + now - last)
    return worth * (CHANGED_FILE if changes else 1.0) * (CHANGED_LINE if region.kind == "change" else 1.0)


def _choose_names(found: WorkingSet, now: int, shown: str, room: int, count: Callable[[str], int]) -> list[str]:
    """Choose names within `room` that stand nowhere else: often and lately used ones first."""
    latest = max(1, now)
    ordered = sorted(
        found.names,
        key=lambda name: (
            -found.names[name][0] * (0.5 + found.names[name][1] / latest),
            -found.names[name][1],
            -len(name),
            name,
        ),
    )
    return _within(ordered, shown, room, count)


def list_names(text: str, shown: str, room: int, count: Callable[[str], int]) -> list[str]:
    """List the names of a text that `shown` has not, within `room` tokens: often used ones first."""
    found = WorkingSet(regions=[], names={}, touched={})
    _mention_output(found, text, 0)
    return _within(sorted(found.names, key=lambda name: -found.names[name][0]), shown, room, count)


def list_lines(text: str, shown: str, said: Mapping[str, float], room: int, count: Callable[[str], int]) -> list[str]:
    """List the lines of a text that `shown` has not, within `room` tokens: passages with words that were said first."""
    sight = Sight(shown, frozenset(line.strip() for line in shown.split("\n")), {}, said)
    lines = _pieces(_ends(text).splitlines())
    return [line for region in _choose([Region("", "read", 0, lines)], 0, sight, room, count) for line in region.lines]


def _within(ordered: Sequence[str], shown: str, room: int, count: Callable[[str], int]) -> list[str]:
    chosen: list[str] = []
    listed = ""
    for name in ordered[:MOST_NAMES]:
        if name in shown or name in listed:
            continue
        cost = count(name) + 1
        if cost > room:
            if room < SHORTEST_NAME:
                break
            continue
        chosen.append(name)
        listed += f" {name}"
        room -= cost
    return chosen


def _take_over(found: WorkingSet, message: Message, numbers: _Numbers | None) -> None:
    """Add what the text of an earlier fold holds, by the numbers kept with it."""
    if numbers is None:
        _mention_all(found, message.text, 0)
        return
    # Words of a model may stand before it.
    lines = text_of(message.blocks[-1:]).split("\n")
    _merge_touched(found, numbers.touched)
    found.sources += numbers.sources
    place = next((place for place, line in enumerate(lines) if line.startswith(NAMES)), None)
    if place is None:
        place = _first_heading(lines) - 1
    else:
        for name, (mentions, last) in zip(lines[place][len(NAMES) :].split(" "), numbers.names, strict=False):
            _mention(found, name, mentions, last)
    before = None
    for source, kind, at, number in numbers.regions:
        place += source != before
        before = source
        kept = lines[place + 1 : place + 1 + number]
        place += number
        found.regions.append(Region(source, kind, at, kept))
        # What stands in the lines is not listed as a name: it becomes one again when they have to go.
        if kind != "output":
            found.names.setdefault(source, (ARGUMENT, at))
        for name in names_in("\n".join(kept)):
            found.names.setdefault(name, (1, at))


def _first_heading(lines: Sequence[str]) -> int:
    return next((place for place, line in enumerate(lines) if line.startswith(_HEADING)), len(lines))
