"""Pipeline and backfill into Iceberg's, Delta's and Parquet tables, in one session: what they give, as JSON."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from tieredctl_spark.catalogs import place, runs
from tieredctl_spark.catalogs.place import CatalogPlace, quoted
from tieredctl_spark.catalogs.reading import read_catalog_table
from tieredctl_spark.jobs import verify
from tieredctl_spark.pipeline import run
from tieredctl_spark.pipeline.catalog_tables import CatalogVersions
from tieredctl_spark.pipeline.run_tables import RunIdentity
from tieredctl_spark.session import spark_session
from tieredctl_spark.tables.kinds import COPY_LAG_HOURLY, EVENTS, TABLES

from tests.rigs.small_spark import INTERPRETED, SMALL
from tests.spark.pipeline.backfill_trial import History, backfilled
from tests.spark.pipeline.captured_pipeline import CapturedPipeline, comparable, contents, cut_copy, grow
from tieredctl.cli.main import run as command_line
from tieredctl.errors import TieredctlError

Row = dict[str, Any]

ICEBERG, DELTA = "lake.left.1e5.table", "spark_catalog.table"
"""Words of SQL, and what looks like a number."""
CATALOGS = (ICEBERG, DELTA)
HISTORIES = {ICEBERG: "lake.orders", DELTA: "spark_catalog.orders"}
"""Where backfills keep theirs."""
FIRST_WRITES, WRITES = 7, 11
"""After so many writes runs die: the first after the findings, and another one before the last write of all."""
OTHER = "another run"


def settings_of(folder: Path, jars: str) -> dict[str, str]:
    """Of a session with both catalogs, as their manuals have them."""
    java = SMALL["spark.driver.extraJavaOptions"]
    return {
        "spark.master": "local[2]",
        **SMALL,
        **INTERPRETED,
        "spark.jars": jars,
        "spark.driver.extraJavaOptions": f"{java} -Dderby.system.home={folder / 'derby'}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,"
        "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "iceberg"),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(folder / "delta"),
        "spark.databricks.delta.snapshotPartitions": "1",
    }


class Killed(BaseException):
    """Nothing of the driver goes on."""


def _raise() -> None:
    raise Killed


@contextmanager
def dying_after(writes: int, die: Callable[[], None]) -> Iterator[None]:
    """Has the process die before the write after so many, be it to a table or to `runs`."""
    made = 0

    def counted(write: Callable[..., Any]) -> Callable[..., Any]:
        def note(*words: Any) -> Any:
            nonlocal made
            made += 1
            if made > writes:
                die()
            return write(*words)

        return note

    own = {name: getattr(place.Catalog, name) for name in ("append", "overwrite", "remove_rows")}
    commit = runs._try
    for name, write in own.items():
        setattr(place.Catalog, name, counted(write))
    runs._try = counted(commit)
    try:
        yield
    finally:
        for name, write in own.items():
            setattr(place.Catalog, name, write)
        runs._try = commit


def robbing(session: SparkSession, catalog: str, *, after: int) -> AbstractContextManager[None]:
    """Has another run claim the tables after so many writes."""

    def rob() -> None:
        opened = CatalogPlace.given(catalog).open(session)
        seen = runs.head(opened)
        assert seen is not None
        if seen.claimed_by != OTHER:
            table = opened.full_name(runs.RUNS)
            session.sql(f"UPDATE {table} SET claimedBy = '{OTHER}' WHERE version = {seen.version}")

    return dying_after(after, rob)


def has_died(run: Callable[[], object], writes: int) -> bool:
    """Runs until it dies."""
    with suppress(Killed), dying_after(writes, _raise):
        run()
        return False
    return True


@dataclass(frozen=True)
class Trial:
    """A cluster whose metadata grows, and its tables in a catalog."""

    pipeline: CapturedPipeline
    catalog: str
    session: SparkSession

    def run(self) -> dict[str, Any]:
        code, summary = self.pipeline.run_into("--catalog", self.catalog)
        return summary | {"code": code}

    def died(self, writes: int) -> bool:
        """Runs a day before until it dies."""
        with yesterday():
            return has_died(self.run, writes)

    def contents(self) -> dict[str, list[str]]:
        """What a reader gets of all tables."""
        return {name: comparable(self.rows(name)) for name in TABLES}

    def rows(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = read_catalog_table(self.session, self.catalog, name).toArrow().to_pylist()
        return found

    def latest(self) -> dict[str, int]:
        """Rows of the newest versions, whoever made them."""
        return {name: self.session.table(quoted(self.catalog, name)).count() for name in TABLES}

    def robbed(self) -> int:
        """Runs while another one claims the tables in the middle: the exit code."""
        with robbing(self.session, self.catalog, after=3):
            return self.pipeline.refused_into("--catalog", self.catalog)[0]

    def status(self) -> dict[str, Any]:
        out = io.StringIO()
        with redirect_stdout(out):
            command_line(["pipeline", "status", "--catalog", self.catalog, "-o", "json"])
        document: dict[str, Any] = json.loads(out.getvalue())
        return document

    def expiring(self) -> list[bool]:
        """Whether `runs` has versions that are old in ten days, and after the format's own statement was run."""
        opened = CatalogPlace.given(self.catalog).open(self.session)
        own, table, then = opened.format, opened.full_name(runs.RUNS), datetime.now(UTC) + timedelta(days=10)
        before = own.old_versions(self.session, table, then)
        statement = opened.own_statement(own.expiry, runs.RUNS)
        self.session.sql(statement).collect()
        return [one is not None for one in (before, own.old_versions(self.session, table, then))]

    def later(self) -> Row:
        """What a run begins with, after another one that lost its claim ended a write, files of another table were
        put together."""
        opened = CatalogPlace.given(self.catalog).open(self.session)
        events, lags = (opened.full_name(name) for name in (EVENTS.name, COPY_LAG_HOURLY.name))
        versions = CatalogVersions(opened)
        before = versions.current()
        assert before is not None
        rows, named = self.session.table(events), opened.version(COPY_LAG_HOURLY.name)
        rows.withColumn("runId", fn.lit(OTHER)).writeTo(events).append()
        self.session.table(lags).writeTo(lags).overwrite(fn.lit(True))
        put_together = opened.version(COPY_LAG_HOURLY.name)
        states = versions.opened(before, RunIdentity("later", None, 0, "")).states()
        return {
            "rows": {name: state.rows for name, state in states.items()},
            "latest": self.latest(),
            "isNewest": states[COPY_LAG_HOURLY.name].snapshot == put_together,
            "isNew": put_together != named,
        }

    def verified(self, output: Path) -> Row:
        """What the job `verify` finds in the ledger of the catalog, run twice, and what coverage counts after that."""
        resumed, ledger = [], ["--catalog", self.catalog, "--output", str(output / self.catalog)]
        for _ in range(2):
            out = io.StringIO()
            with redirect_stdout(out):
                verify.main([*self.pipeline.places, "--level", "headers", "--subset", "1/2", *ledger])
            summary = json.loads(out.getvalue())["summary"]
            resumed.append(summary["resumed"])
        self.pipeline.run_into("--catalog", self.catalog, "--list-every", "0s")
        counted = sum(row["segments"] for row in self.rows("coverage") if row["level"] == "headers")
        return {"segments": summary["segments"], "resumed": resumed, "counted": counted}

    def refused_claim(self) -> str:
        """What is raised where Delta itself refuses to claim a row that nobody else claims."""
        opened = CatalogPlace.given(self.catalog).open(self.session)
        change = f"ALTER TABLE {opened.full_name(runs.RUNS)} SET TBLPROPERTIES ('delta.appendOnly' = "
        self.session.sql(f"{change}'true')")
        seen = runs.head(opened)
        assert seen is not None
        try:
            runs.claim(opened, seen, "refused", seen.version)
        except (TieredctlError, PySparkException) as error:
            return type(error).__name__
        finally:
            self.session.sql(f"{change}'false')")
        return "nothing"


