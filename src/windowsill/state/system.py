"""L0: who the agent is, and what it must never do. Does not change while a session lasts."""

from __future__ import annotations

from typing import Literal, TypeAlias

from windowsill.state.element import Count, Element, Part, Seconds, demand

Category: TypeAlias = Literal["safety", "privacy", "compliance", "ethics"]
Enforcement: TypeAlias = Literal["hard", "soft"]


class Role(Part, frozen=True, kw_only=True):
    """What the agent is."""

    name: str = "AI Coding Assistant"
    description: str = "Helps with software development tasks"
    capabilities: tuple[str, ...] = ("Code generation", "Code review", "Debugging", "Documentation")
    limitations: tuple[str, ...] = (
        "Cannot access external APIs without permission",
        "Cannot modify system files",
        "Cannot execute privileged commands",
    )


class Policy(Element, frozen=True, kw_only=True):
    """A rule. A hard one is enforced where code can do that, a soft one is reported."""

    rule: str
    category: Category = "safety"
    priority: int = 50
    enforcement: Enforcement = "hard"

    def __post_init__(self) -> None:
        demand(bool(self.rule.strip()), f"policy {self.id!r} has no rule", "say in one sentence what it demands")


POLICIES = (
    Policy(id="pol-001", category="safety", rule="Never expose sensitive credentials or secrets", priority=100),
    Policy(id="pol-002", category="safety", rule="Always validate user input before execution", priority=90),
    Policy(id="pol-003", category="ethics", rule="Respect user privacy and data protection laws", priority=95),
    Policy(
        id="pol-004",
        category="compliance",
        rule="Maintain audit logs for all critical operations",
        priority=80,
        enforcement="soft",
    ),
)


class Constraints(Part, frozen=True, kw_only=True):
    """Limits on everything the agent does; `None` is no limit."""

    max_seconds: Seconds | None = 3_600.0
    max_tool_calls: Count | None = 100
    max_file_bytes: Count | None = 10 * 1024 * 1024
    max_cost: Seconds | None = None
    """Dollars."""
    allowed_domains: tuple[str, ...] | None = None
    """The only hosts a tool may reach; `None` is any."""
    forbidden_paths: tuple[str, ...] = ("/etc", "/sys", "/proc", "~/.ssh")


class Audit(Part, frozen=True, kw_only=True):
    """What has to be written down, and what somebody has to allow first."""

    log_tool_calls: bool = True
    log_decisions: bool = True
    require_approval: tuple[str, ...] = ("delete", "deploy")
    """Categories or names of tools that are run only after somebody said yes."""
    retention_days: Count = 90


class System(Part, frozen=True, kw_only=True):
    """L0."""

    role: Role = Role()
    policies: tuple[Policy, ...] = POLICIES
    constraints: Constraints = Constraints()
    audit: Audit = Audit()
