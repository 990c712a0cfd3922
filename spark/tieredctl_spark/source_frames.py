"""The data sources' DataFrames, from places."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.places import MetadataPlace


def metadata_records(session: SparkSession, place: MetadataPlace) -> DataFrame:
    """`remote_log_metadata` of a place. Raises TieredctlError `usage` for what the source cannot read."""
    if place.as_of is not None:
        raise TieredctlError(ErrorCode.USAGE, "--as-of is for the local engine.", hint="Omit it, or --engine spark.")
    options = {"logDir": ",".join(map(str, place.log_dirs)) or None}
    options["export"] = None if place.export is None else str(place.export)
    if place.cluster is not None:
        options["bootstrapServer"] = place.cluster.bootstrap_server
        config = place.cluster.command_config
        options["commandConfig"] = None if config is None else str(config)
    if place.plugin is not None:
        options["metadataSource"] = f"{place.plugin.name}:{place.plugin.location}"
        options |= {f"metadataSourceOption.{name}": value for name, value in place.plugin.options.items()}
    given = {name: value for name, value in options.items() if value is not None}
    return session.read.format("remote_log_metadata").options(**given).load()
