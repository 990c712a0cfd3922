"""What the options say of where things are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tieredctl.cli.arguments import as_of, pairs
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, StorePlace


def cluster_place(
    bootstrap_server: str | None, command_config: Path | None, purpose: str = "There is no cluster to ask."
) -> ClusterPlace:
    """The live cluster that was named. Raises TieredctlError where none was."""
    if bootstrap_server is None:
        raise TieredctlError(ErrorCode.NO_SOURCE, purpose, hint="Give --bootstrap-server.")
    return ClusterPlace(bootstrap_server, command_config)


def metadata_place(
    log_dir: Sequence[Path] | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    export: Path | None,
    as_of_point: str | None = None,
) -> MetadataPlace:
    """The one source that was named, up to the point that was named; of no source, what opens it tells."""
    if command_config is not None and bootstrap_server is None:
        raise TieredctlError(ErrorCode.USAGE, "--command-config is for --bootstrap-server.")
    cluster = None if bootstrap_server is None else ClusterPlace(bootstrap_server, command_config)
    return MetadataPlace(tuple(log_dir or ()), cluster, export, as_of(as_of_point))


def store_place(
    store: str | None, store_option: Sequence[str] | None, layout: str, layout_option: Sequence[str] | None
) -> StorePlace:
    """The store and the layout that were named. Raises TieredctlError where no store was."""
    if store is None:
        raise TieredctlError(ErrorCode.NO_STORE, "There is no store to look at.")
    return StorePlace(store, pairs("--store-option", store_option), layout, pairs("--layout-option", layout_option))
