"""Build the text of a state that a model reads: the whole context, and updates of it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import msgspec

from windowsill.errors import InputError, SettingError
from windowsill.history.view import View
from windowsill.models.catalog import SizeClass
from windowsill.search.embeddings import Embedder
from windowsill.state.layers import LAYERS, State
from windowsill.state.prompt.catalogue import CATALOGUE, LAYER_OF_TAG, PLACES, WHOLE, Kind, Limits, Single
from windowsill.state.prompt.choice import (
    FittedText,
    Focus,
    Item,
    ItemSet,
    Piece,
    Selection,
    ShownMessages,
    fit,
    focus_of,
    write_fitting,
)
from windowsill.state.prompt.formats import FORMATS, FormatName, Formatter, Node, Rendered, clean
from windowsill.state.shares import Shares, ShareSettings

ROOT, UPDATE_ROOT = "context", "context_update"

WITHHELD = "-"
"""The first character of the digest of what had no room: it was not told, and is no news while it stays the same."""

FIRST, NEXT = -1, 0
"""Places of single values in the order of importance: before all elements of a layer, and beside the best of each."""


class StateSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form in which a state is shown to a model: the setting `state` of a session."""

    format: FormatName = "xml"
    picks: Limits = Limits()
    """The most that is shown of each list."""
    shares: ShareSettings = ShareSettings()
    """The part of the budget that each layer has."""


def read_state_settings(stated: Mapping[str, Any]) -> StateSettings:
    """Read the setting `state`; `SettingError` with what is wrong in it."""
    try:
        return msgspec.convert(stated, StateSettings)
    except SettingError as error:
        raise SettingError(f"state.{error.setting}", error.value, error.allowed) from None
    except msgspec.ValidationError as error:
        raise SettingError("state", stated, f"format, picks and shares ({error})") from None


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """The number of elements of a list that are not shown."""

    filtered: int = 0
    """Not relevant, not fresh, not among the best, or no longer holding."""
    no_room: int = 0
    """Chosen, and without room in the budget."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A text that tells a state, and what stands in it."""

    text: str
    tokens: int
    """The tokens of the whole text."""
    pieces: tuple[Piece, ...]
    """The pieces in the order of the text."""
    digests: dict[str, str]
    """The digest of each piece by its id; that of a piece without room begins with `WITHHELD`."""
    shortened: dict[str, int] = {}
    """The pieces whose text was shortened by their id, with the tokens they had before."""


class Built(Told, frozen=True, kw_only=True):
    """A context."""

    layers: dict[str, int]
    """Tokens of each layer that is shown, counted on its part of the text."""
    ratio: float
    """`tokens` against what it would be with everything that was left out: 1.0 when nothing was."""
    left_out: dict[str, LeftOut]
    """The elements left out by path; a list that is shown whole is not in it."""
    shares: Shares
    """The budget of each layer before anything was passed on."""


class Update(Told, frozen=True, kw_only=True):
    """The changes of a state since a model was last told; its digests are to be added to what was told."""

    removed: tuple[str, ...]
    """Ids to be taken out of what was told."""
    left_out: tuple[str, ...] = ()
    """Ids of what has changed too and had no room: it comes with the next update."""


class _Gathered(NamedTuple):
    """Everything of these layers of a state that may be shown between two moments."""

    state: State
    layers: tuple[str, ...]
    since: float
    until: float
    messages: ShownMessages | None
    items: list[Item]