def yesterday() -> AbstractContextManager[object]:
    """The pipeline's clock is a day behind."""
    moment = time.time_ns() - 24 * 3_600 * 10**9
    return patch.object(run, "time", SimpleNamespace(time_ns=lambda: moment))


def without_a_row(session: SparkSession, pipeline: CapturedPipeline) -> int:
    """Runs where the table `runs` is empty: the exit code."""
    session.sql("CREATE NAMESPACE lake.empty")
    columns = "version BIGINT, claimedBy STRING, runId STRING, document STRING"
    session.sql(f"CREATE TABLE lake.empty.{runs.RUNS} ({columns}) USING iceberg")
    return pipeline.refused_into("--catalog", "lake.empty")[0]


def tried(folder: Path, cluster: Path, session: SparkSession) -> Row:
    """Runs that end, those that die a day before or lose their claim, and what each leaves to readers."""
    pipeline = replace(
        CapturedPipeline.of_kafka(cluster, folder / "parquet"), data=cut_copy(cluster, folder / "c", 0.6)
    )
    trials = {catalog: Trial(pipeline, catalog, session) for catalog in CATALOGS}
    found: Row = {"empty": without_a_row(session, pipeline)}
    found |= {catalog: {"diedFirst": trial.died(FIRST_WRITES)} for catalog, trial in trials.items()}
    pipeline.run()
    before = contents(pipeline)
    for catalog, trial in trials.items():
        found[catalog] |= {"first": trial.run(), "firstDifferences": differences(trial.contents(), before)}
    grow(pipeline.data, cluster)
    for catalog, trial in trials.items():
        found[catalog] |= {"died": trial.died(WRITES), "robbed": trial.robbed()}
        found[catalog] |= {"kept": differences(trial.contents(), before)}
    pipeline.run()
    now = contents(pipeline)
    for catalog, trial in trials.items():
        found[catalog] |= {
            "ended": trial.run(),
            "differences": differences(trial.contents(), now),
            "latest": trial.latest(),
            "again": trial.run(),
            "status": trial.status(),
            "later": trial.later(),
            "expiring": trial.expiring(),
        }
    for catalog, trial in trials.items():
        found[catalog] |= {"verified": trial.verified(folder / "verify")}
    histories = {
        catalog: backfilled(History.damaged(folder / name, cluster, session, name), has_died, robbing)
        for catalog, name in HISTORIES.items()
    }
    return found | {"refusedClaim": trials[DELTA].refused_claim(), "backfill": histories}


def differences(some: Mapping[str, list[str]], others: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """By table, the first of each that the other does not have."""
    return {
        name: sorted({*rows} ^ {*others[name]})[:3] or [f"{len(rows)} and {len(others[name])} rows"]
        for name, rows in some.items()
        if rows != others[name]
    }


def main() -> None:
    """`FOLDER CLUSTER JARS ANSWER`."""
    *paths, jars, answer = sys.argv[1:]
    folder, cluster = map(Path, paths)
    with spark_session(settings_of(folder, jars)) as session:
        Path(answer).write_text(json.dumps(tried(folder, cluster, session)))


if __name__ == "__main__":
    main()
