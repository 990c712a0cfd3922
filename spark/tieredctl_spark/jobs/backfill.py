"""A topic's history as a table:

    spark-submit --master … backfill.py --bootstrap-server HOST:PORT --store URL --topic NAME --output URL

Executors read records straight from the store, as `tieredctl remote records` does, and write them as Parquet files of
the table `records`; what they could not read is in the table `unreadable` beside it. `--output` is a folder, or s3://…
or gs://… as of `--store`, outside of that store. A manifest that is written last makes files current: each record is
there once, wherever a run was killed. Run it again to go on, and to append what was copied since.

With `--catalog NAME.NAMESPACE` both are Iceberg or Delta tables, in a namespace of their own; files are in `--output`
only until their rows are there.

Exit code 0; 4 if records are lost or damaged, or 5 if some could not be read, in this run or an earlier one; 5 too if
something is left to the next run, as a key or a permission is missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.ops.documents import Document
from tieredctl.process.run_metrics import run_metrics
from tieredctl.records.request import Isolation, most_unfolded
from tieredctl_spark.backfill.run import BackfillOptions, BackfillRun, run_backfill
from tieredctl_spark.catalogs.place import CatalogPlace
from tieredctl_spark.job_arguments import job_parser, places_of, run_job, selection_of
from tieredctl_spark.output_folder import json_line
from tieredctl_spark.tables.table_store import TablesPlace

_MAX_BATCH_BYTES = "--max-batch-bytes"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job, and returns its exit code."""
    parser = job_parser("backfill.py", "A topic's history as a table.")
    add = parser.add_argument
    add("--isolation", type=Isolation, choices=list(Isolation), default=Isolation.READ_UNCOMMITTED)
    add("--catalog", metavar="NAME", help="Iceberg or Delta tables, as CATALOG.NAMESPACE")
    size = partial(most_unfolded, _MAX_BATCH_BYTES)
    add(_MAX_BATCH_BYTES, type=size, metavar="SIZE", help="read compressed batches of up to this size: 256MiB")
    return run_job(parser, _run, arguments)


def _run(options: argparse.Namespace) -> ExitCode:
    if len(options.topic or ()) != 1:
        raise TieredctlError(ErrorCode.USAGE, "A backfill is of one topic: name it with --topic.")
    metadata, store, _ = places_of(options)
    tables = TablesPlace.beside(store, options.output)
    catalog = None if options.catalog is None else _namespace(options.catalog)
    places = metadata, store, selection_of(options), tables
    asked = BackfillOptions(*places, options.isolation, catalog=catalog, most_unfolded=options.max_batch_bytes)
    done = run_backfill(asked, {})
    document = _document(done, tables.url if catalog is None else catalog.url)
    run_metrics.get().note(document["summary"], done.findings)
    sys.stdout.write(json_line(document))
    return done.exit_code


def _namespace(text: str) -> CatalogPlace:
    """A namespace of its own: tables are of one topic."""
    if "." not in text:
        message = "A backfill has a namespace of its own: --catalog takes CATALOG.NAMESPACE."
        raise TieredctlError(ErrorCode.USAGE, message)
    return CatalogPlace.given(text)


def _document(done: BackfillRun, tables: str) -> Document:
    made = done.manifest
    records, unreadable = (made.tables[name] for name in ("records", "unreadable"))
    return {
        "kind": "Backfill",
        "apiVersion": "tieredctl/v1",
        "source": {"topic": made.topic, "topicId": made.topic_id, "isolation": made.isolation, "engine": "spark"},
        "summary": {
            "success": True,
            "tables": tables,
            "version": made.version,
            "appended": done.records,
            "records": records.rows,
            "files": records.file_count,
            "bytes": records.bytes,
            "unreadable": unreadable.rows,
            "lostOffsets": made.lost_offsets,
            "nextOffsets": made.next_offsets,
            "unread": {str(number): why for number, why in sorted(done.unread.items())},
            "leftoversRemoved": done.leftovers,
            "complete": not (made.lost_offsets or done.unread) and done.exit_code is not ExitCode.INCOMPLETE,
            "exitCode": int(done.exit_code),
        },
    }


if __name__ == "__main__":
    sys.exit(main())
