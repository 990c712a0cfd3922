"""`--metrics-file`: the figures of a run, for the alerting to read. They are written when it is known how the run ends:
one that fails says so, instead of leaving what an earlier one said. Commands and Spark jobs alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tieredctl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from tieredctl.model.findings import Finding


@dataclass(slots=True)
class RunMetrics:
    """What a run is to leave; nothing where no file was named."""

    file: Path | None = None
    command: str = ""
    summary: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[Finding] = ()

    def ask(self, file: Path | None, command: str) -> None:
        """Names the file, and the command that it is of. Raises TieredctlError now, before long work, where it could
        not be written."""
        if file is not None:
            from tieredctl.model.file_beginnings import METRICS
            from tieredctl.process.replaced_file import demand_replaceable

            demand_replaceable(file, force=False, own=METRICS)
            self.file, self.command = file, command

    def are_of(self, command: str) -> bool:
        """Whether they are of this command, not of one that runs another."""
        return self.file is not None and self.command == command

    def note(self, summary: Mapping[str, Any], findings: Sequence[Finding]) -> None:
        """What the command answered."""
        self.summary, self.findings = summary, findings

    def write(self, code: int) -> None:
        """Writes the metrics file, with the exit code of the process. Raises TieredctlError."""
        if self.file is None:
            return
        from tieredctl.process.metrics_text import metrics_text, write_metrics

        write_metrics(self.file, metrics_text(self.command, self.summary, self.findings, ExitCode(code)))


run_metrics: ContextVar[RunMetrics] = ContextVar("run_metrics")
"""The metrics of the command line, or the job, that runs."""
