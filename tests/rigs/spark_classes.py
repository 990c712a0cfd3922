"""A program: lets Spark do a little of what tests ask of it, and its JVM archive the classes that it has loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from tieredctl_spark.session import spark_session


def work(session: SparkSession, folder: Path) -> None:
    """Writes, reads, aggregates, joins and sorts a table, with Python in between."""
    table = (folder / "table").as_uri()
    session.range(100).withColumn("third", fn.col("id") % 3).write.parquet(table)
    rows = session.read.parquet(table)
    joined = rows.groupBy("third").agg(fn.sum("id").alias("sum")).join(rows, "third").orderBy("id")
    joined.mapInArrow(lambda batches: batches, joined.schema).toArrow()


def main() -> None:
    jcmd, archive = sys.argv[1:]
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}
    with spark_session(settings) as session, TemporaryDirectory() as folder:
        work(session, Path(folder))
        jvm = session._jvm
        assert jvm is not None
        process = jvm.java.lang.ProcessHandle.current().pid()
        subprocess.run([jcmd, str(process), "VM.cds", "dynamic_dump", archive], check=True)


if __name__ == "__main__":
    main()
