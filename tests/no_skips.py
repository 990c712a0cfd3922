"""A plugin for pytest, `-p tests.no_skips`: whatever would be skipped fails, for runs where nothing may be missing."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import pytest

AnyReport = TypeVar("AnyReport", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _failed_if_skipped((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _failed_if_skipped((yield))


def _failed_if_skipped(report: AnyReport) -> AnyReport:
    """A test that fails as expected is reported as skipped too; it stays as it is."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        report.outcome = "failed"
        report.longrepr = f"May not be skipped here: {reason}"
    return report
