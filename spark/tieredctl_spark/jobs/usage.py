"""What is stored, by topic, partition, day of upload, broker and storage class, with its price:

    spark-submit --master … usage.py --log-dir DIR --store URL --layout local --output URL

Executors list the store, then read the metadata for who copied each segment. The output folder, in any file system that
Spark reaches, gets `usage` as Parquet, and at last `summary.json`. `listing` and `metadata` are what the job itself
works with. Exit code 0; 5 if the metadata could not be read in full, so that some brokers are not known.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from pyspark.sql import functions as fn

from tieredctl.config.file import storage_price
from tieredctl.errors import ExitCode
from tieredctl.model.findings import exit_code_of
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.finding_rows import finding_table
from tieredctl_spark.job_arguments import job_parser, places_of, run_job
from tieredctl_spark.metadata_facts import metadata_facts
from tieredctl_spark.output_folder import OutputFolder, json_line
from tieredctl_spark.session import spark_session
from tieredctl_spark.transforms.listed_objects import listed_objects, unreserved
from tieredctl_spark.transforms.metadata_rows import copies_in, kept_metadata
from tieredctl_spark.transforms.usage import storage_usage

_SUMMARY = "summary.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job, and returns its exit code."""
    return run_job(job_parser("usage.py", "What is stored, and what it costs."), _run, arguments)


def _run(options: argparse.Namespace) -> ExitCode:
    metadata, store, _ = places_of(options)
    remote, price, now_ms = store.open(), storage_price(options.store), time.time_ns() // 1_000_000
    metadata.demand_usable()
    with spark_session({}) as session, spark_failures():
        output = OutputFolder(session, options.output)
        output.write_text(_SUMMARY, json_line({"kind": "Usage", "summary": {"success": False}}))
        objects = unreserved(listed_objects(session, *remote).kept(output.keep, "listing"))
        with metadata.open() as stream:
            rows = kept_metadata(session, metadata, stream.source, output.keep)
            facts = metadata_facts(rows, stream, output.keep)
            source = {**stream.source.describe(), "store": remote.store.url, "layout": remote.layout.name}
        usage = output.keep(storage_usage(objects.rows(), copies_in(rows).rows(), price), "usage")
        totals = usage.agg(fn.sum("objects"), fn.sum("bytes"), fn.sum("monthlyCost")).collect()[0]
        classes = [row[0] for row in usage.select("storageClass").distinct().collect()]
        output.write_table("findings", finding_table(facts.findings))
        code = exit_code_of(facts.findings)
        document = {
            "kind": "Usage",
            "apiVersion": "tieredctl/v1",
            "source": source | {"engine": "spark"},
            "summary": {
                "success": True,
                "listed": iso_8601(now_ms),
                "objects": totals[0] or 0,
                "bytes": totals[1] or 0,
                "monthlyCost": totals[2],
                "currency": price.currency if price else None,
                "classesWithoutPrice": price.without_price([one or "" for one in classes]) if price else [],
                "complete": facts.certainty.is_whole,
                "exitCode": int(code),
            },
        }
        output.write_text(_SUMMARY, json_line(document))
    sys.stdout.write(json_line(document))
    return code


if __name__ == "__main__":
    sys.exit(main())
