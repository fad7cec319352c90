"""Decides whether a call may be run, after the projection let it through."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import msgspec

from windowsill.errors import InputError
from windowsill.state.policies.approval import WAIT, Approval, Approve, ask
from windowsill.state.policies.bounds import Bounds
from windowsill.state.policies.limits import reached
from windowsill.state.policies.verdict import Outcome, Verdict
from windowsill.state.runtime import Resources
from windowsill.state.state import State
from windowsill.state.system import System
from windowsill.state.tools.arguments import Refusal, list_names
from windowsill.state.tools.projection import Offered, category_of, first_word

Check: TypeAlias = Callable[[Offered, Mapping[str, Any]], str | None]
"""Says how a call goes against a policy; `None` when it does not."""


class Guard:
    """Enforces the policies, constraints and approvals of a system."""

    def __init__(
        self,
        system: System,
        *,
        base: str | os.PathLike[str],
        approve: Approve | None = None,
        wait: float | None = WAIT,
        checks: Mapping[str, Check] | None = None,
    ) -> None:
        """Set up.

        `base` is where relative paths of calls begin. `approve` is asked about calls that need somebody's consent, for
        `wait` seconds at most; `None` waits as long as it takes. `checks` maps ids of policies to functions that check
        a call: against a hard policy it is refused, against a soft one reported.
        """
        policies = {policy.id: policy for policy in system.policies}
        unknown = [id for id in checks or {} if id not in policies]
        if unknown:
            raise InputError(f"there is no policy {unknown[0]!r} to check", remedy=f"there are {list_names(policies)}")
        self._limits = system.constraints
        self._bounds = Bounds(system.constraints, base=base)
        self._consent = {each.casefold() for each in system.audit.require_approval}
        self._approve, self._wait = approve, wait
        self._checks = [(policies[id], check) for id, check in (checks or {}).items()]

    async def check(
        self, offered: Offered, arguments: Mapping[str, Any], state: State, *, used: Resources | None = None
    ) -> Verdict:
        """Whether a call may be run, somebody having been asked where that is needed.

        The state says what was used before this call, and the limits of its task; `used` is more recent.
        """
        verdict = self.judge(offered, arguments, state, used=used)
        if verdict.outcome != "needs-approval":
            return verdict
        if self._approve is None:
            return _unapproved(offered, verdict, "it needs approval, and there is nobody to give it")
        try:
            shown = copy.deepcopy(dict(arguments))
        except RecursionError:
            return _unapproved(offered, verdict, "its arguments are nested too deep to be shown to anybody")
        why = f"{self._approval(offered)} is in require_approval"
        asked = Approval(tool=offered.name, category=category_of(offered), arguments=shown, why=why)
        why_not = await ask(self._approve, asked, self._wait)
        if why_not is not None:
            return _unapproved(offered, verdict, why_not)
        return msgspec.structs.replace(verdict, outcome="allowed", approved=True)

    def check_sync(
        self, offered: Offered, arguments: Mapping[str, Any], state: State, *, used: Resources | None = None
    ) -> Verdict:
        """`check` for code without an event loop, or inside one, which then stands still until there is an answer."""
        import anyio  # noqa: PLC0415 - only who asks needs it

        verdict = self.judge(offered, arguments, state, used=used)
        if verdict.outcome != "needs-approval":
            return verdict
        # A thread of its own: this one may have an event loop that cannot be entered again.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(anyio.run, partial(self.check, offered, arguments, state, used=used)).result()

    def judge(
        self, offered: Offered, arguments: Mapping[str, Any], state: State, *, used: Resources | None = None
    ) -> Verdict:
        """The same without asking anybody: the outcome may be that approval is needed."""
        for rule, why, remedy in reached(self._limits, state.task.limits, used or state.runtime.resources):
            return _refused(offered, rule, why, remedy)
        for refusal in self._bounds.crossings(offered, arguments):
            return Verdict(outcome="refused", refusal=refusal)
        warnings: list[str] = []
        for policy, check in self._checks:
            against = _found(check, offered, arguments)
            if against is None:
                continue
            if policy.enforcement == "hard":
                return _refused(offered, policy.id, against, f"keep to the policy: {policy.rule}")
            warnings.append(" ".join(f"{policy.id} ({policy.rule}): {against}".split()))
        outcome: Outcome = "needs-approval" if self._approval(offered) else "allowed"
        return Verdict(outcome=outcome, warnings=tuple(warnings))

    def _approval(self, offered: Offered) -> str | None:
        """The name or category by which a call needs somebody's consent."""
        names = [offered.name, offered.category, first_word(offered.category or offered.name), category_of(offered)]
        return next((each for each in names if each.casefold() in self._consent), None)


def _found(check: Check, offered: Offered, arguments: Mapping[str, Any]) -> str | None:
    try:
        return check(offered, arguments)
    except Exception as error:  # noqa: BLE001 - a check that fails has not found a call to be in order
        return f"the check of the policy failed with {type(error).__name__}"


def _refused(offered: Offered, rule: str, why: str, remedy: str) -> Verdict:
    return Verdict(outcome="refused", refusal=Refusal(tool=offered.name, rule=rule, why=why, remedy=remedy))


def _unapproved(offered: Offered, verdict: Verdict, why: str) -> Verdict:
    remedy = "go on without it, and tell the user what you would have done"
    return msgspec.structs.replace(_refused(offered, "require_approval", why, remedy), warnings=verdict.warnings)
