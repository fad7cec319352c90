"""How full the window is, and what was folded away, told to the model itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windowsill.session.session import Session

MOST_FOLDS = 20
"""How many folds are listed, the latest ones."""


def status(session: Session) -> str:
    """The state of the window in a few lines."""
    used, limit = session.fill
    view = session.view
    hidden = sum(item.hides for item in view.items if item.fold)
    folds = [fold for fold in session.folds if fold.active]
    lines = [
        f"{used:,} of {limit:,} tokens are used ({used / limit:.0%}); the window has {session.model.window:,}.",
        f"{sum(not item.fold for item in view.items):,} messages are in view, {hidden:,} are folded away.",
    ]
    if folds:
        lines.append(f"{len(folds):,} folds apply{':' if len(folds) <= MOST_FOLDS else f'; the last {MOST_FOLDS}:'}")
        for fold in folds[-MOST_FOLDS:]:
            spans = [span for span in fold.spans if span.active]
            count = sum(span.messages for span in spans)
            where = spans[0].first if spans[0].first == spans[-1].last else f"{spans[0].first} to {spans[-1].last}"
            lines.append(
                f"- {fold.id}: {fold.kind}, {count:,} message{'' if count == 1 else 's'} ({where}), "
                f"saved {fold.saved:,} tokens; {fold.reason}"
            )
    return "\n".join(lines)
