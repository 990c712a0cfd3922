"""What every command that changes something makes: a plan that is shown and confirmed, and how far it came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document


class Plan(Protocol):
    """What a change would do, frozen as it is shown and confirmed. Whoever carries it out does what it says, or stops
    where the world has moved since, and says what moved."""

    def source(self) -> Document:
        """What it is about."""
        ...

    def rows(self) -> list[Document]:
        """What it has, one by one."""
        ...

    def summary(self) -> Document:
        """Its totals."""
        ...

    def findings(self) -> list[Finding]:
        """What was found when it was made."""
        ...


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of what was planned, objects or segments: by this run, and by those before that it went on from."""

    planned: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    """Those that were left alone, as they are no longer what was planned."""
    bytes: int = 0
    """Of what is done."""
    findings: list[Finding] = field(default_factory=list)
    """What was found while it was done, or afterwards."""
    stopped: TieredctlError | None = None
    """Why not all was tried."""

    @property
    def left(self) -> int:
        """How much is left to be done, or to be looked at."""
        return self.failed + self.skipped

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left."""
        return self.stopped is None and not self.left

    @property
    def exit_code(self) -> ExitCode:
        """Without what the findings say."""
        code = ExitCode.CLEAN if self.is_complete else ExitCode.INCOMPLETE
        return code if self.stopped is None else worst(code, self.stopped.exit_code)

    def counts(self) -> Document:
        """For a summary."""
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
        """The code of what stopped it."""
        return None if self.stopped is None else self.stopped.code.value


class PartitionOutcome(Protocol):
    """What became of one partition."""

    @property
    def is_complete(self) -> bool: ...

    def document(self) -> Document:
        """Its plan, with what became of it."""
        ...


_Part = TypeVar("_Part", bound=PartitionOutcome)


@dataclass(slots=True, kw_only=True)
class OutcomeByPartition(Outcome, Generic[_Part]):
    """What became of a plan of several partitions."""

    partitions: list[_Part] = field(default_factory=list)

    @property
    def left(self) -> int:
        return sum(not one.is_complete for one in self.partitions)

    def rows(self) -> list[Document]:
        """One for each partition."""
        return [one.document() for one in self.partitions]


def totals(rows: Sequence[Document], *names: str) -> Document:
    """The sums of some fields of rows."""
    return {name: sum(row[name] for row in rows) for name in names}


def demand_same_cluster(found: str | None, named: str | None) -> None:
    """Raises TieredctlError `another-cluster` where a change is about another cluster than the one that was named."""
    if None not in (found, named) and named != found:
        raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, f"This is about cluster {found}, not {named}.")
