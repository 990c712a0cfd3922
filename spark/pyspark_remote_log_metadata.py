"""By its name, PySpark finds the data source in this module."""

from tieredctl_spark.remote_log_metadata import RemoteLogMetadata as DefaultSource

__all__ = ["DefaultSource"]
