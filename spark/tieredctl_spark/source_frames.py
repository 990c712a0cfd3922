"""The data source's DataFrame, from a place."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.source_options import AS_OF, as_of_text
from tieredctl_spark.transforms.metadata_rows import RECORD_SCHEMA


def metadata_records(session: SparkSession, place: MetadataPlace) -> DataFrame:
    """`remote_log_metadata` of a place, by RECORD_SCHEMA."""
    options = {"log-dir": ",".join(map(str, place.log_dirs)) or None}
    options["export"] = None if place.export is None else str(place.export)
    options[AS_OF] = None if place.as_of is None else as_of_text(place.as_of)
    if place.cluster is not None:
        options["bootstrap-server"] = place.cluster.bootstrap_server
        config = place.cluster.command_config
        options["command-config"] = None if config is None else str(config)
    if place.plugin is not None:
        options["metadata-source"] = f"{place.plugin.name}:{place.plugin.location}"
        options |= {f"metadata-source-option.{name}": value for name, value in place.plugin.options.items()}
    given = {name: value for name, value in options.items() if value is not None}
    reader = session.read.format("remote_log_metadata").schema(spark_schema(RECORD_SCHEMA))
    return reader.options(**given).load()
