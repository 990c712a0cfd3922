"""Registers tieredctl's data sources in a session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tieredctl_spark.remote_log_metadata import RemoteLogMetadata
from tieredctl_spark.remote_objects import RemoteObjects


def register(session: SparkSession) -> None:
    """Makes `remote_log_metadata` and `remote_objects` available to `session.read.format`."""
    for source in (RemoteLogMetadata, RemoteObjects):
        session.dataSource.register(source)
