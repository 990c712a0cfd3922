"""How commands show what they found, and those that change something what they plan, how far they are, and the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import AllFindings, FailOn, Ignore, Limit, MetricsFile, Output, ProgressStyle, Quiet
from tieredctl.cli.outcome import finish, say, say_error
from tieredctl.cli.output import Item, Listing, OutputFormat
from tieredctl.cli.progress import LinesApart, ProgressMode
from tieredctl.errors import ExitCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.printable import printable
from tieredctl.model.tolerance import NOTHING_TOLERATED, Tolerance

if TYPE_CHECKING:
    from tieredctl.model.result_row import ResultRow
    from tieredctl.ops.change import Outcome, Plan

_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Talk(OptionGroup):
    """What a command that takes long says besides its answer."""

    quiet: Quiet = False
    progress: ProgressStyle = ProgressMode.AUTO


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class View(OptionGroup):
    """How output was requested."""

    output: Output = OutputFormat.TABLE
    quiet: Quiet = False
    metrics_file: MetricsFile = None

    @property
    def tolerance(self) -> Tolerance:
        """What of the findings does not count."""
        return NOTHING_TOLERATED

    @property
    def is_table(self) -> bool:
        """Whether it is for people to read."""
        return self.output.is_table

    def say(self, *sentences: str) -> None:
        """On stderr, a line each, unless that is to be quiet."""
        for sentence in () if self.quiet else sentences:
            say(printable(sentence))

    def plan(
        self,
        kind: str,
        plan: Plan,
        row: type[ResultRow],
        code: ExitCode = ExitCode.CLEAN,
        advice: Iterable[str] = (),
        **texts: Callable[[Item], object],
    ) -> ExitCode:
        """Shows a plan that is not applied; then gives some advice. `texts` as in `columns_of`."""
        from tieredctl.cli.result_listing import result_listing

        summary = plan.summary() | {"applied": False}
        ended = self.show(
            result_listing(kind, plan.source(), row, plan.rows(), summary, **texts), plan.findings(), code
        )
        self.say(*advice)
        return ended

    def end(
        self, listing: Listing, outcome: Outcome, findings: Iterable[Finding] = (), advice: Iterable[str] = ()
    ) -> ExitCode:
        """Shows what was done, some advice, and what stopped it; the exit code is the gravest of all that
        happened. `findings` are those that were there before."""
        code = self.show(listing, [*findings, *outcome.findings], outcome.exit_code)
        self.say(*advice)
        if outcome.stopped is not None:
            say_error(outcome.stopped)
        return code

    def show(
        self,
        listing: Listing,
        findings: Sequence[Finding] = (),
        code: ExitCode | Callable[[], ExitCode] = ExitCode.CLEAN,
        sentences: Iterable[str] = (),
        listed: Sequence[Finding] = (),
    ) -> ExitCode:
        """Shows anything; gives the gravest of what its findings say and of `code`, as `finish` does."""
        return finish(
            *(listing, self.output, findings),
            quiet=self.quiet,
            listed=listed,
            besides=code,
            sentences=sentences,
            tolerance=self.tolerance,
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProgressView(View):
    """The view of a command that takes long."""

    progress: ProgressStyle = ProgressMode.AUTO

    def teller(self, sentence: Callable[[_Done], str]) -> Callable[[_Done], None]:
        """Says now and then how far it is."""
        if self.quiet or self.progress is ProgressMode.NONE:
            return lambda _done: None
        lines = LinesApart()

        def tell(done: _Done) -> None:
            count = getattr(done, "done", 0)
            lines.note(count)
            if lines.is_due():
                say(printable(lines.timed(sentence(done), count)))

        return tell


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ToleranceOptions(OptionGroup):
    """What of the findings does not count for the exit code."""

    fail_on: FailOn = None
    ignore: Ignore = None

    @property
    def tolerance(self) -> Tolerance:
        """The tolerance as a value."""
        return Tolerance(Severity.WARNING if self.fail_on is None else self.fail_on, frozenset(self.ignore or ()))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FindingsView(ProgressView):
    """How the output of a command that finds something was requested, and what of that is tolerated."""

    fail_on: FailOn = None
    ignore: Ignore = None

    @property
    def tolerance(self) -> Tolerance:
        return ToleranceOptions(self.fail_on, self.ignore).tolerance


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FindingListView(FindingsView):
    """The view of a command whose answer is its findings."""

    limit: Limit = None
    every: AllFindings = False

    def show_findings(
        self,
        kind: str,
        source: Mapping[str, Any],
        findings: Sequence[Finding],
        summary: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
        headline: str,
    ) -> ExitCode:
        """Shows findings as the items of a listing, to people in groups and with a headline after them; gives what
        they say."""
        listing = self.finding_listing(kind, source, findings, summary)
        code = replace(self, quiet=True).show(listing, findings)
        if self.is_table:
            self.say(headline)
        if self.output not in (OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML):
            from tieredctl.cli.findings.finding_report import FindingGroups, ignored_sentences

            self.say(*ignored_sentences(FindingGroups.of(findings, 0, self.tolerance)))
        return code

    def finding_listing(
        self,
        kind: str,
        source: Mapping[str, Any],
        findings: Sequence[Finding],
        summary: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    ) -> Listing:
        """Findings as the items of a listing."""
        from tieredctl.cli.findings.finding_report import FindingReport
        from tieredctl.cli.findings.findings_table import FINDING_COLUMNS, FINDING_FIELDS, FindingDocuments

        report = FindingReport(self.limit, self.every, self.tolerance, "--limit N and --all show more")
        written = partial(report.write, findings)
        items = FindingDocuments(findings)
        return Listing(kind, source, items, FINDING_COLUMNS, summary, FINDING_FIELDS, written)
