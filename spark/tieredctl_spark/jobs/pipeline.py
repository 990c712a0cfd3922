"""Metadata and store as tables that remember, for SQL and dashboards:

    spark-submit --master … pipeline.py --log-dir DIR --store URL --layout local --tables URL

Each run reads the events that are new, lists the store and compares both, and writes the tables' files; a manifest that
is written last makes them current all at once. A run that is killed leaves what was current, and is run again. Exit
codes are those of `tieredctl verify` and `orphans scan`; 5 where the metadata or the store could not be read in full,
11 where another run was faster. Nothing in the store is changed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tieredctl.errors import ExitCode
from tieredctl.model.quantities import duration_ms
from tieredctl.ops.verification.report import Level
from tieredctl_spark.job_arguments import job_parser, places_of, run_job
from tieredctl_spark.output_folder import json_line
from tieredctl_spark.pipeline.run import PipelineOptions, run_pipeline
from tieredctl_spark.tables.table_store import TablesPlace


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job, and returns its exit code."""
    # Spark does not write these results, so that they are called otherwise than those of other jobs.
    parser = argparse.ArgumentParser(
        prog="pipeline.py",
        description="Metadata and store as tables that remember.",
        parents=[job_parser("pipeline.py", "")],
        conflict_handler="resolve",
    )
    add = parser.add_argument
    add("--tables", "--output", required=True, metavar="URL", help="the folder of all tables: a path, s3://… or gs://…")
    add("--level", type=Level, choices=list(Level), default=Level.LISTING, help="how deep segments are verified")
    add("--min-age", type=duration_ms, default="24h", help="younger objects are not orphaned")
    add("--list-every", type=duration_ms, default="1h", help="list the store again without news after this time")
    return run_job(parser, _run, arguments)


def _run(options: argparse.Namespace) -> ExitCode:
    metadata, store, topics = places_of(options)
    tables = TablesPlace.beside(store, options.tables)
    how = PipelineOptions(metadata, store, topics, tables, options.level, options.min_age, options.list_every)
    found = run_pipeline(how, {})
    source = {"store": found.manifest.looked.store, "tables": tables.url, "engine": "spark"}
    document = {"kind": "Pipeline", "apiVersion": "tieredctl/v1", "source": source, "summary": found.summary()}
    sys.stdout.write(json_line(document))
    return found.exit_code


if __name__ == "__main__":
    sys.exit(main())
