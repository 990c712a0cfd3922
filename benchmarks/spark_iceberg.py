"""Iceberg's own search for orphans, by its own PySpark: `python spark_iceberg.py JAR WAREHOUSE INVENTORY ORPHANS`.

The listing is given to it as a view, and nothing is broadcast: as it comes, it takes the set of valid files for tiny,
and needs 8 GB of heap for ten million.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.bench": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.bench.type": "hadoop",
}
BUCKET = "s3://tiered/"


def main() -> None:
    """Counts the orphans of the table `store.tiered`."""
    jar, warehouse, inventory, orphans = sys.argv[1:]
    builder = SparkSession.builder.config("spark.jars", jar).config("spark.sql.catalog.bench.warehouse", warehouse)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    listed = session.read.parquet(inventory)
    path = fn.concat(fn.lit(BUCKET), "key").alias("file_path")
    listed.select(path, fn.col("last_modified_date").alias("last_modified")).createOrReplaceTempView("listed")
    arguments = f"table => 'store.tiered', location => '{BUCKET}', dry_run => true, file_list_view => 'listed'"
    found = session.sql(f"CALL bench.system.remove_orphan_files({arguments})").count()
    session.stop()
    assert found == int(orphans), found


if __name__ == "__main__":
    main()
