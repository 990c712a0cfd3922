"""`tieredctl orphans scan` on a cluster, at any size:

    spark-submit --master … orphans.py --log-dir DIR --store URL --layout local --output URL

Executors list the store, then read the metadata, judge, and ask the store again for what looks orphaned. The output
folder, in any file system that Spark reaches, gets `candidates`, the orphaned objects with the evidence for each,
`totals` by topic, status, cause and storage class, and at last `summary.json`: this is a mark, of which
`tieredctl orphans plan --from FOLDER` makes a plan. The other folders are what the job itself works with. Exit codes
are those of `tieredctl orphans scan`. Nothing in the store is changed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import functions as fn

from tieredctl.errors import ExitCode, worst
from tieredctl.model.findings import exit_code_of
from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.printable import printable
from tieredctl.model.quantities import duration_ms
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.as_of import AsOf
from tieredctl.ops.orphans.mark import CANDIDATES, KIND, SUMMARY
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.process.run_metrics import run_metrics
from tieredctl.wiring.listing_place import ListingPlace
from tieredctl.wiring.orphans import ScanPlaces, demand_known_objects
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.finding_rows import finding_table
from tieredctl_spark.job_arguments import job_parser, places_of, run_job, selection_of
from tieredctl_spark.orphan_scan import SparkScan, scanned
from tieredctl_spark.output_folder import OutputFolder, json_line
from tieredctl_spark.session import spark_session

_TOTALS_SCHEMA = pa.schema(
    {
        "status": pa.string(),
        "cause": pa.string(),
        "topic": pa.string(),
        "topicId": pa.string(),
        "objects": pa.int64(),
        "bytes": pa.int64(),
        "monthlyCost": pa.float64(),
        "oldest": pa.string(),
        "newest": pa.string(),
    }
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job, and returns its exit code."""
    parser = job_parser("orphans.py", "tieredctl orphans scan on a Spark cluster.")
    add = parser.add_argument
    add("--min-age", type=duration_ms, default="24h", help="ignore objects younger than this")
    add("--inventory", metavar="PATH-OR-URL", help="the manifest of the bucket's inventory, instead of listing it")
    add("--key-list", type=Path, metavar="FILE", help="the store's keys, one per line, instead of listing it")
    add("--as-of", type=AsOf.given, metavar="OFFSET-FILE|TIME", help="the state at a point in the past")
    return run_job(parser, _run, arguments)


def _run(options: argparse.Namespace) -> ExitCode:
    from tieredctl.config.file import storage_price
    from tieredctl.config.plan_key import usable_key

    metadata, store, topics = places_of(options, options.as_of)
    listing = ListingPlace(options.key_list, options.inventory)
    now_ms = time.time_ns() // 1_000_000
    price, selection = storage_price(options.store), selection_of(options)
    how = ScanOptions(now_ms, options.min_age, selection=selection, key=usable_key(), price=price)
    with spark_session({}) as session, spark_failures():
        output = OutputFolder(session, options.output)
        # Whatever is in the folder is not a mark from here on, until this one is whole.
        output.write_text(SUMMARY, json_line({"kind": KIND, "summary": {"success": False}}))
        places = ScanPlaces(metadata, store, topics, listing)
        found = scanned(session, places, how, output.keep, frozenset({ObjectStatus.ORPHAN}))
        demand_known_objects(places, found)
        return _write(found, how, output)


def _write(found: SparkScan, how: ScanOptions, output: OutputFolder) -> ExitCode:
    candidates = output.keep(found.verdicts.where(fn.col("status") == ObjectStatus.ORPHAN.value), CANDIDATES)
    output.write_table("totals", pa.Table.from_pylist(found.totals(), _TOTALS_SCHEMA))
    output.write_table("findings", finding_table(found.findings))
    code, totals, silence = exit_code_of(found.findings), found.summary(), found.topics.silence
    if silence is not None:
        totals, code = totals | {"complete": False}, worst(code, ExitCode.INCOMPLETE)
        sys.stderr.write(f"{printable(silence)}\n")
    times = {"marked": iso_8601(how.now_ms), "markedMs": how.now_ms, "minAgeMs": how.min_age_ms}
    cut_off = {"cutOff": iso_8601(how.now_ms - how.min_age_ms), "candidates": candidates.count()}
    document: Document = {
        "kind": KIND,
        "apiVersion": "tieredctl/v1",
        "source": found.source | {"clusterId": found.cluster_id, "engine": "spark"},
        "summary": {
            "success": True,
            **times,
            **cut_off,
            **totals,
            **how.selection.document(),
            "exitCode": int(code),
        },
    }
    run_metrics.get().note(document["summary"], found.findings)
    output.write_text(SUMMARY, json_line(document))
    sys.stdout.write(json_line(document))
    return code


if __name__ == "__main__":
    sys.exit(main())
