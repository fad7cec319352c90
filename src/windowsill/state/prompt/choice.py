"""Choose what is shown when not everything fits: whole elements, the most important first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from windowsill.errors import BudgetError, log
from windowsill.history.folds import Brief
from windowsill.history.view import View
from windowsill.messages import Message, Text
from windowsill.search.embeddings import Embedder
from windowsill.search.rank import relevance
from windowsill.state.layers import State, Summary
from windowsill.state.prompt.catalogue import (
    LAYER_OF_TAG,
    PLACES,
    WHOLE,
    Kind,
    Limits,
    Single,
    node_of,
)
from windowsill.state.prompt.formats import Formatter, Part, Rendered, clean, lay_out
from windowsill.state.shares import Shares, ShareSettings, pass_on, split
from windowsill.summaries import Material
from windowsill.summaries.offline import Offline
from windowsill.text import cut_middle

MOST_TRIES = 3
"""Times that a text is written to be shortened."""

FRAME = "frame"
"""The outermost tags count like a layer of their own, which has the reserve as its share."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is shown: an element of a list, or a single value (its key is empty)."""

    layer: str
    path: str
    """Its list or value in the state, such as `memory.semantic.facts`."""
    key: str
    id: str
    """Its path and key, as in `work.hypotheses#h1`; what has no key of its own goes by its digest."""
    text: str
    """The text as it stands in the context."""
    tokens: int
    digest: str


class Item(NamedTuple):
    """Something that may be shown."""

    kind: Kind | Single
    key: str
    id: str
    rendered: Rendered
    order: tuple[int, int]
    """The lower, the more important in its layer: the place among its kind, then the place of the kind."""
    place: tuple[int, int, int]
    """Its order in the text: the more important layer first, then the place of the kind, and that among its kind."""
    whole_tokens: int = 0
    """The tokens it had before its text was shortened; 0 when it stands as it is."""

    @property
    def urgency(self) -> tuple[int, tuple[int, int]]:
        """The order among all items: the lower, the more important."""
        return self.place[0], self.order

    def piece(self) -> Piece:
        """Return the piece that a caller gets to see."""
        kind, (_, text, tokens, digest) = self.kind, self.rendered
        own = {"layer": kind.layer, "path": kind.path, "key": self.key, "id": self.id}
        return Piece(**own, text=text.removesuffix("\n"), tokens=tokens, digest=digest)


class ItemSet:
    """Items that were taken, and the tokens they have together with the tags around them."""

    def __init__(self, formatter: Formatter) -> None:
        self.items: list[Item] = []
        self.tokens = 0
        self._formatter = formatter
        self._open: set[tuple[str, ...]] = set()

    def take(self, items: Iterable[Item], room: float) -> list[Item]:
        """Take each item that still fits, in this order, into `room` more tokens; return the others."""
        left, end = list[Item](), self.tokens + room
        for item in items:
            missing = self._missing(item)
            more = item.rendered.tokens + self._tokens(missing)
            if self.tokens + more > end:
                left.append(item)
                continue
            self.items.append(item)
            self.tokens += more
            self._open |= missing
        return left

    def take_shortened(self, items: Iterable[Item], room: int) -> None:
        """Take items whose text is too long for `room` more tokens with as much of it as still fits."""
        end = self.tokens + room
        for item in items:
            space = end - self.tokens - self._tokens(self._missing(item))
            if space >= SHORTEST and (short := shorten(item, space, self._formatter)) is not None:
                self.take([short], end - self.tokens)

    def _missing(self, item: Item) -> set[tuple[str, ...]]:
        tags = item.kind.tags
        return {tags[:length] for length in range(1, len(tags) + 1)} - self._open

    def _tokens(self, tags: Iterable[tuple[str, ...]]) -> int:
        return sum(self._formatter.tag_tokens(each[-1], len(each)) for each in tags)


SHORTEST = 40
"""Tokens below which a shortened text would say too little."""

SHORTENED = "shortened_from_tokens"
"""The attribute that tells the model, with the size of the whole text."""


def shorten(item: Item, most: int, formatter: Formatter) -> Item | None:
    """Return an item with its text shortened by the offline writer; `None` when it would still be too large."""
    node, whole = item.rendered.node, item.rendered.tokens
    attributes = tuple(each for each in node.attributes if each[0] != "as")
    bare = node._replace(text="", attributes=(*attributes, (SHORTENED, str(whole))))
    room = most - formatter.render(bare).tokens
    if room < SHORTEST:
        return None
    # What is escaped takes more tokens than what was written: then it is written again, in less room.
    for _ in range(MOST_TRIES):
        short = formatter.render(bare._replace(text=clean(_written(node.text, node.tag, room, formatter.count))))
        if short.tokens <= most:
            return item._replace(rendered=short._replace(digest=item.rendered.digest), whole_tokens=whole)
        room = room * most // short.tokens - 1
    return None


