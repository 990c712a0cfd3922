"""The options that say where diskless topics are kept."""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.cli.arguments import pairs
from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import ControlPlaneUri, Store, StoreOptions
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.control_plane import ControlPlanePlace
from tieredctl.wiring.places import StorePlace


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
