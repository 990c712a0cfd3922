"""Joins the operations, which know protocols, to the concrete sources, stores and layouts that the options name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tieredctl.cli.arguments import as_of, pairs
from tieredctl.errors import TieredctlError
from tieredctl.kafka.source import MetadataSource
from tieredctl.ops.event_stream import EventStream

if TYPE_CHECKING:
    from tieredctl.layouts.protocol import Layout
    from tieredctl.storage.protocol import ObjectStore


def open_source(
    log_dir: Sequence[Path] | None,
    bootstrap_server: str | None = None,
    command_config: Path | None = None,
    export: Path | None = None,
) -> MetadataSource:
    """The one source that was named. Raises TieredctlError where none was, or several."""
    named = [bool(log_dir), bootstrap_server is not None, export is not None]
    if sum(named) > 1:
        raise TieredctlError("usage", "--log-dir, --bootstrap-server and --export exclude each other.")
    if command_config is not None and bootstrap_server is None:
        raise TieredctlError("usage", "--command-config is for --bootstrap-server.")
    if log_dir:
        from tieredctl.kafka.log_directory import LogDirectories

        return LogDirectories(log_dir)
    if bootstrap_server is not None:
        from tieredctl.kafka.live_topic import LiveTopic

        return LiveTopic(bootstrap_server, command_config)
    if export is not None:
        from tieredctl.kafka.export_file import ExportFile

        return ExportFile(export)
    raise TieredctlError("no-source", "There is nothing to read metadata from.")


def open_stream(
    log_dir: Sequence[Path] | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    export: Path | None,
    as_of_point: str | None,
    metadata_partition: int | None = None,
) -> EventStream:
    """The events of the source that was named, up to the point that was named."""
    point = as_of(as_of_point)
    source = open_source(log_dir, bootstrap_server, command_config, export)
    if metadata_partition is not None and metadata_partition not in source.metadata_partitions():
        known = ", ".join(map(str, source.metadata_partitions()))
        raise TieredctlError("usage", f"There is no metadata partition {metadata_partition} here; there are {known}.")
    return EventStream(source, metadata_partition=metadata_partition, as_of=point)


def open_remote(
    store: str | None, store_option: Sequence[str] | None, layout: str, layout_option: Sequence[str] | None
) -> tuple[ObjectStore, Layout]:
    """The store and the layout that were named; `auto` looks at the store's keys."""
    from tieredctl.layouts.registry import layout_in
    from tieredctl.storage.registry import open_store

    if store is None:
        raise TieredctlError("no-store", "There is no store to look at.")
    opened = open_store(store, pairs("--store-option", store_option))
    return opened, layout_in(opened, layout, pairs("--layout-option", layout_option))
