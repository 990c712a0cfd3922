"""What every command that changes something produces: a plan that is shown and confirmed, and an outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar, final

from tieredctl.errors import ExitCode, TieredctlError, worst
from tieredctl.model.findings import Finding
from tieredctl.model.result_row import ResultRow, camel_case
from tieredctl.ops.documents import Document


class Plan(Protocol):
    """What a change would do, frozen as it is shown and confirmed. Applying it does exactly that, or stops if
    something has changed since, and names the change."""

    def source(self) -> Document:
        """What it is about."""
        ...

    def rows(self) -> Sequence[ResultRow]:
        """The plan's parts, one by one."""
        ...

    def summary(self) -> Document:
        """The plan's totals."""
        ...

    def findings(self) -> list[Finding]:
        """What was found while planning."""
        ...


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of the planned objects or segments: by this run, and by the earlier ones that it resumes.

    What failed or was skipped is left; a kind of outcome adds what else is, as `others_left`.
    """

    skipped_are_settled: ClassVar[bool] = False
    """Whether nothing is left to do about what was skipped."""

    planned: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    """Left alone, since they are no longer as planned."""
    bytes: int = 0
    """The bytes of what is done."""
    findings: list[Finding] = field(default_factory=list)
    """What was found while applying, or afterwards."""
    stopped: TieredctlError | None = None
    """Why it ended early."""

    @property
    @final
    def left(self) -> int:
        """How many are left to do, or need attention."""
        return self.failed + (0 if self.skipped_are_settled else self.skipped) + self.others_left

    @property
    def others_left(self) -> int:
        """How many of them neither failed nor were skipped."""
        return 0

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left."""
        return self.stopped is None and not self.left

    @property
    def exit_code(self) -> ExitCode:
        """Findings not considered."""
        code = ExitCode.CLEAN if self.is_complete else ExitCode.INCOMPLETE
        return code if self.stopped is None else worst(code, self.stopped.exit_code)

    def counts(self) -> Document:
        """The counts for a summary."""
        return {
            "planned": self.planned,
            "done": self.done,
            "failed": self.failed,
            "skipped": self.skipped,
            "bytes": self.bytes,
            "stopped": self.stopped_by,
        }

    @property
    def stopped_by(self) -> str | None:
        """The code of the error that stopped it."""
        return None if self.stopped is None else self.stopped.code.value


def stopped_twice(first: TieredctlError | None, second: TieredctlError) -> TieredctlError:
    """What stopped a run, and what its last look met or found after that, as one error: with the first's code and the
    second's hint. What is met twice is said once."""
    if first is None or first.message == second.message:
        return first or second
    return TieredctlError(first.code, f"{first.sentence} {second.message}", hint=second.hint)


class PartitionOutcome(Protocol):
    """What became of one partition."""

    @property
    def is_complete(self) -> bool: ...


_Part = TypeVar("_Part", bound=PartitionOutcome)


@dataclass(slots=True, kw_only=True)
class OutcomeByPartition(Outcome, Generic[_Part]):
    """What became of a plan of several partitions."""

    partitions: list[_Part] = field(default_factory=list)

    @property
    def others_left(self) -> int:
        return sum(not one.is_complete for one in self.partitions)


def totals(rows: Sequence[ResultRow], *attributes: str) -> Document:
    """The sums of some attributes of rows, by their JSON names."""
    return {camel_case(name): sum(getattr(row, name) for row in rows) for name in attributes}
