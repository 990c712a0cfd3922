"""The options that say where diskless topics are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tieredctl.cli.arguments import pairs
from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import ControlPlaneUri, CoordinatorLogDirs, Coordinators, Store, StoreOptions
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.control_plane import ControlPlanePlace
from tieredctl.wiring.places import StorePlace

if TYPE_CHECKING:
    from tieredctl.wiring.diskless import CoordinatorLogsPlace


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

    def place(self, others: DisklessOptions) -> CoordinatorLogsPlace | None:
        """The logs that were named; None where none was. Raises TieredctlError where a control plane was named too."""
        if not self.log_dir:
            if self.coordinators is not None:
                raise TieredctlError(ErrorCode.USAGE, "--coordinators is for --log-dir.")
            return None
        if others.control_plane is not None:
            raise TieredctlError(ErrorCode.USAGE, "--log-dir and --control-plane exclude each other.")
        return self.demanded()

    def demanded(self) -> CoordinatorLogsPlace:
        """The logs that were named. Raises TieredctlError where none was."""
        if not self.log_dir:
            hint = "Give --log-dir, a broker's log directory with partitions of __diskless_metadata."
            raise TieredctlError(ErrorCode.NO_SOURCE, "No log directory was given.", hint=hint)
        from tieredctl.wiring.diskless import CoordinatorLogsPlace

        return CoordinatorLogsPlace(tuple(self.log_dir), self.coordinators)