class Builder:
    """Builds contexts and updates of them. A state that did not change is not looked at again.

    `count` gives the tokens of a text. Several threads may share a builder; they take turns.
    """

    def __init__(
        self,
        count: Callable[[str], int],
        settings: StateSettings | None = None,
        *,
        embedder: Embedder | None = None,
        size: SizeClass = "balanced",
    ) -> None:
        self.settings = settings = settings or StateSettings()
        if settings.format not in FORMATS:
            raise SettingError("state.format", settings.format, " or ".join(FORMATS))
        self._formatter = Formatter(count, *FORMATS[settings.format])
        self._embedder = embedder
        self._size = size
        self._focus: Focus | None = None
        self._messages: ShownMessages | None = None
        self._selections = {
            kind.path: Selection(kind, settings.picks, self._formatter, settings.shares.importance[kind.layer])
            for kind in CATALOGUE
            if isinstance(kind, Kind)
        }
        self._singles: dict[str, Rendered] = {}
        self._gathered: _Gathered | None = None
        self._nothing_new: tuple[_Gathered, dict[str, str]] | None = None
        self._layer_tokens: dict[str, int] = {}
        self._lock = threading.Lock()

    def build(
        self, state: State, tokens: int, *, now: float, layers: Collection[str] = LAYERS, view: View | None = None
    ) -> Built:
        """Build the context of a state within so many tokens; `BudgetError` when system and task alone are larger.

        A tenth of `tokens` stays free unless system and task need it. `now` decides which observations still hold, and
        what was taken from messages that `view` shows is left to them.
        """
        with self._lock:
            points = self.settings.shares
            shares = points.allocate(tokens, phase=state.runtime.phase, size=self._size)
            gathered = self._gather(state, now, layers, view)
            taken, room = fit(gathered.items, shares, self._formatter.tag_tokens(ROOT, 0), self._formatter, points)
            written = write_fitting(self._formatter, ROOT, taken, (), min(room, tokens), tokens)
            return self._built(gathered, written, shares)

    def update(
        self,
        told: Mapping[str, str],
        state: State,
        tokens: int,
        *,
        now: float,
        layers: Collection[str] = LAYERS,
        view: View | None = None,
    ) -> Update | None:
        """Tell what is new, changed or gone since a model was told; `None` when there is nothing to tell.

        `told` are the digests of the context it got, with those of later updates. What only grew old, or gave way to
        something more important, is no news.
        """
        with self._lock:
            gathered = self._gather(state, now, layers, view)
            last = self._nothing_new
            if last is not None and last[0] is gathered and last[1] == told:
                return None
            changed, gone = _compare(told, gathered.items, self._selections, state, layers)
            if changed or gone:
                return _write_update(changed, gone, tokens, self._formatter)
            # A state that did not change costs a turn one comparison.
            self._nothing_new = gathered, dict(told)
            return None

    def _gather(self, state: State, now: float, layers: Collection[str], view: View | None) -> _Gathered:
        last = self._gathered
        names = tuple(layers)
        if self._messages is None or not self._messages.are_of(view):
            self._messages = ShownMessages(view) if view is not None else None
        same = last is not None and last.state is state and last.layers == names and last.messages is self._messages
        if last is not None and same and last.since <= now < last.until:
            return last
        if unknown := [layer for layer in names if layer not in LAYERS]:
            raise InputError(f"there is no layer {unknown[0]!r}", remedy=f"the layers are {', '.join(LAYERS)}")
        texts = focus_of(state)
        if self._focus is None or self._focus.texts != texts:
            self._focus = Focus(texts, self.settings.picks.relevance, self._embedder)
        self._gathered = None  # so that nothing half gathered is taken for whole when others' code fails
        items: list[Item] = []
        until = float("inf")
        for entry in CATALOGUE:
            if entry.layer not in names:
                continue
            if isinstance(entry, Single):
                items += self._single(entry, state)
            else:
                selection = self._selections[entry.path]
                items += selection.choose(state, self._focus, now, self._messages)
                until = min(until, selection.until)
        self._gathered = _Gathered(state, names, now, until, self._messages, items)
        return self._gathered

    def _single(self, entry: Single, state: State) -> list[Item]:
        node = entry.node(state)
        if node is None:
            return []
        rendered = self._singles.get(entry.path)
        if rendered is None or rendered.node != node:
            rendered = self._singles[entry.path] = self._formatter.render(node)
        place = PLACES[entry.path]
        order = NEXT if entry.expendable else FIRST
        importance = self.settings.shares.importance[entry.layer]
        return [Item(entry, "", f"{entry.path}#", rendered, (order, place), (-importance, place, 0))]

    def _built(self, gathered: _Gathered, written: FittedText, shares: Shares) -> Built:
        shown = {item.id for item in written.items}
        lists = [each for path, each in self._selections.items() if each.kind.layer in gathered.layers]
        filtered = {each.kind.path: len(each.elements) - len(each.items) - each.in_view for each in lists}
        no_room = Counter(item.kind.path for item in gathered.items if item.id not in shown)
        layers = {LAYER_OF_TAG[tag]: text for tag, text in self._formatter.layer_texts(written.parts).items()}
        # A layer that did not change is not counted again.
        known = self._layer_tokens
        self._layer_tokens = {
            text: known[text] if text in known else self._formatter.count(text) for text in layers.values()
        }
        everything = sum(each.tokens for each in lists)
        everything += sum(item.rendered.tokens for item in gathered.items if isinstance(item.kind, Single))
        missing = everything - sum(item.whole_tokens or item.rendered.tokens for item in written.items)
        return Built(
            text=written.text,
            tokens=written.tokens,
            layers={layer: self._layer_tokens[text] for layer, text in layers.items()},
            ratio=written.tokens / (written.tokens + missing) if missing else 1.0,
            pieces=tuple(item.piece() for item in written.items),
            left_out={
                path: LeftOut(filtered=filtered.get(path, 0), no_room=no_room[path])
                for path in {**filtered, **no_room}
                if filtered.get(path) or no_room[path]
            },
            digests={
                item.id: item.rendered.digest if item.id in shown else f"{WITHHELD}{item.rendered.digest}"
                for item in gathered.items
            },
            shares=shares,
            shortened=_shortened(written),
        )


