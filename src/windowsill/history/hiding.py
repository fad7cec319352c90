"""Spans that hide a run of a view's items, or one block of a message, behind a stand-in."""

from __future__ import annotations

from collections.abc import Sequence

from windowsill.history.folds import Part, Run
from windowsill.history.marker import Facts, as_facts
from windowsill.history.survey import Survey
from windowsill.history.view import Item, View, sum_weights
from windowsill.messages import Block, Message
from windowsill.tokens import Weight


def hide(view: View, items: Sequence[Item], facts: Facts, stand_in: Message) -> Run:
    """The span that hides these neighbours and shows `stand_in`; `facts` are what code knows of them."""
    return _run(view, (items[0].first, items[-1].last), sum_weights(item.weight for item in items), facts, stand_in)


def hide_between(view: View, known: Survey, start: int, stop: int, facts: Facts, stand_in: Message) -> Run:
    """The same for the items of a view between two positions."""
    ends = (view.items[start].first, view.items[stop - 1].last)
    return _run(view, ends, known.weight(start, stop), facts, stand_in)


def _run(view: View, ends: tuple[int, int], hidden: Weight, facts: Facts, stand_in: Message) -> Run:
    weight = view.weigh(stand_in)
    return Run(
        first=ends[0],
        last=ends[1],
        hides=facts.messages,
        saves=hidden - weight,
        weight=weight,
        facts=as_facts(facts),
    )


def replace_block(view: View, item: Item, number: int, shown: Block, shorter: Block) -> Part:
    """The span that shows `shorter` in the place of `shown`; what it saves is counted from the original block."""
    taken = next((cut.saves for cut in item.cuts if cut.block == number), Weight())
    saves = view.weigh(Message(role="user", blocks=(shown,))) - view.weigh(Message(role="user", blocks=(shorter,)))
    return Part(message=item.seq, block=number, saves=taken + saves)
