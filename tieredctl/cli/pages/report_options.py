"""`--report FILE`: whether what a command found becomes a page too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import ReportFile
from tieredctl.errors import ExitCode

if TYPE_CHECKING:
    from tieredctl.cli.pages.report import Reported


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReportOptions(OptionGroup):
    """The file of the page, if one is wanted."""

    report: ReportFile = None

    def demand_possible(self) -> None:
        """Before long work. Raises TieredctlError where no page could be made or written."""
        if self.report is not None:
            from tieredctl.wiring.reports import demand_possible

            demand_possible(self.report)

    def write(self, code: ExitCode, reported: Callable[[], Reported]) -> ExitCode:
        """Writes the page, if one is wanted; gives the exit code. Raises TieredctlError."""
        if self.report is not None:
            from tieredctl.cli.pages.report import report_page
            from tieredctl.wiring.reports import write_page

            write_page(self.report, report_page(reported(), code))
        return code
