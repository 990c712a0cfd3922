"""The options that say where combined objects are."""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.cli.arguments import pairs
from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import Store, StoreOptions
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.places import StorePlace


@dataclass(frozen=True, slots=True)
class WalStoreOptions(OptionGroup):
    """A store of combined objects."""

    store: Store = None
    store_option: StoreOptions = None

    def place(self) -> StorePlace:
        """The store that was named. Raises TieredctlError where none was."""
        if self.store is None:
            raise TieredctlError(ErrorCode.NO_STORE, "No store was given.", hint="Give --store, for example file:DIR.")
        return StorePlace(self.store, pairs("--store-option", self.store_option))
