"""The concrete sources of metadata, by what names them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.source import MetadataSource


def metadata_source(
    log_dirs: Sequence[Path] = (),
    bootstrap_server: str | None = None,
    command_config: Path | None = None,
    export: Path | None = None,
) -> MetadataSource:
    """The one source that is named. Raises TieredctlError where none is, or several, or it cannot be read."""
    if bool(log_dirs) + (bootstrap_server is not None) + (export is not None) > 1:
        raise TieredctlError(ErrorCode.USAGE, "A log directory, a bootstrap server and an export exclude each other.")
    if log_dirs:
        from tieredctl.kafka.log_directory import LogDirectories

        return LogDirectories(log_dirs)
    if bootstrap_server is not None:
        from tieredctl.kafka.live_topic import LiveTopic

        return LiveTopic(bootstrap_server, command_config)
    if export is not None:
        from tieredctl.kafka.export_file import ExportFile

        return ExportFile(export)
    raise TieredctlError(ErrorCode.NO_SOURCE, "There is nothing to read metadata from.")
