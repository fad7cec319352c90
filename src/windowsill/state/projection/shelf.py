"""The tools of a projection, with all that does not depend on a state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from windowsill.errors import InputError
from windowsill.messages import Tool
from windowsill.state.projection import known
from windowsill.state.projection.categories import category_of
from windowsill.state.projection.forms import Form
from windowsill.state.projection.grouping import Group
from windowsill.state.projection.narrowing import Narrow
from windowsill.state.projection.offered import Offered
from windowsill.state.projection.refusal import named
from windowsill.state.projection.schemas import narrowed
from windowsill.state.runtime import Environment
from windowsill.tokens.definitions import json_text


class Weigher:
    """Counts the tokens of definitions, once for each tool object."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._found: dict[int, tuple[Tool, int]] = {}

    def __call__(self, tool: Tool) -> int:
        """The tokens of a definition as compact JSON."""
        # The tool is kept beside its tokens: as long as it lives, nothing else has its id.
        _, tokens = self._found.get(id(tool)) or self._found.setdefault(id(tool), (tool, self._count(json_text(tool))))
        return tokens

    def forget_all_but(self, tools: Iterable[Tool]) -> None:
        """Let go of tools that are offered no more."""
        self._found = {id(tool): self._found[id(tool)] for tool in tools}


class Shelf:
    """The tools on offer: their places, groups, ranks, and their forms in each environment."""

    def __init__(
        self,
        offered: Iterable[Offered | Tool],
        *,
        categories: Collection[str],
        rules: Sequence[Narrow],
        weigh: Weigher,
    ) -> None:
        self.offered = tuple(each if isinstance(each, Offered) else Offered(each) for each in offered)
        self.names = tuple(each.name for each in self.offered)
        self.places = _places(self.names)
        self.ranked = sorted(range(len(self.names)), key=lambda place: -self.offered[place].priority)
        """Places by priority, the highest first; equal ones as they were given."""
        groups: dict[Group, int] = {}
        self.group_of = tuple(
            groups.setdefault(Group(category_of(each, categories), each.permissions, each.environments), len(groups))
            for each in self.offered
        )
        self.groups = tuple(groups)
        plain = [Form(each.tool, weigh(each.tool)) for each in self.offered]
        self._check(rules)
        self.forms = {each: self._narrowed(plain, rules, each, weigh) for each in known.ENVIRONMENTS}
        self.definitions = {each: tuple(form.tool for form in forms) for each, forms in self.forms.items()}
        self.totals = {each: sum(form.tokens for form in forms) for each, forms in self.forms.items()}
        weigh.forget_all_but(tool for tools in self.definitions.values() for tool in tools)

    def _check(self, rules: Sequence[Narrow]) -> None:
        for rule in rules:
            if rule.tool not in self.places:
                raise InputError(
                    f"a rule narrows {rule.tool!r}, which is not offered",
                    remedy=f"offered are {named(self.names)}",
                )

    def _narrowed(
        self, plain: Sequence[Form], rules: Sequence[Narrow], environment: Environment, weigh: Weigher
    ) -> tuple[Form, ...]:
        forms = list(plain)
        here = [rule for rule in rules if environment in rule.environments]
        for name in dict.fromkeys(rule.tool for rule in here):
            place = self.places[name]
            tool, demands = narrowed(
                self.offered[place].tool, [rule for rule in here if rule.tool == name], environment
            )
            forms[place] = Form(tool, weigh(tool), demands)
        return tuple(forms)


def _places(names: Sequence[str]) -> dict[str, int]:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"the tool {twice[0]!r} is offered twice", remedy="offer each tool once, under its own name")
    return {name: place for place, name in enumerate(names)}
