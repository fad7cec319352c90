"""Check whether a task is done: its criteria, by validators or by what tools have shown, and the form of its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from windowsill import schemas, user_function
from windowsill.errors import InputError
from windowsill.messages import Text
from windowsill.session.session import Session
from windowsill.state.changes import Change, Put
from windowsill.state.layers import Criterion, Task

Verdict: TypeAlias = bool | str | None
Validator: TypeAlias = Callable[[str], Verdict | Awaitable[Verdict]]
"""Gets the result's text; returns `True` or `None` when the criterion holds, `False` or what is missing when not."""

MAX_CHARACTERS = 500
"""Characters of one complaint."""


LEAST_EVIDENCE = 8
"""Characters of a quotation: shorter ones stand in every text. A whole line of a result may be shorter."""

CHANGES = frozenset({"write", "modify", "delete", "deploy"})
"""Categories whose calls make older results stale, and whose own results show nothing but that they ran."""


class Claim(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The word of a model about a criterion."""

    criterion: str
    met: bool
    evidence: str = ""


class Judgement(msgspec.Struct, frozen=True):
    """The criteria of a task with their verdicts, and what is wrong with the form of its result."""

    criteria: tuple[Criterion, ...] = ()
    fault: str = ""
    enough: bool = False
    """The share of criteria that are met is what the task asks for, though some are not."""

    @property
    def missing(self) -> list[str]:
        """The criteria that were found not to hold."""
        judged = () if self.enough else self.criteria
        unmet = [each.evidence or each.description for each in judged if each.status == "unmet"]
        return [*unmet, self.fault] if self.fault else unmet

    @property
    def unknown(self) -> list[Criterion]:
        """The criteria that nothing has shown to hold."""
        return [] if self.enough else [each for each in self.criteria if each.status == "unknown"]

    def changes(self, task: Task) -> list[Change]:
        """Return the changes of the state that record the verdicts."""
        return [Put("task.success_criteria", each) for each in self.criteria if each not in task.success_criteria]


async def judge(
    task: Task,
    validators: Mapping[str, Validator],
    result: str,
    claims: Sequence[Claim] = (),
    results: Sequence[tuple[str, str]] = (),
) -> Judgement:
    """Judge each criterion: by its validator, or by a claim whose evidence stands in one of the tool results.

    `results` are the names of tools and their words. The criterion of a validator that fails does not hold.
    """
    judged = []
    for number, criterion in enumerate(task.success_criteria, start=1):
        names = (criterion.id, criterion.description, str(number))
        validator = validators.get(criterion.id) or validators.get(criterion.description)
        claim = next((each for each in claims if each.criterion.strip() in names), None)
        if validator is not None:
            complaint = (await _validate(validator, criterion, result))[:MAX_CHARACTERS]
            verdict = ("unmet" if complaint else "met", complaint, "validator")
        elif claim is None:
            verdict = ("unknown", "", "")
        elif not claim.met:
            words = f"{criterion.description}: {claim.evidence}" if claim.evidence else criterion.description
            verdict = ("unmet", words[:MAX_CHARACTERS], "model")
        else:
            tool = _source_of(claim.evidence, results)
            verdict = ("met", claim.evidence[:MAX_CHARACTERS], tool) if tool else ("unknown", "", "")
        status, evidence, checked_by = verdict
        judged.append(msgspec.structs.replace(criterion, status=status, evidence=evidence, checked_by=checked_by))
    least, met = task.limits.min_quality, sum(each.status == "met" for each in judged)
    enough = least is not None and bool(judged) and met >= least * len(judged)
    return Judgement(tuple(judged), _format_fault(task, result)[:MAX_CHARACTERS], enough)


def results_in_view(session: Session, goal: str, category: Callable[[str], str]) -> list[tuple[str, str]]:
    """List the tool results of a task that evidence may be quoted from, the latest first: tool and words.

    Those before the last change are stale. `category` gives that of a tool; empty for one that shows nothing new.
    """
    found: list[tuple[str, str]] = []
    for item in reversed(session.view.items):
        message = session.view.read(item)
        if not message.results and message.role == "user" and message.text[: len(goal)] == goal:
            break
        for result in message.results:
            kind = category(result.name or "")
            if kind in CHANGES:
                return found
            if kind and not result.is_error:
                found.append((result.name or "", "\n".join(b.text for b in result.content if isinstance(b, Text))))
    return found


def _source_of(evidence: str, results: Sequence[tuple[str, str]]) -> str:
    """Return the tool whose result contains these words; empty when none does."""
    words = " ".join(evidence.split()).strip("`\"'")
    for tool, text in results:
        if words and (
            (len(words) >= LEAST_EVIDENCE and words in " ".join(text.split()))
            or any(words == line.strip() for line in text.splitlines())
        ):
            return tool
    return ""


def check_validators(criteria: Sequence[Criterion], validators: Mapping[str, Validator]) -> None:
    """Raise `InputError` for a validator whose criterion the task does not have."""
    known = {name for each in criteria for name in (each.id, each.description)}
    for name in validators:
        if name not in known:
            listed = ", ".join(repr(each.description) for each in criteria) or "none"
            raise InputError(f"there is no criterion {name!r} to validate", remedy=f"the task has {listed}")


def check_output_schema(task: Task) -> None:
    """Raise `InputError` for an output schema that is not a JSON Schema."""
    schema = task.output_format.schema
    if schema is None:
        return
    try:
        schemas.validator(schema).check_schema(schema)
    except schemas.unreadable() as error:
        what = f"task.output_format.schema is not a JSON Schema: {schemas.fault_of(error)}"
        raise InputError(what, remedy="mend it, or take it out") from None


async def _validate(validator: Validator, criterion: Criterion, result: str) -> str:
    try:
        verdict = await user_function.call(validator, result)
    except Exception as error:  # noqa: BLE001 - a check that breaks has not found the criterion to hold
        return f"{criterion.description}: its check failed ({type(error).__name__}: {error})"
    if verdict is None or verdict is True:
        return ""
    return criterion.description if verdict is False else f"{criterion.description}: {verdict}"


def _format_fault(task: Task, result: str) -> str:
    """Describe what is wrong with the format of a result; empty when it is right or the task states none."""
    wanted = task.output_format
    if wanted.type != "json" and wanted.schema is None:
        return ""
    try:
        value = msgspec.json.decode(_without_fence(result))
    except msgspec.DecodeError as error:
        return f"the result has to be JSON and nothing else: {error}"
    if wanted.schema is None:
        return ""
    try:
        found = schemas.best_match(schemas.validator(wanted.schema).iter_errors(value))
    except Exception as broken:  # noqa: BLE001 - whatever is wrong with a schema, the result has not been found to fit
        return f"the schema of the result cannot be used ({type(broken).__name__}: {broken})"
    return "" if found is None else f"the result does not fit its schema at {found.json_path}: {found.message}"


def _without_fence(text: str) -> str:
    lines = text.strip().splitlines()
    fenced = len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text
