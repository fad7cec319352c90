"""Economy: fold when that costs less than carrying on, and keep what later calls need.

A provider reads a cached prefix for a fraction of the price and charges more than the price to write one. So a fold
pays when what it takes out of the later requests is worth more than writing what stands behind it again. Earlier
stand-ins stay byte for byte, and with them the cache: a fold adds one behind them. They are joined into one when the
cache has gone cold, as everything is written again then anyway, or when they take too much room. A batch of large
outputs that have little left to give is masked instead, where that gains more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from windowsill.budget import Budget, WriterPrices
from windowsill.history.folds import Brief, MessageSpan, Proposal
from windowsill.history.proposals import describe, frame, gather, hide
from windowsill.history.view import Item, Unit, View
from windowsill.messages import ORIGIN, Block, Message, Origin, Reasoning, Text, text_of
from windowsill.strategies.base import (
    OFFLINE,
    Plan,
    Strategy,
    check_count,
    check_range,
    held_places,
    items_of,
    join_neighbours,
    oldest_units,
    units_after_task,
)
from windowsill.strategies.masks import EXEMPT, LARGEST_PLACEHOLDER, Masker, mask_outputs, quoted_later, spent_outputs
from windowsill.strategies.working_set import FACTS, Rooms, Sight, Written, calls_before, collect, write
from windowsill.summaries.collect import collect_hidden, collect_untold, readable
from windowsill.summaries.digest import DIGEST, Digest, dump, merge, only_record
from windowsill.summaries.offline import lay_out, write_work

Action: TypeAlias = Literal["wait", "mask", "add", "join"]

TAIL = (0.06, 2_500)
"""The latest messages that stay as they are: the share of the room for messages, and the most tokens."""

LINES = (0.70, 8_000)
NAMES = (0.20, 2_600)
RECORD = (0.12, 2_000)
"""Lines, names and the record (words of the user, decisions, failures) in a stand-in that is made anew: the share of
the room, for lines of what the other parts leave free, and the most tokens. Shares hold on small windows; the caps on
large ones, where what a further line costs in every call, and not the room, says how many are worth it. They were
tuned on the half of the recorded sessions that docs/strategies.md names."""

DONE_ROOM = (0.125, 100, 0.05)
"""The part that says what was done last and what came of it, without which nobody could tell where the work stands: its
share of the room for names, up to these tokens, or up to this share. Half of it where there are neither names nor
lines, as in a chat."""

MORE_LINES = (0.70, 4_000)
MORE_NAMES = (0.09, 1_300)
MORE_RECORD = (0.05, 1_000)
"""The same in a stand-in that is added behind others."""

WORDS = (0.05, 800)
"""The same for the words of a model, where one writes. They tell the course of the work, which code cannot."""

Parts: TypeAlias = tuple[tuple[float, int], tuple[float, int], tuple[float, int]]
WHOLE: Parts = (LINES, NAMES, RECORD)
MORE: Parts = (MORE_LINES, MORE_NAMES, MORE_RECORD)

MOST_STAND_INS = 0.6
"""The share of the room that stand-ins may take before they are joined."""

LEAST_STAND_IN = 0.15
"""The share of the room that stand-ins have at least: what came last is cut before the record of all the rest."""

LEAST_SAVED = 10
"""Joining stand-ins must save one part in so many: for less they stay as they are."""

LEAST_FREE = 0.15
"""The share of the room that a fold leaves free at least, or else a stand-in between messages that stay is made anew
too, though that frees less than half of it: the next fold would come within a few calls."""

FRAME = 100
"""Tokens of the frame around a text."""

LEAST_HIDDEN = 0.6
"""The share of the room that a fold that pays hides at least: each one has the provider read the rest anew. From three
to six tenths the cost of a session hardly changes, and the share of a request that was cached is largest with six."""

HALF = 0.5
"""The share of the limit up to which nothing is folded, whatever it would save: what has room is worth having."""

NOTHING_SAVED = "nothing that may be hidden is larger than what would stand for it"

FEWEST_CALLS = 5
MOST_CALLS = 30
"""Calls that are expected to follow at least, and at most. In between: as many as were made without a pause."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision with the figures it was made from. Prices are in tokens of fresh input."""

    action: Action
    why: str = ""
    total: int = 0
    """Tokens of the request."""
    limit: int = 0
    """Tokens that it may have."""
    cut: int = 0
    """The position up to which messages would be hidden."""
    hidden: int = 0
    """Tokens that would be hidden."""
    written: int = 0
    """Tokens of the text in their place, at most."""
    rest: int = 0
    """Tokens behind it, which have to be cached again."""
    voided: int = 0
    """Tokens of signed reasoning behind it, which the model would not get back: what it thought, it thinks again."""
    words: int = 0
    """Tokens of a model's text beside it, at most; 0 where none is bought."""
    summary: float = 0.0
    """The price of that text: what its model reads and writes, and what is read meanwhile."""
    saves: float = 0.0
    """The price of the tokens that hiding keeps out of the calls that are expected,"""
    costs: float = 0.0
    """and of hiding: caching the rest again, thinking again, the model's text."""
    batch: int = 0
    """Tokens of large old outputs that could be masked instead,"""
    outputs: int = 0
    """how many these are,"""
    quoted: int = 0
    """how many more were quoted by later calls, and would stay,"""
    batch_saves: float = 0.0
    """what masking saves,"""
    batch_costs: float = 0.0
    """and what it costs, with asking for one again as often as such outputs were used."""
    calls: float = 0.0
    """Calls that are expected before the cache goes cold."""
    idle: float = 0.0
    """Seconds since the model last answered."""
    read: float = 0.0
    """The price of a cached token,"""
    write: float = 0.0
    """of one that is written to the cache,"""
    output: float = 0.0
    """and of one that the model writes."""

    def because(self, why: str, action: Action = "wait") -> Decision:
        """Return the same figures with what follows from them."""
        return msgspec.structs.replace(self, action=action, why=why)


