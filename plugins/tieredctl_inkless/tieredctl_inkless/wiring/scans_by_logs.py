"""Scans of a bucket by the logs of diskless coordinators, which another package brings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tieredctl.installation import missing_package
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.plugins import PluginKind
from tieredctl.wiring.places import StorePlace

_SCANS = PluginKind("scan by coordinators' logs", "tieredctl_inkless.scans")
_NAME, _PACKAGE = "coordinators", "tieredctl-proposals"


class ScanByLogs(Protocol):
    """A scan that is ready to be run."""

    @property
    def findings(self) -> list[Finding]: ...

    def run(self) -> None:
        """Judges every object, for `totals` and `summary`."""

    def documents(self) -> Iterator[Document]:
        """The same, with a document for each object."""

    def totals(self) -> list[Document]:
        """By status and cause, after the run."""

    def summary(self) -> Document:
        """After the run."""


@dataclass(frozen=True, slots=True)
class LogsPlace:
    """Brokers' log directories that have partitions of `__diskless_metadata`."""

    log_dirs: Sequence[Path]
    coordinators: int | None = None
    """How many partitions it has, where nothing beside it may tell."""

    def scan(
        self, bucket: StorePlace, grace_ms: int
    ) -> AbstractContextManager[tuple[Callable[[], Document], ScanByLogs]]:
        """Where they are, as far as they are read, and a scan of a bucket by them. Raises TieredctlError as the package
        does that reads them, and `usage` where it is not installed."""
        if _NAME not in _SCANS.names():
            raise missing_package("Reading coordinators' logs", _PACKAGE)
        opened: AbstractContextManager[tuple[Callable[[], Document], Any]] = _SCANS.make(
            _NAME, self.log_dirs, self.coordinators, bucket, grace_ms
        )
        return opened
