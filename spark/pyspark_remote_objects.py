"""By its name, PySpark finds the data source in this module."""

from tieredctl_spark.remote_objects import RemoteObjects as DefaultSource

__all__ = ["DefaultSource"]
