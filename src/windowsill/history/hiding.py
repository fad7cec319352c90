"""A run of a view's items, hidden behind a stand-in."""

from __future__ import annotations

from collections.abc import Sequence

from windowsill.history.folds import Run
from windowsill.history.marker import Facts, as_facts
from windowsill.history.view import Item, View, sum_weights
from windowsill.messages import Message


def hide(view: View, items: Sequence[Item], facts: Facts, stand_in: Message) -> Run:
    """The span that hides these neighbours and shows `stand_in`; `facts` are what code knows of them."""
    weight = view.weigh(stand_in)
    return Run(
        first=items[0].first,
        last=items[-1].last,
        hides=facts.messages,
        saves=sum_weights(item.weight for item in items) - weight,
        weight=weight,
        facts=as_facts(facts),
    )