class Economy(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Folds when it saves money or room, and keeps the lines and names that later calls may need."""

    keep: int = 6
    """The latest messages that stay while the request fits: what was just read is about to be used."""
    lines: float = 1.0
    """Lines of files and outputs that stand-ins keep, as a multiple of the usual."""
    names: float = 1.0
    """Names, paths and ids that stand-ins keep, as a multiple of the usual."""

    name = "economy"
    priced = True

    def __post_init__(self) -> None:
        check_count(self, "keep", "messages")
        check_range(self, ("lines", "names"), 0, 10, "a number from 0 to 10")

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether a fold pays, or joins stand-ins for nothing because the cache is cold."""
        return self.decide(view, budget).action != "wait"

    def decide(self, view: View, budget: Budget) -> Decision:
        """Decide what to do now, from sizes, prices, pauses and the calls that are expected."""
        total = budget.fixed + view.tokens()
        cache = budget.cache
        wait = Decision(
            action="wait", total=total, limit=budget.limit, read=cache.read, write=cache.write, output=cache.output
        )
        must = total > budget.high
        if budget.step:
            return wait.because(f"a request that is made anew is cut above {budget.high:,} tokens")
        if not must and total <= HALF * budget.limit:
            return wait.because(f"{total:,} tokens are no more than half of {budget.limit:,}")
        if not must and view.unfolded():
            return wait.because("what somebody had shown again stays while there is room")
        held = held_places(view)
        room = _room(view, budget, held)
        start = _behind_stand_ins(view)
        idle = _idle(view)
        cold = idle > budget.cache.lifetime
        most = view.tokens() - (view.tokens(*view.items[:start]) if start else 0)
        if not must and not cold and most < LEAST_HIDDEN * room:
            # In most turns after a fold, without a look at each message.
            return msgspec.structs.replace(wait, hidden=most, idle=idle).because(
                f"{most:,} tokens that no fold covers are too few for the prefix to be read anew"
            )
        each = view.each(view.items[start:])
        fresh = _fresh(view, each, room)
        cut = _cut(each, _size(TAIL, room), fresh if must or cold else max(fresh, self.keep))
        stays = sum(each[place - start] for place in held if start <= place < start + cut)
        hidden, rest = sum(each[:cut]) - stays, sum(each[cut:]) + stays
        if not must and not cold and hidden < LEAST_HIDDEN * room:
            few = msgspec.structs.replace(wait, hidden=hidden, rest=rest, idle=idle)
            return few.because(f"{hidden:,} tokens that could be hidden are too few for the prefix to be read anew")
        row, pace = _calls_in_a_row(view, view.items, budget.cache.lifetime)
        calls = max(FEWEST_CALLS, min(MOST_CALLS, row))
        standing = total - budget.fixed - hidden - rest - _first_tokens(view)
        free = budget.limit - total + hidden
        written = min(hidden, sum(_rooms(MORE if start > _behind_task(view) else WHOLE, room, free)))
        words = _words_room(room, budget)
        fits = total - hidden + min(hidden, written + words) + FRAME <= budget.limit
        action: Action = "add" if standing < MOST_STAND_INS * room and fits else "join"
        sizes = {"cut": start + cut, "hidden": hidden, "written": written, "rest": rest, "words": words}
        figures = msgspec.structs.replace(wait, **sizes, calls=calls, idle=idle)
        if cold and not must:
            hidden, action = hidden + standing, "join"
            whole = sum(_rooms(WHOLE, room, free + standing))
            figures = msgspec.structs.replace(figures, hidden=hidden, written=min(hidden, whole))
            if hidden <= whole // 2:
                return figures.because(f"the cache is cold, but {hidden:,} tokens are little to hide")
        return self._choose(view, budget, _weigh(view, budget, figures, pace, must=must), action)

    def _choose(self, view: View, budget: Budget, figures: Decision, action: Action) -> Decision:
        """Choose what gains most: hiding, by this action, masking a batch, or waiting where the request fits."""
        must, cold = figures.total > budget.high, figures.idle > budget.cache.lifetime
        gain = figures.saves - figures.costs
        if not cold:
            figures = self._weigh_batch(view, budget, figures)
            masks = figures.batch_saves - figures.batch_costs
            left = budget.limit - figures.total + figures.batch - FRAME * figures.outputs
            best = masks > (gain if must else max(0.0, gain)) and left >= LEAST_FREE * _room(view, budget)
            if figures.outputs and best:
                why = f"masking {figures.batch:,} tokens of outputs {_worth(masks)} over {figures.calls:.0f} calls"
                return figures.because(f"{why}, hiding {figures.hidden:,} tokens {_worth(gain)}", "mask")
        if must:
            why = f"{figures.total:,} tokens passed {budget.high:,}: {figures.hidden:,} that no fold covers are hidden"
        elif cold:
            why = f"the cache is cold after {figures.idle:,.0f} seconds: the request is written again anyway"
        else:
            why = f"hiding {figures.hidden:,} tokens saves {figures.saves:,.0f} over {figures.calls:.0f} calls"
            why += f", costs {figures.costs:,.0f}"
        pays = must or gain > 0 or (cold and gain == 0)
        return figures.because(why + _further(figures), action if pays else "wait")

    def _weigh_batch(self, view: View, budget: Budget, figures: Decision) -> Decision:
        """Add what masking a batch saves and costs, if it could gain more than hiding."""
        cache, least = budget.cache, figures.saves - figures.costs
        if figures.total <= budget.high:
            least = max(0.0, least)
        if cache.read * figures.hidden * figures.calls - cache.write * figures.rest <= least:
            return figures
        large = _large_outputs(view, figures.cut)
        best = _weigh_masks(view, budget, figures, large, 0.0)
        if best.batch_saves - best.batch_costs <= least:
            return figures
        chosen, quoted = self._batch(view, large)
        # By the rule of succession: one more was quoted, and one more was not.
        chance = (quoted + 1) / (len(chosen) + quoted + 2)
        return msgspec.structs.replace(_weigh_masks(view, budget, figures, chosen, chance), quoted=quoted)

    def _batch(self, view: View, large: Sequence[Item]) -> tuple[list[Item], int]:
        """Return those of these outputs that may be masked, and how many stay because later calls quoted them."""
        spent = spent_outputs(view, large)
        quoted = quoted_later(view, spent, self.keep)
        return [item for item in spent if item.seq not in quoted], len(quoted)

    def explain(self, view: View, budget: Budget) -> dict[str, float | str]:
        """Return the decision with its figures."""
        return msgspec.structs.asdict(self.decide(view, budget))

    def plan(self, view: View, budget: Budget) -> Plan:
        """Fold as decided; where every request is made anew, the oldest that do not fit."""
        middle = units_after_task(view)
        if budget.step:
            # In steps, whatever was said since: the cut stays for many turns. What stands in needs room too.
            total = budget.fixed + view.tokens()
            wanted = budget.to_hide(total + FRAME + int(LEAST_STAND_IN * _room(view, budget)))
            wanted = wanted if total > budget.high else 0
            chosen = oldest_units(view, middle, cut=0, wanted=wanted) if wanted > 0 else []
            why = f"{total:,} tokens passed {budget.high:,}"
            decision = Decision(action="join", why=why)
        else:
            decision = self.decide(view, budget)
            if decision.action == "wait":
                return Plan(middle=items_of(view, middle))
            if decision.action == "mask":
                chosen_outputs, _ = self._batch(view, _large_outputs(view, decision.cut))
                if outputs := Masker(view, 0, EXEMPT).outputs_of(chosen_outputs):
                    masks = mask_outputs(outputs, strategy=self.name, reason=decision.why)
                    figures = msgspec.structs.asdict(decision)
                    return Plan(proposals=masks, middle=items_of(view, middle), decision=figures)
                decision = decision.because(decision.why, "add")
            first = _behind_stand_ins(view) if decision.action == "add" else 0
            chosen = [unit for unit in middle if first <= unit.start and unit.stop <= decision.cut]
            if decision.action == "add" and not chosen:
                chosen = [unit for unit in middle if unit.stop <= decision.cut]
        proposal = self._fold(view, budget, chosen, decision)
        return Plan(
            proposals=(proposal,) if proposal else (),
            middle=items_of(view, middle),
            # A cold cache is written with this request: folded in the next one, it would be written twice.
            at_once=decision.idle > budget.cache.lifetime,
            decision=msgspec.structs.asdict(decision if proposal else decision.because(NOTHING_SAVED)),
        )

    def _fold(self, view: View, budget: Budget, chosen: Sequence[Unit], decision: Decision) -> Proposal | None:
        """Fold these units: neighbours behind one stand-in, where that saves enough."""
        stretches = _stretches(view, chosen, join=decision.action == "join")
        sizes = [view.tokens(*stretch) for stretch in stretches]
        cold = decision.idle > budget.cache.lifetime
        added = decision.action == "add" and any(item.fold for item in view.items)
        gone = sum(sizes) - FRAME * len(sizes) - decision.words
        rooms = self._rooms_of(view, budget, MORE if added else WHOLE, gone)
        hidden = {item.first: item for stretch in stretches for item in stretch}
        if budget.step:
            # A request that is made anew looks at nothing but what it hides: the same text for many turns.
            sight = Sight.of(view, (), hidden.values())
        else:
            sight = Sight.of(view, [item for item in view.items if item.first not in hidden], view.items)
        now = max((item.seq for item in hidden.values()), default=0) if budget.step else view.items[-1].seq
        made: list[tuple[MessageSpan, Message, Brief | None]] = []
        alone: list[tuple[MessageSpan, Message, Brief | None]] = []
        # Without secrets before they are taken apart: a value that stands alone is no longer known as one.
        messages = [[readable(view, item) for item in stretch] for stretch in stretches]
        digests = [collect_hidden(view, *read) for read in zip(stretches, messages, strict=True)]
        # Messages that stay may part what is hidden: the largest stand-in tells the record of all.
        largest = max(range(len(sizes)), key=sizes.__getitem__, default=0)
        record = collect_untold(view, [item for item in view.items if item.first not in hidden])
        for digest in digests:
            record = merge(record, only_record(digest))
        for place, (stretch, size) in enumerate(zip(stretches, sizes, strict=True)):
            share = size / max(1, sum(sizes))
            lines, names = (int(each * share) for each in rooms[:2])
            before = [item for item in view.items if item.first <= stretch[-1].first]
            calls = 0 if cold else _calls_in_a_row(view, before, budget.cache.lifetime)[0]
            told = rooms[2] if place == largest else 0
            digest = merge(digests[place], record) if place == largest else digests[place]
            count = view.scale.counter.count
            done = min(int(DONE_ROOM[0] * names), max(DONE_ROOM[1], int(DONE_ROOM[2] * names))) if told else 0
            parts = Rooms(lines=lines, names=names - done, record=told)
            earlier = view.items if place == largest and not budget.step else ()
            written = write(collect(view, stretch, messages[place], earlier), now, sight, parts, count, calls=calls)
            work = write_work(digests[place], done if written.text else names // 2, count) if told else ""
            record_text = lay_out("summary", digest, told, count, details=0) if told else ""
            span, stand_in = self._stand_in(view, stretch, digest, (record_text, work), written)
            saved, again = view.tokens_of(span.saves), cold or all(item.fold for item in stretch)
            if saved <= (size // LEAST_SAVED if again else 0):
                continue
            brief = Brief(room=decision.words, beside=True) if decision.words and place == largest else None
            is_alone = len(stretch) == 1 and bool(stretch[0].fold) and 2 * saved <= size
            (alone if is_alone else made).append((span, stand_in, brief))
        after = budget.fixed + view.tokens() - sum(view.tokens_of(span.saves) for span, *_ in made)
        if budget.limit - after < LEAST_FREE * _room(view, budget):
            made = sorted((*made, *alone), key=lambda each: each[0].first)
        if not made:
            return None
        spans, stand_ins, briefs = zip(*made, strict=True)
        return Proposal(
            kind="condense",
            reason=decision.why,
            strategy=self.name,
            spans=spans,
            stand_ins=stand_ins,
            briefs=briefs,
        )

    def _rooms_of(self, view: View, budget: Budget, parts: Parts, hidden: int) -> tuple[int, int, int]:
        """Return the tokens that the parts of stand-ins may have by the counter, where `hidden` tokens go.

        What stays may leave less room than usual. The counter does not know what the model was seen to count. Where
        every request is made anew, what stands in has the room that was left for it below the high mark.
        """
        room = _room(view, budget)
        least = int(LEAST_STAND_IN * room)
        free = max(least, 0 if budget.step else budget.limit - budget.fixed - view.tokens() + hidden)
        lines, names, record = _rooms(parts, room, free)
        smaller = max(1.0, view.scale.calibration.code) * max(1.0, (lines + names + record) / max(1, free))
        return int(lines * self.lines / smaller), int(names * self.names / smaller), int(record / smaller)

    def _stand_in(
        self, view: View, items: Sequence[Item], digest: Digest, texts: Sequence[str], written: Written
    ) -> tuple[MessageSpan, Message]:
        """Write what stands for these neighbours: the record, and the lines and names that nothing else shows."""
        facts = gather(view, items)
        body = "\n\n".join(part for part in (describe(facts), *texts, written.text) if part)
        author, words = _words_before(view, items)
        stand_in = Message(
            role="user",
            blocks=(*words, Text(text=frame(body))),
            metadata={ORIGIN: Origin.SUMMARY, "writer": author},
        )
        span = hide(view, items, facts, stand_in)
        kept = {**span.facts, FACTS: written.facts, DIGEST: dump(digest)}
        return msgspec.structs.replace(span, facts=kept), stand_in


def _words_room(room: int, budget: Budget) -> int:
    """Return the tokens that the words of a model may have; 0 where none writes, or each request is made anew."""
    return _size(WORDS, room) if budget.writer and not budget.step else 0


def _words_before(view: View, items: Sequence[Item]) -> tuple[str, list[Block]]:
    """Return the words that models wrote into stand-ins among these items, and who did: they stay until new ones come.

    The latest ones, as many as one text may have.
    """
    found: list[Block] = []
    author, left = OFFLINE, WORDS[1]
    for message in map(view.read, reversed([item for item in items if item.fold and FACTS in item.facts])):
        words = message.blocks[:-1]
        left -= sum(view.scale.counter.count(text_of((block,))) for block in words)
        if words and (not found or left >= 0):
            author = author if found else str(message.metadata.get("writer"))
            found[:0] = words
    return author, found


def _stretches(view: View, chosen: Sequence[Unit], *, join: bool) -> list[list[Item]]:
    """Return neighbours that get one stand-in: not stand-ins alone, unless they are joined or made smaller."""
    found = [view.items[stretch.start : stretch.stop] for stretch in join_neighbours(chosen)]
    return [items for items in found if join or not all(item.fold for item in items)]


def _rooms(parts: Parts, room: int, free: int) -> tuple[int, int, int]:
    """Return the usual tokens of lines, names and the record: lines get their share of what the rest leaves free."""
    lines, names, record = parts
    sizes = _size(names, room), _size(record, room)
    return _size(lines, max(0, free - sum(sizes))), *sizes


def _size(size: tuple[float, int], room: float) -> int:
    share, most = size
    return min(most, int(share * room))


def _room(view: View, budget: Budget, held: Iterable[int] | None = None) -> int:
    """Count the tokens that messages may have beside the first ones and those that are held, which always stay."""
    task, held = view.task(), held_places(view) if held is None else held
    stay = view.each([view.items[place] for place in held if task is None or place > task])
    return max(0, budget.limit - budget.fixed - _first_tokens(view) - sum(stay))


def _first_tokens(view: View) -> int:
    """Count the tokens of the system messages and the task, which always stay."""
    task = view.task()
    first = view.leading() if task is None else task + 1
    return view.tokens(*view.items[:first]) if first else 0


def _behind_stand_ins(view: View) -> int:
    """Return the position behind the last stand-in, or behind the task."""
    items = view.items
    last = next((place for place in range(len(items) - 1, -1, -1) if items[place].fold), None)
    if last is not None:
        return last + 1
    return _behind_task(view)


def _behind_task(view: View) -> int:
    task = view.task()
    return view.leading() if task is None else task + 1


def _cut(each: Sequence[int], tail: int, keep: int) -> int:
    """Return how many of these stand before the tail: within its tokens, and at least `keep` behind it."""
    place, left = len(each), tail
    while place and left >= each[place - 1]:
        left -= each[place - 1]
        place -= 1
    return max(0, min(place, len(each) - keep))


def _fresh(view: View, each: Sequence[int], room: int) -> int:
    """Count the last items that no model has seen, with the call they answer; 0 where they take half of the room."""
    items = view.items
    place = next((place for place in range(len(items) - 1, -1, -1) if items[place].role == "assistant"), 0)
    count = min(len(each), len(items) - place)
    return count if sum(each[len(each) - count :]) <= HALF * room else 0


def _idle(view: View) -> float:
    """Return the seconds between the model's last answer and the newest message."""
    last = next((item for item in reversed(view.items) if item.role == "assistant" and not item.fold), None)
    return 0.0 if last is None else view.read(view.items[-1]).at - view.read(last).at


def _calls_in_a_row(view: View, items: Sequence[Item], lifetime: float) -> tuple[int, float]:
    """Count the calls before the end of these items that were made without a pause longer than the cache lives.

    At most `MOST_CALLS`, so that a long view costs no more than a short one. Also return the seconds that each took.
    """
    later: float | None = None
    count, seconds = 0, 0.0
    for item in reversed(items):
        if item.fold:
            return min(MOST_CALLS, count + calls_before(item)), seconds / max(1, count)
        at = view.read(item).at
        if count >= MOST_CALLS or (later is not None and later - at > lifetime):
            break
        seconds += 0.0 if later is None else max(0.0, later - at)
        count += item.role == "assistant"
        later = at
    return count, seconds / max(1, count)


# What each option saves and costs, in tokens of fresh input


def _weigh(view: View, budget: Budget, figures: Decision, pace: float, *, must: bool) -> Decision:
    """Add what hiding saves and costs, and leave out a model's text that is dearer than what is left of it."""
    cache, words = budget.cache, figures.words
    # A cold cache is written with this request anyway, so it costs nothing and less is written.
    cold = figures.idle > cache.lifetime

    def weigh(written: int) -> tuple[float, float]:
        saved = figures.hidden - written
        writes = cache.write * (-saved if cold else figures.rest + written)
        return cache.read * saved * figures.calls - min(0.0, writes), max(0.0, writes)

    saves, costs = weigh(figures.written)
    voided = _voided(view, figures.cut, budget) if must or saves > costs else 0
    thought = cache.output * voided
    summary = 0.0
    if words and budget.writer is not None:
        with_words = weigh(min(figures.hidden, figures.written + words))
        summary = _summary_price(budget, figures, pace)
        if with_words[0] - (0.0 if must else with_words[1] + thought) >= summary:
            (saves, costs), thought = with_words, thought + summary
        else:
            words = 0
    return msgspec.structs.replace(
        figures,
        written=min(figures.hidden, figures.written + words),
        words=words,
        voided=voided,
        summary=summary,
        saves=saves,
        costs=costs + thought,
    )


def _worth(gain: float) -> str:
    return f"{'loses' if gain < 0 else 'gains'} {abs(gain):,.0f}"


def _further(figures: Decision) -> str:
    """Say what else a fold does to the reasoning behind it, and whether a model's text is bought."""
    voids = f"; {figures.voided:,} tokens of signed reasoning are void then" if figures.voided else ""
    bought = "is bought" if figures.words else "is too dear"
    return voids + (f"; a model's text for {figures.summary:,.0f} {bought}" if figures.summary else "")


def _summary_price(budget: Budget, figures: Decision, pace: float) -> float:
    """Return the price of a model's text: what it reads and writes, and what calls read until it is there."""
    writer, cache = budget.writer or WriterPrices(), budget.cache
    asked = cache.read * figures.total if writer.shared else writer.input * figures.hidden
    at_once = figures.total > budget.limit or figures.idle > cache.lifetime
    later = 0.0 if at_once else max(1.0, writer.seconds / pace if pace else 1.0)
    waiting = cache.read * (figures.hidden - figures.written) * min(later, figures.calls)
    return asked + writer.output * figures.words + waiting


def _voided(view: View, start: int, budget: Budget) -> int:
    """Count the tokens of signed reasoning from a position on that an edit before it voids."""
    if budget.bound_after is None:
        return 0
    found = 0
    for item in view.items[start:]:
        if item.role == "assistant" and not item.fold and item.last > budget.bound_after:
            signed = [block for block in view.read(item).blocks if isinstance(block, Reasoning)]
            if signed and not view.edited_before(item):
                found += view.tokens_of(view.weigh(Message(role="assistant", blocks=tuple(signed))))
    return found


def _large_outputs(view: View, cut: int) -> list[Item]:
    """Return the items between the last stand-in and a position whose outputs are larger than any placeholder."""
    items = view.items[_behind_stand_ins(view) : cut]
    if not items:
        return []
    found = [item for item in Masker(view, 0, EXEMPT).items if items[0].first <= item.first <= items[-1].last]
    sizes = view.each(found)
    return [item for item, size in zip(found, sizes, strict=True) if size > LARGEST_PLACEHOLDER * len(item.results)]


def _weigh_masks(view: View, budget: Budget, figures: Decision, masked: Sequence[Item], chance: float) -> Decision:
    """Add what masking these saves and costs, where each is asked for again with this chance."""
    if not masked:
        return figures
    cache, sizes = budget.cache, view.each(masked)
    first = view.position(masked[0].seq) or 0
    saved = sum(sizes) - FRAME * len(sizes)
    spoken = [item for item in view.items[first:] if item.calls and not item.fold]
    call = sum(view.each(spoken)) / max(1, len(spoken))
    again = sum(cache.write * size + cache.read * (figures.total - saved) + cache.output * call for size in sizes)
    writes = cache.write * max(0, sum(view.each(view.items[first:])) - saved)
    return msgspec.structs.replace(
        figures,
        batch=sum(sizes),
        outputs=len(sizes),
        batch_saves=cache.read * saved * figures.calls,
        batch_costs=writes + chance * again + cache.output * _voided(view, first, budget),
    )
