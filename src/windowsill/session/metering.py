"""Writes folds, and tells those who measure what they saved."""

from __future__ import annotations

from windowsill import telemetry
from windowsill.history.entries import Entry
from windowsill.history.folds import Proposal, touched
from windowsill.session.ledger import Ledger
from windowsill.telemetry import names


def commit_fold(ledger: Ledger, proposal: Proposal, before: int, after: int) -> Entry:
    """Write a fold that was checked; `before` and `after` are the tokens of the view."""
    with telemetry.span("fold", session=ledger.session, kind=proposal.kind, strategy=proposal.strategy) as span:
        entry = ledger.commit(lambda draft: draft.fold(proposal, before, after))
        if span.live:
            span.set(fold=entry.id, messages=touched(proposal.spans), tokens_before=before, tokens_after=after)
    telemetry.count(names.FOLDS, kind=proposal.kind, strategy=proposal.strategy)
    telemetry.record(names.FOLD_TOKENS_SAVED, before - after, kind=proposal.kind, strategy=proposal.strategy)
    return entry
