"""By its name, PySpark finds the data source in this module."""

from tieredctl_spark.segment_batches import SegmentBatches as DefaultSource

__all__ = ["DefaultSource"]
