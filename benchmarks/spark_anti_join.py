"""The least that Spark can do: `python -m benchmarks.spark_anti_join INVENTORY LIVE-IDS ORPHANS`.

Ids are cut from the keys of an inventory in Parquet, and joined against ready-made ids of live segments."""

from __future__ import annotations

import sys

from pyspark.sql import functions as fn

from benchmarks.spark_sessions import small_session


def main() -> None:
    """Counts the objects whose id is not among the live ones."""
    inventory, live_ids, orphans = sys.argv[1:]
    with small_session() as session:
        keys = session.read.parquet(inventory).select(
            fn.regexp_extract("key", r"/\d{20}-([^.]{22})", 1).alias("segmentId")
        )
        found = keys.join(session.read.parquet(live_ids), "segmentId", "left_anti").count()
    assert found == int(orphans), found


main()
