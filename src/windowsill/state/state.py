"""The state of an agent in six layers, as one value."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.errors import InputError
from windowsill.state.element import Part
from windowsill.state.evidence import Evidence
from windowsill.state.memory import Memory
from windowsill.state.runtime import Runtime
from windowsill.state.system import System
from windowsill.state.task import Task
from windowsill.state.work import Work, check_steps

LAYERS = ("system", "task", "runtime", "memory", "evidence", "work")
"""L0 to L5, the most lasting first."""


class State(Part, frozen=True, kw_only=True):
    """Everything that an agent knows besides its conversation."""

    system: System = System()
    task: Task = Task()
    runtime: Runtime = Runtime()
    memory: Memory = Memory()
    evidence: Evidence = Evidence()
    work: Work = Work()

    def to_json(self) -> bytes:
        """As JSON, every field said: a default of a later version must not change what was meant."""
        return msgspec.json.encode(self)

    @staticmethod
    def from_json(data: bytes | str) -> State:
        """A state from JSON; `InputError` names the field that is wrong."""
        try:
            state = msgspec.json.decode(data, type=State)
        except msgspec.ValidationError as error:
            raise InputError(f"this is no state: {error}", remedy="`State.schema()` says what it may hold") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"this is no JSON: {error}", remedy="give a JSON object") from None
        check_steps(state.work.plan.steps)
        return state

    @staticmethod
    def schema() -> dict[str, Any]:
        """The JSON Schema of a state."""
        return msgspec.json.schema(State)
