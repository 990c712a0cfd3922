"""What of the findings counts for the exit code: from which severity on, and which are known and ignored."""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.errors import ExitCode
from tieredctl.model.finding_codes import AnyFindingCode
from tieredctl.model.finding_kind import FindingKind, Severity


@dataclass(frozen=True, slots=True)
class Ignored:
    """Findings of one code that are known: those of one subject, or all."""

    code: AnyFindingCode
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`--fail-on` and `--ignore`. It decides an exit code and what is shown to people, never what is done; and it
    tolerates nothing that makes an answer incomplete."""

    fail_on: Severity = Severity.WARNING
    ignored: frozenset[Ignored] = frozenset()

    def names(self, code: AnyFindingCode, subject: str) -> bool:
        """Whether such a finding is to be ignored."""
        return Ignored(code) in self.ignored or Ignored(code, subject) in self.ignored

    def ignores(self, kind: FindingKind, severity: Severity, subject: str) -> bool:
        """Whether such a finding does not count."""
        return bool(self.ignored) and self.names(kind.code, subject) and not kind.makes_incomplete(severity)

    def exit_code(self, severity: Severity, *, is_corruption: bool, makes_incomplete: bool) -> ExitCode:
        """What a finding that is not ignored means to the shell: corruption; what makes the answer incomplete,
        whatever is tolerated; others of the severity from which on they count need attention; the rest is clean."""
        if is_corruption:
            return ExitCode.CORRUPTION
        if makes_incomplete:
            return ExitCode.INCOMPLETE
        return ExitCode.FINDINGS if severity >= self.fail_on else ExitCode.CLEAN


NOTHING_TOLERATED = Tolerance()