def _shortened(written: FittedText) -> dict[str, int]:
    return {item.id: item.whole_tokens for item in written.items if item.whole_tokens}


def _compare(
    told: Mapping[str, str],
    items: Collection[Item],
    selections: Mapping[str, Selection],
    state: State,
    layers: Collection[str],
) -> tuple[list[Item], list[str]]:
    """Return what is new or no longer as it was told, and the ids of what is gone or no longer holds."""
    changed, gone = [item for item in items if _is_news(told.get(item.id), item.rendered)], list[str]()
    current = {item.id for item in items}
    for id, digest in told.items():
        path, _, key = id.partition("#")
        # What goes by its digest has no path before a key: nobody could say which one it was.
        if id in current or digest.startswith(WITHHELD) or path not in PLACES:
            continue
        entry = CATALOGUE[PLACES[path]]
        if entry.layer not in layers:
            continue
        if isinstance(entry, Single):
            gone.append(id)
            continue
        if entry.fades == "always":
            continue
        selection = selections[path]
        element = selection.find(key)
        if element is None and entry.may_have_faded(state):
            continue
        if element is None or not entry.holds(element):
            gone.append(id)
        elif not selection.is_in_view(element) and _is_news(digest, rendered := selection.render(element)):
            # It gave way to others, so it stands behind them; what was told of it has to be true all the same.
            place, last = PLACES[path], len(selection.elements) + len(changed)
            changed.append(Item(entry, key, id, rendered, (last, place), (-selection.importance, place, last)))
    return changed, gone


def _is_news(digest: str | None, rendered: Rendered) -> bool:
    return digest is None or digest.removeprefix(WITHHELD) != rendered.digest


def _write_update(changed: list[Item], gone: list[str], tokens: int, formatter: Formatter) -> Update | None:
    """Write an update within so many tokens: what is gone, then what is new, the most important first."""
    changed.sort(key=lambda item: item.urgency)
    taken, room = ItemSet(formatter), tokens - formatter.tag_tokens(UPDATE_ROOT, 0)
    taken.take((item for item in changed if item.kind.layer in WHOLE), float("inf"))
    removals: dict[str, Rendered] = {}
    for id in gone:
        path, _, key = id.partition("#")
        attributes = {"path": path, "key": clean(key)} if key else {"path": path}
        removal = formatter.render(Node("removed", tuple(attributes.items())))
        if taken.tokens + removal.tokens <= room:
            removals[id] = removal
            room -= removal.tokens
    left = taken.take((item for item in changed if item.kind.layer not in WHOLE), room - taken.tokens)
    taken.take_shortened((item for item in left if item.rendered.tokens > room), room - taken.tokens)
    written = write_fitting(formatter, UPDATE_ROOT, taken.items, list(removals.values()), tokens, tokens)
    if not written.items and not written.removals:
        return None
    removed = list(removals)[: len(written.removals)]
    digests = {item.id: item.rendered.digest for item in written.items}
    return Update(
        text=written.text,
        tokens=written.tokens,
        pieces=tuple(item.piece() for item in written.items),
        digests=digests,
        removed=tuple(removed),
        left_out=tuple(id for id in (*gone, *(item.id for item in changed)) if id not in digests and id not in removed),
        shortened=_shortened(written),
    )
