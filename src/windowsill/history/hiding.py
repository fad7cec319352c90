"""Spans that hide a run of a view's items, or one block of a message, behind a stand-in."""

from __future__ import annotations

from collections.abc import Sequence

from windowsill.history.folds import Part, Run
from windowsill.history.marker import Facts, as_facts
from windowsill.history.view import Item, View, sum_weights
from windowsill.messages import Block, Message
from windowsill.tokens import Weight


def hide(view: View, items: Sequence[Item], facts: Facts, stand_in: Message) -> Run:
    """Return the span that hides these neighbours and shows `stand_in`; `facts` are what code knows of them."""
    weight = view.weigh(stand_in)
    return Run(
        first=items[0].first,
        last=items[-1].last,
        hides=facts.messages,
        saves=sum_weights(item.weight for item in items) - weight,
        weight=weight,
        facts=as_facts(facts),
    )


def replace_block(view: View, item: Item, number: int, shown: Block, shorter: Block) -> Part:
    """The span that shows `shorter` in the place of `shown`; what it saves is counted from the original block."""
    taken = next((cut.saves for cut in item.cuts if cut.block == number), Weight())
    saves = view.weigh(Message(role="user", blocks=(shown,))) - view.weigh(Message(role="user", blocks=(shorter,)))
    return Part(message=item.seq, block=number, saves=taken + saves)
