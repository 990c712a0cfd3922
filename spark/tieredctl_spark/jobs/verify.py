"""`tieredctl verify` on a cluster:

    spark-submit --master … verify.py --log-dir DIR --store URL --level full --subset 3/30 --output URL

Driver and executors need tieredctl, tieredctl-spark and the layout's package. The driver reads the metadata and lists
the store; executors read the segments.

The output folder, in any file system that Spark reaches, gets `findings/run=ID` as Parquet, `summaries/run=ID` as
JSON, and the `ledger`: what was verified when, how deep, in which versions of its objects. What it knows to be sound,
not longer ago than `--max-age`, and unchanged since, is not read again: a job that was killed goes on where it was.
Exit codes are those of `tieredctl verify`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import timedelta
from typing import Any

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.clock import Clock
from tieredctl.model.findings import exit_code_of
from tieredctl.model.quantities import byte_count, duration_ms
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.verification.options import Subset, VerifyOptions
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES, Level
from tieredctl.process.run_metrics import run_metrics
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.verify import Verified, verify
from tieredctl_spark.catalogs.place import CatalogPlace, tables_or_catalog
from tieredctl_spark.coverage_engine import CoverageEngine
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.finding_rows import finding_table
from tieredctl_spark.job_arguments import PAIRS, int32, job_parser, places_of, run_job, selection_of
from tieredctl_spark.ledger_place import demand_tables_of, ledger_beside, ledger_in, open_ledger
from tieredctl_spark.output_folder import OutputFolder
from tieredctl_spark.recorded_engine import RecordedEngine, RunOptions
from tieredctl_spark.session import spark_session
from tieredctl_spark.tables.table_store import TablesPlace

_STUCK_AFTER_MS = 3_600_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job, and returns its exit code."""
    return run_job(_parser(), _run, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = job_parser("verify.py", "tieredctl verify on a Spark cluster.")
    add = parser.add_argument
    levels = [level.value for level in Level]
    add("--level", type=Level, choices=levels, default=Level.HEADERS, help="how thoroughly to check")
    add("--subset", type=Subset.parse, default=Subset(), help="a share of the segments: 3/30 or 5%%")
    add("--max-age", type=duration_ms, default="12h", metavar="AGE", help="read again what was read longer ago: 7d")
    add("--max-bytes", type=_some_bytes, metavar="SIZE", help="read at most so much, least recently tried first: 2TB")
    add("--read-rate", type=_some_bytes, metavar="SIZE", help="read at most so much a second on each machine: 200MB")
    add("--tables", metavar="DIR|URL", help="the pipeline's tables: the ledger is kept beside them, not in --output")
    add("--tables-option", **PAIRS, help="for the store of --tables")
    add("--catalog", metavar="NAME[.NAMESPACE]", help="keep the ledger in this catalog of Spark's: Iceberg or Delta")
    add("--coverage", action="store_true", help="read nothing: say by topic what is not known to be sound by --max-age")
    add("--index-interval", type=int32, default=DEFAULT_INDEX_INTERVAL_BYTES, help="index.interval.bytes of the topics")
    return parser


def _some_bytes(text: str) -> int:
    size = byte_count(text)
    if not size:
        raise TieredctlError(
            ErrorCode.USAGE, f"{text!r} would read nothing.", hint="Give at least one byte, or leave the option out."
        )
    return size


def _run(options: argparse.Namespace) -> ExitCode:
    metadata, store, topics = places_of(options)
    how = VerifyOptions(
        level=options.level,
        clock=Clock(time.time_ns() // 1_000_000, _STUCK_AFTER_MS),
        selection=selection_of(options),
        subset=options.subset,
        index_interval_bytes=options.index_interval,
    )
    with ExitStack() as stack:
        named = tables_or_catalog(options.tables, dict(options.tables_option), options.catalog, store)
        started = _Started(stack, options, metadata, store, named)
        verified = verify(metadata, store, how, topics=topics, make_engine=started.engine)
        return _write(verified, started, how.selection)


class _Started:
    """A Spark session, started once there is work for it; and what is kept of it."""

    def __init__(
        self,
        stack: ExitStack,
        options: argparse.Namespace,
        metadata: MetadataPlace,
        store: StorePlace,
        tables: TablesPlace | CatalogPlace | None,
    ) -> None:
        self._stack = stack
        self._options = options
        self._metadata = metadata
        self._store = store
        self._tables = tables
        self.output: OutputFolder
        self.recorded: RecordedEngine | CoverageEngine

    def engine(self) -> RecordedEngine | CoverageEngine:
        session = self._stack.enter_context(spark_session({}))
        self._stack.enter_context(spark_failures())
        self.output = OutputFolder(session, self._options.output)
        if self._tables is not None:
            demand_tables_of(self._store, self._tables, session)
        with closing(self._metadata.open_source()) as source:
            cluster_id = source.cluster_id
        ledger = open_ledger(self._ledger_place(), self.output, self._store, cluster_id)
        # No reading is older than the epoch, nor could dates tell.
        max_age = timedelta(milliseconds=min(self._options.max_age, time.time_ns() // 1_000_000))
        if self._options.coverage:
            self.recorded = CoverageEngine(self.output, ledger, max_age)
        else:
            run = RunOptions(max_age, self._options.max_bytes, self._options.read_rate)
            self.recorded = RecordedEngine(self.output, ledger, run)
        self._stack.callback(self.recorded.end)
        return self.recorded

    def _ledger_place(self) -> TablesPlace | CatalogPlace:
        if isinstance(self._tables, TablesPlace):
            return ledger_beside(self._tables)
        return self._tables or ledger_in(self.output, self._store)


def _write(verified: Verified, started: _Started, selection: Selection) -> ExitCode:
    result, output, recorded = verified.result, started.output, started.recorded
    output.write_table(f"findings/run={recorded.run}", finding_table(result.findings))
    counts = result.summary() | recorded.counts(result.segments)
    code = exit_code_of(result.findings)
    if counts.get("postponed"):  # the budget left some of what was asked for
        counts["complete"], code = False, worst(code, ExitCode.INCOMPLETE)
    counts |= selection.document() | {"run": recorded.run, "exitCode": int(code)}
    document = _document(verified.source | {"engine": "spark"}, counts)
    if isinstance(recorded, CoverageEngine):
        document["items"] = recorded.topics()
    summary = json.dumps(document)
    output.write_text(f"summaries/run={recorded.run}", summary)
    run_metrics.get().note(counts, result.findings)
    sys.stdout.write(summary + "\n")
    if isinstance(recorded, RecordedEngine):
        recorded.tidy()
    return code


def _document(source: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "Verification", "apiVersion": "tieredctl/v1", "source": dict(source), "summary": dict(summary)}


if __name__ == "__main__":
    sys.exit(main())
