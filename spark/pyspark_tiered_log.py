"""By its name, PySpark finds the data source in this module."""

from tieredctl_spark.tiered_log import TieredLog as DefaultSource

__all__ = ["DefaultSource"]
