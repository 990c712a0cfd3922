"""How commands show what they found, and those that change something what they plan, how far they are, and the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import MetricsFile, Output, Quiet
from tieredctl.cli.outcome import finish, say, say_error
from tieredctl.cli.output import Listing, OutputFormat, TableColumn, printable
from tieredctl.cli.progress import LinesApart
from tieredctl.errors import ExitCode, worst
from tieredctl.model.findings import Finding

if TYPE_CHECKING:
    from tieredctl.ops.change import Outcome, Plan

_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True)
class View(OptionGroup):
    """How output was requested."""

    output: Output = OutputFormat.TABLE
    quiet: Quiet = False
    metrics_file: MetricsFile = None

    @property
    def is_table(self) -> bool:
        """Whether it is for people to read."""
        return self.output.is_table

    def say(self, *sentences: str) -> None:
        """On stderr, a line each, unless that is to be quiet."""
        for sentence in () if self.quiet else sentences:
            say(printable(sentence))

    def teller(self, sentence: Callable[[_Done], str]) -> Callable[[_Done], None]:
        """Says now and then how far it is."""
        lines = LinesApart()

        def tell(done: _Done) -> None:
            if not self.quiet and lines.is_due():
                say(printable(sentence(done)))

        return tell

    def plan(
        self,
        kind: str,
        plan: Plan,
        columns: Sequence[TableColumn],
        code: ExitCode = ExitCode.CLEAN,
        advice: Iterable[str] = (),
    ) -> ExitCode:
        """Shows a plan that is not applied; then gives some advice."""
        listing = Listing(kind, plan.source(), plan.rows(), columns, plan.summary() | {"applied": False})
        code = worst(code, self.show(listing, plan.findings(), code))
        self.say(*advice)
        return code

    def end(
        self, listing: Listing, outcome: Outcome, findings: Iterable[Finding] = (), advice: Iterable[str] = ()
    ) -> ExitCode:
        """Shows what was done, some advice, and what stopped it; the exit code is the gravest of all that
        happened. `findings` are those that were there before."""
        code = outcome.exit_code
        code = worst(code, self.show(listing, [*findings, *outcome.findings], code))
        self.say(*advice)
        if outcome.stopped is not None:
            say_error(outcome.stopped)
        return code

    def show(
        self,
        listing: Listing,
        findings: Sequence[Finding] = (),
        code: ExitCode = ExitCode.CLEAN,
        sentences: Iterable[str] = (),
    ) -> ExitCode:
        """Shows anything; gives what its findings say, else `code`. Says sentences as `finish` does."""
        return finish(
            *(listing, self.output, findings),
            quiet=self.quiet,
            metrics_file=self.metrics_file,
            otherwise=code,
            sentences=sentences,
        )
