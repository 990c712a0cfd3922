"""The pipeline into Iceberg's, Delta's and Parquet tables, in one session of whatever PySpark this process has: what it
gives, as JSON.

The first process runs into each, has runs die after so many writes, and is killed itself during one; the second one
runs again.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tieredctl_spark.catalogs import place, runs
from tieredctl_spark.catalogs.place import CatalogPlace
from tieredctl_spark.catalogs.reading import read_catalog_table
from tieredctl_spark.session import spark_session
from tieredctl_spark.tables.kinds import TABLES

from tests.rigs.small_spark import INTERPRETED, SMALL
from tests.spark.pipeline.captured_pipeline import CapturedPipeline, comparable, contents, cut_copy, grow
from tieredctl.cli.main import run as command_line

Row = dict[str, Any]

ICEBERG, DELTA = "lake.kafka", "spark_catalog.kafka"
MOMENTS = {ICEBERG: (2, 12), DELTA: (4,)}
"""After so many writes runs die: before the segments, the findings, and the last write of all."""
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
        """Runs until it dies."""
        with suppress(Killed), dying_after(writes, _raise):
            self.run()
            return False
        return True

    def contents(self) -> dict[str, list[str]]:
        """What a reader gets of all tables."""
        return {name: comparable(self.rows(name)) for name in TABLES}

    def rows(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = read_catalog_table(self.session, self.catalog, name).toArrow().to_pylist()
        return found

    def latest(self) -> dict[str, int]:
        """Rows of the newest versions, whoever made them."""
        return {name: self.session.table(f"{self.catalog}.{name}").count() for name in TABLES}

    def robbed(self) -> int:
        """Runs while another one claims the tables in the middle: the exit code."""

        def rob() -> None:
            opened = CatalogPlace.given(self.catalog).open(self.session)
            seen = runs.head(opened)
            assert seen is not None
            if seen.claimed_by != OTHER:
                opened.session.sql(
                    f"UPDATE {opened.full_name(runs.RUNS)} SET claimedBy = '{OTHER}' WHERE version = {seen.version}"
                )

        with dying_after(3, rob):
            return self.pipeline.refused_into("--catalog", self.catalog, "--list-every", "0s")[0]

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
        statement = own.expiry.format(catalog=opened.place.catalog, table=f"{opened.place.namespace}.{runs.RUNS}")
        self.session.sql(statement).collect()
        return [one is not None for one in (before, own.old_versions(self.session, table, then))]


def _raise() -> None:
    raise Killed


def _kill() -> None:
    os.killpg(0, signal.SIGKILL)  # the driver, its JVM and Python's workers


def first(folder: Path, cluster: Path, session: SparkSession) -> Row:
    """Runs that end, those that die, and what each leaves to readers; the last one kills this process."""
    cut = cut_copy(cluster, folder / "cut", 0.6)
    pipeline = CapturedPipeline.of_kafka(cluster, folder / "parquet")
    pipeline = replace(pipeline, data=cut)
    trials = {catalog: Trial(pipeline, catalog, session) for catalog in MOMENTS}
    died_first = {catalog: trial.died(4) for catalog, trial in trials.items()}
    pipeline.run()
    ended = {catalog: trial.run() for catalog, trial in trials.items()}
    before = contents(pipeline)
    equal = {catalog: differences(trial.contents(), before) for catalog, trial in trials.items()}
    grow(cut, cluster)
    moments = {
        catalog: [(trial.died(writes), differences(trial.contents(), before)) for writes in MOMENTS[catalog]]
        for catalog, trial in trials.items()
    }
    return {"diedFirst": died_first, "ended": ended, "equal": equal, "moments": moments}


def second(folder: Path, cluster: Path, session: SparkSession) -> Row:
    """Runs after the process was killed."""
    pipeline = replace(CapturedPipeline.of_kafka(cluster, folder / "parquet"), data=folder / "cut")
    trials = {catalog: Trial(pipeline, catalog, session) for catalog in MOMENTS}
    killed = differences(trials[ICEBERG].contents(), contents(pipeline))
    pipeline.run()
    now = contents(pipeline)
    found: Row = {"killed": killed}
    for catalog, trial in trials.items():
        ended = trial.run()
        found[catalog] = {
            "ended": ended,
            "differences": differences(trial.contents(), now),
            "latest": trial.latest(),
            "again": trial.run(),
            "robbed": trial.robbed(),
            "kept": differences(trial.contents(), now),
            "after": trial.run(),
            "differencesAfter": differences(trial.contents(), now),
            "status": trial.status(),
            "expiring": trial.expiring(),
        }
    return found


def differences(some: Mapping[str, list[str]], others: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """By table, the first of each that the other does not have."""
    return {
        name: sorted({*rows} ^ {*others[name]})[:3] or [f"{len(rows)} and {len(others[name])} rows"]
        for name, rows in some.items()
        if rows != others[name]
    }


def main() -> None:
    """`FIRST|SECOND FOLDER CLUSTER JARS ANSWER`."""
    which, *paths, jars, answer = sys.argv[1:]
    folder, cluster = map(Path, paths)
    with spark_session(settings_of(folder, jars)) as session:
        found = (first if which == "first" else second)(folder, cluster, session)
        Path(answer).write_text(json.dumps(found))
        if which == "first":
            pipeline = replace(CapturedPipeline.of_kafka(cluster, folder / "parquet"), data=folder / "cut")
            with dying_after(3, _kill):
                Trial(pipeline, ICEBERG, session).run()


if __name__ == "__main__":
    main()