def _written(text: str, tag: str, room: int, count: Callable[[str], int]) -> str:
    """Summarise a text in so many tokens; its beginning and its end where there is nothing to summarise."""
    tokens = count(text)
    message = Message(role="assistant", id=tag, blocks=(Text(text=text),))
    written = Offline().write(Brief(room=room), Material(messages=(message,), tokens=tokens, count=count)).text
    return written or cut_middle(text, len(text) * max(room, 1) // max(tokens, 1))


def fit(
    items: Sequence[Item], shares: Shares, frame: int, formatter: Formatter, settings: ShareSettings
) -> tuple[list[Item], int]:
    """Return what is shown and the tokens it may have: more than the shares only if what is shown whole needs it."""
    layers: dict[str, list[Item]] = {layer: [] for layer in settings.importance}
    for item in sorted(items, key=lambda item: item.order):
        layers[item.kind.layer].append(item)
    needs = {FRAME: frame, **{layer: _need(found, formatter) for layer, found in layers.items()}}
    room = sum(shares.layers.values()) + shares.reserve
    if sum(needs.values()) <= room:
        return list(items), room
    granted = _grant(shares, needs, settings.importance)
    taken, left = ItemSet(formatter), list[Item]()
    for layer in WHOLE:
        taken.take(layers[layer], float("inf"))
    for layer in (layer for layer in layers if layer not in WHOLE):
        left += _fit_layer(taken, layers[layer], granted[layer], settings.weights(layer), formatter)
    # What is too large for its own share may still fit into what all the others left, whole or shortened.
    left = taken.take(sorted(left, key=lambda item: item.urgency), room - frame - taken.tokens)
    too_long = (item for item in left if item.rendered.tokens > granted[item.kind.layer])
    taken.take_shortened(too_long, room - frame - taken.tokens)
    return taken.items, max(room, frame + sum(needs[layer] for layer in WHOLE))


def _need(items: Iterable[Item], formatter: Formatter) -> int:
    taken = ItemSet(formatter)
    taken.take(items, float("inf"))
    return taken.tokens


def _grant(shares: Shares, needs: Mapping[str, int], layers: Mapping[str, int]) -> dict[str, int]:
    """Set the budgets of the layers: unused shares are passed on, and what is shown whole gets all that it needs."""
    importance = {FRAME: max(layers.values()), **layers}
    granted = pass_on({FRAME: shares.reserve, **shares.layers}, needs, importance)
    lacking = sum(needs[name] - granted[name] for name in (FRAME, *WHOLE))
    most_important_first = sorted(layers, key=lambda layer: -layers[layer])
    for layer in most_important_first[::-1]:
        if layer not in WHOLE:
            given = min(lacking, granted[layer])
            granted[layer] -= given
            lacking -= given
    return granted


def _fit_layer(
    taken: ItemSet, items: Sequence[Item], budget: int, weights: Mapping[str, int], formatter: Formatter
) -> list[Item]:
    """Take what fits into a layer's budget, by the shares of its groups first; return the rest."""
    groups = {name: [item for item in items if item.kind.group == name] for name in weights}
    needs = {name: _need(found, formatter) for name, found in groups.items()}
    held = {name for name, found in groups.items() if found}
    end, left = taken.tokens + budget, list[Item]()
    for name, room in pass_on(split(budget, weights, held), needs, weights).items():
        left += taken.take(groups[name], min(room, end - taken.tokens))
    left.sort(key=lambda item: item.order)
    return taken.take(left, end - taken.tokens)


class FittedText(NamedTuple):
    """A text that keeps its limit, and what stands in it."""

    text: str
    tokens: int
    parts: list[Part]
    items: list[Item]
    """The items that are shown, in the order of the text."""
    removals: list[Rendered]
    """Notices of what is gone, before all layers."""


def write_fitting(
    formatter: Formatter, root: str, items: Sequence[Item], removals: Sequence[Rendered], limit: int, most: int
) -> FittedText:
    """Write the items without as much of the least important as is over `limit`.

    The whole text is counted, as parts have a few tokens more or less together than alone. `BudgetError` when what is
    shown whole is over `most`.
    """
    shown, removals = sorted(items, key=lambda item: item.place), list(removals)
    while True:
        placed = [*(((), each) for each in removals), *((item.kind.tags, item.rendered) for item in shown)]
        parts = lay_out(root, placed)
        text = formatter.text(parts)
        tokens = formatter.count(text)
        over = tokens - limit
        movable = sorted((item for item in shown if item.kind.layer not in WHOLE), key=lambda item: item.urgency)
        if over <= 0 or not (movable or removals):
            break
        if not movable:
            removals.pop()
        gone = set()
        while over > 0 and movable:
            worst = movable.pop()
            gone.add(worst.place)
            over -= max(worst.rendered.tokens, 1)
        shown = [item for item in shown if item.place not in gone]
    if tokens > most:
        found = {LAYER_OF_TAG[tag]: formatter.count(text) for tag, text in formatter.layer_texts(parts).items()}
        sizes = {layer: found.get(layer, 0) for layer in WHOLE}
        listed = " and ".join(f"the {layer} layer has {size:,}" for layer, size in sizes.items())
        raise BudgetError(
            f"{listed} tokens, which with their frame are {tokens:,} of {most:,}",
            wanted=tokens,
            available=most,
            parts=sizes,
            remedy="neither is ever cut: shorten the role, the policies or the goal, or give more tokens",
        )
    return FittedText(text, tokens, parts, shown, removals)


NAMELESS = "="
"""Stands between a path and a digest that serves as a key: where a key stands, any sign may be its first."""


LONGEST_GOAL = 300
"""Characters of a goal that texts are compared with: a whole task text has something in common with everything."""


def focus_of(state: State) -> tuple[str, ...]:
    """Return what texts are compared with: the step that is worked on, and the beginning of the goal."""
    plan = state.work.plan
    step = next((each.description for each in plan.steps if each.id == plan.current), "")
    return tuple(text for text in (step, state.task.goal[:LONGEST_GOAL]) if text.strip())


class Focus:
    """The subject of the work, and how near to it texts are. Without a goal or a step everything is relevant."""

    def __init__(self, texts: tuple[str, ...], threshold: float, embedder: Embedder | None) -> None:
        self.texts = texts
        self._threshold = threshold
        self._embedder = embedder

    @cached_property
    def _known(self) -> list[str]:
        # As they are shown: others' code need not know what to do with half a character. A text without a single word
        # is near to nothing, not even to itself.
        return [text for text in map(clean, self.texts) if self._compare(text, [text]) != [0.0]]

    def is_near(self, relevance: float) -> bool:
        """Tell whether something so relevant is shown."""
        return not self._known or relevance > self._threshold

    def relevance(self, texts: Sequence[str]) -> list[float]:
        """Compare texts with the step or the goal, whichever is nearer: for each a number from 0 to 1."""
        if not (texts and self._known):
            return [1.0] * len(texts)
        cleaned = [*map(clean, texts)]
        return [max(each) for each in zip(*(self._compare(known, cleaned) for known in self._known), strict=True)]

    def _compare(self, text: str, others: list[str]) -> list[float]:
        try:
            return relevance(text, others, self._embedder)
        except Exception as error:
            if self._embedder is None:
                raise
            # Whatever an embedder raises, the words are still there, and the turn goes on.
            log.warning("the state is compared by words alone: the embedder failed: %s", error)
            self._embedder = None
            return relevance(text, others)


SHOWN = "shown"
"""In the place of a fold, for a message that no fold hides."""


class ShownMessages:
    """The messages that a view shows, until it is changed other than at its end."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._edits = view.edits
        self._covers: dict[int, str] = {}
        """By entry, the fold that hides it."""
        # What stands behind all folds is found without a search.
        self._folded = max((item.last for item in view.items if item.fold), default=0)

    def are_of(self, view: View | None) -> bool:
        """Tell whether these are the messages that a view shows now."""
        return view is self._view and view.edits == self._edits

    def show(self, element: Any) -> bool:
        """Tell whether the message, or the summary, that an element was taken from stands in the request."""
        entry = element.entry
        if not entry or entry > self._folded:
            return bool(entry)
        if entry not in self._covers:
            item = self._view.cover(entry)
            self._covers[entry] = "" if item is None or item.is_empty else item.id if item.fold else SHOWN
        cover = self._covers[entry]
        # A summary that a later one took up stands in that one.
        return cover in (SHOWN, element.id) or (bool(cover) and isinstance(element, Summary))


class Selection:
    """Chooses from one list of the state.

    Elements never change, so what was found out about one (its rank, its text, its tokens) is kept, by its identity,
    while it stays in the list.
    """

    def __init__(self, kind: Kind, limits: Limits, formatter: Formatter, importance: int) -> None:
        self.kind = kind
        self.importance = importance
        self.elements: tuple[Any, ...] = ()
        self.items: list[Item] = []
        """The chosen elements, in the order of the text."""
        self.until = math.inf
        """The moment from which others may be chosen, though the state stays the same."""
        self._limits = limits
        self._formatter = formatter
        self._goal: Focus | None = None
        self._messages: ShownMessages | None = None
        self._ranks: dict[int, Any] = {}
        self._rendered: dict[int, Rendered] = {}
        self._tokens: int | None = None
        self._hidden: list[int] = []

    def choose(self, state: State, goal: Focus, now: float, messages: ShownMessages | None = None) -> list[Item]:
        """Choose what is shown of the list as it is in this state, beside the messages of a request."""
        elements = self.kind.elements(state)
        same = elements is self.elements and goal is self._goal and messages is self._messages
        if self.kind.expiry is None and same:
            return self.items
        # What stands in the request is not looked at any further: that is most of what a run records.
        hidden = [place for place, each in enumerate(elements) if messages is None or not messages.show(each)]
        ranks = self._rank([elements[place] for place in hidden], goal)
        known = self._rendered
        rendered = {id(each): known[id(each)] for each in elements if id(each) in known} if known else {}
        chosen, until = self._best(elements, hidden, ranks, state, now)
        items = self._items(elements, chosen, rendered)
        # Only from here on anything changes: counting and comparing are others' code, which may fail.
        self._ranks, self._rendered, self.items, self.until = ranks, rendered, items, until
        self.elements, self._goal, self._tokens = elements, goal, None
        self._messages, self._hidden = messages, hidden
        return items

    @property
    def in_view(self) -> int:
        """The number of elements that are not shown because the request has the messages they were taken from."""
        return len(self.elements) - len(self._hidden)

    @property
    def tokens(self) -> int:
        """Tokens of all elements, chosen or not, that the messages of the request do not show."""
        if self._tokens is None:
            self._tokens = sum(self.render(self.elements[place]).tokens for place in self._hidden)
        return self._tokens

    def is_in_view(self, element: Any) -> bool:
        """Tell whether the request has the message that an element was taken from."""
        return self._messages is not None and self._messages.show(element)

    def find(self, key: str) -> Any:
        """Return the element with this key, or `None`."""
        return next((each for each in self.elements if each.key == key), None)

    def render(self, element: Any, known: dict[int, Rendered] | None = None) -> Rendered:
        """Return an element of the list in its format; `known` are those that were rendered before."""
        known = self._rendered if known is None else known
        if id(element) not in known:
            known[id(element)] = self._formatter.render(node_of(self.kind.look, element))
        return known[id(element)]

    def _rank(self, elements: Sequence[Any], goal: Focus) -> dict[int, Any]:
        """Rank elements by their identity; `None` is not shown."""
        kind, known = self.kind, self._ranks if goal is self._goal else {}
        ranks = {id(each): known.get(id(each)) for each in elements}
        new = [each for each in elements if id(each) not in known and kind.holds(each)]
        if kind.about is None:
            return ranks | {id(each): kind.rank(each, 1.0) for each in new}
        # What somebody found out before is not found out again.
        near: dict[int, float] = {
            id(each): value for each in new if (value := getattr(each, "relevance", None)) is not None
        }
        unstated = [each for each in new if id(each) not in near]
        near |= zip(map(id, unstated), goal.relevance([kind.about(each) for each in unstated]), strict=True)
        for each in new:
            relevance = near[id(each)]
            if goal.is_near(relevance):
                ranks[id(each)] = (1, kind.rank(each, relevance))
            elif not kind.strict:
                # What was recorded reaches the model: what has least to do with the step comes last.
                ranks[id(each)] = (0, relevance)
        return ranks

    def _best(
        self, elements: Sequence[Any], places: Sequence[int], ranks: dict[int, Any], state: State, now: float
    ) -> tuple[list[int], float]:
        """Return the places of what is chosen, the most important first, and until when that holds."""
        kind, until = self.kind, math.inf
        passing = [place for place in places if ranks[id(elements[place])] is not None]
        if kind.expiry is not None:
            ends = {place: kind.expiry(elements[place], state, self._limits) for place in passing}
            passing = [place for place in passing if now < ends[place]]
            until = min((ends[place] for place in passing), default=math.inf)
        if kind.newest:
            passing.reverse()
        best = sorted(passing, key=lambda place: ranks[id(elements[place])], reverse=True)
        if kind.latest_of:
            latest: dict[Any, int] = {}
            for place in best:
                latest.setdefault(getattr(elements[place], kind.latest_of), place)
            best = list(latest.values())
        return best[: getattr(self._limits, kind.limit)] if kind.limit else best, until

    def _items(self, elements: tuple[Any, ...], chosen: list[int], rendered: dict[int, Rendered]) -> list[Item]:
        kind, place = self.kind, PLACES[self.kind.path]
        items: list[Item] = []
        used: set[str] = set()
        for spot, rank, where in sorted((rank if kind.by_rank else at, rank, at) for rank, at in enumerate(chosen)):
            key, written = elements[where].key, self.render(elements[where], rendered)
            # Without a key of its own only what it says tells it apart.
            named = key and key not in used
            used.add(key)
            name = f"{kind.path}#{key}" if named else f"{kind.path}{NAMELESS}{written.digest}"
            items.append(Item(kind, key, name, written, (rank, place), (-self.importance, place, spot)))
        return items
