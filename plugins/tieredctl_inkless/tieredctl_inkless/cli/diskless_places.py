"""The options that say where diskless topics are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import given_path, pairs
from tieredctl.cli.context_in_use import Role
from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import Store, StoreOptions
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.places import StorePlace
from tieredctl_inkless.wiring.control_plane import ControlPlanePlace
from tieredctl_inkless.wiring.scans_by_logs import LogsPlace

MOST_COORDINATORS = 10_000
ControlPlaneUri = Annotated[
    str | None,
    typer.Option(
        "--control-plane",
        metavar="URI",
        help="The control plane's database: a libpq URI, or service=NAME; without a password.",
    ),
    Role.ELSEWHERE,
]
CoordinatorLogDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--log-dir",
        metavar="DIR",
        parser=given_path,
        help="Read __diskless_metadata from a broker's log directory; repeat it for several.",
    ),
]
Coordinators = Annotated[
    int | None,
    typer.Option(
        "--coordinators",
        metavar="NUMBER",
        help="Partitions of __diskless_metadata, if the log directories have no __cluster_metadata.",
        min=1,
        max=MOST_COORDINATORS,
    ),
]


@dataclass(frozen=True, slots=True)
class DisklessOptions(OptionGroup):
    """A control plane, and the bucket of its objects."""

    control_plane: ControlPlaneUri = None
    store: Store = None
    store_option: StoreOptions = None

    def place(self) -> ControlPlanePlace:
        """The control plane that was named. Raises TieredctlError where none was."""
        if self.control_plane is None:
            raise TieredctlError(ErrorCode.NO_CONTROL_PLANE, "No control plane was given.")
        return ControlPlanePlace(self.control_plane)

    def bucket(self) -> StorePlace:
        """The bucket that was named. Raises TieredctlError where none was."""
        if self.store is None:
            raise TieredctlError(ErrorCode.NO_STORE, "No store was given.")
        return StorePlace(self.store, pairs("--store-option", self.store_option))

    def bucket_if_given(self) -> StorePlace | None:
        """The same; None where no store was named."""
        return None if self.store is None else self.bucket()


@dataclass(frozen=True, slots=True)
class CoordinatorLogsOptions(OptionGroup):
    """Logs of diskless coordinators."""

    log_dir: CoordinatorLogDirs = None
    coordinators: Coordinators = None

    def place(self, others: DisklessOptions) -> LogsPlace | None:
        """The logs that were named; None where none was. Raises TieredctlError where a control plane was named too."""
        if not self.log_dir:
            if self.coordinators is not None:
                raise TieredctlError(ErrorCode.USAGE, "--coordinators is for --log-dir.")
            return None
        if others.control_plane is not None:
            raise TieredctlError(ErrorCode.USAGE, "--log-dir and --control-plane exclude each other.")
        return self.demanded()

    def demanded(self) -> LogsPlace:
        """The logs that were named. Raises TieredctlError where none was."""
        if not self.log_dir:
            hint = "Give --log-dir, a broker's log directory with partitions of __diskless_metadata."
            raise TieredctlError(ErrorCode.NO_SOURCE, "No log directory was given.", hint=hint)
        return LogsPlace(tuple(self.log_dir), self.coordinators)
