"""The job `backfill` into tables of a catalog and into files, in the session of the catalogs' trial."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tieredctl_spark.backfill.run import BackfillOptions, BackfillRun, run_backfill
from tieredctl_spark.catalogs.place import CatalogPlace, quoted
from tieredctl_spark.catalogs.reading import read_catalog_table
from tieredctl_spark.jobs import backfill as job
from tieredctl_spark.tables.files import read_rows
from tieredctl_spark.tables.kinds import BACKFILL_TABLES
from tieredctl_spark.tables.table_store import TablesPlace

from tests.metadata_logs import events_of, metadata_batches, write_log
from tests.records.captured_topics import captured_records
from tests.spark.damage import REMOTE
from tests.spark.pipeline.captured_pipeline import comparable
from tieredctl.errors import TieredctlError
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.layout import Part
from tieredctl.wiring.places import MetadataPlace, StorePlace

Row = dict[str, Any]
HasDied = Callable[[Callable[[], object], int], bool]
TOPIC, TASK_BYTES = "orders7", 3_000


@dataclass(frozen=True)
class History:
    """A topic whose metadata grows, one of whose segments is lost, and the places of its tables."""

    folder: Path
    cluster: Path
    session: SparkSession
    catalog: str

    @classmethod
    def damaged(cls, folder: Path, cluster: Path, session: SparkSession, catalog: str) -> History:
        shutil.copytree(cluster / REMOTE, folder / "store")
        with captured_records(cluster, TOPIC) as opened:
            segment = opened.partitions[0].spans[1].segment
            (folder / "store" / opened.layout.promised_objects(segment)[Part.LOG]).unlink()
        found = cls(folder, cluster, session, catalog)
        found.write_metadata(0.6)
        return found

    def write_metadata(self, share: float) -> None:
        events = events_of(self.cluster / "data")
        write_log(self.folder / "data", 0, metadata_batches(events[: int(len(events) * share)]))

    def run(self) -> BackfillRun:
        """Into the catalog."""
        places = MetadataPlace((self.folder / "data",)), StorePlace(f"file:{self.folder / 'store'}")
        tables, catalog = TablesPlace.given(str(self.folder / "waiting"), {}), CatalogPlace.given(self.catalog)
        options = BackfillOptions(*places, Selection.of(TOPIC), tables, task_bytes=TASK_BYTES, catalog=catalog)
        return run_backfill(options, {})

    def submit(self, output: str, *words: str) -> Row:
        """The job's exit code, and its summary or sentence."""
        where = ("--log-dir", str(self.folder / "data"), "--store", f"file:{self.folder / 'store'}", "--topic", TOPIC)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = job.main([*where, "--output", str(self.folder / output), *words])
        told = json.loads(out.getvalue())["summary"] if out.getvalue() else {"failure": err.getvalue()}
        return {"code": code, **told}

    def contents(self) -> dict[str, list[str]]:
        """Of the catalog, as the newest version has them; nothing where there is none."""
        try:
            return {
                name: comparable(read_catalog_table(self.session, self.catalog, name).toArrow().to_pylist())
                for name in BACKFILL_TABLES
            }
        except TieredctlError as error:
            if error.code != "path-missing":
                raise
            return {name: [] for name in BACKFILL_TABLES}

    def newest(self) -> dict[str, int]:
        """Rows of the newest versions, whoever made them."""
        return {name: self.session.table(quoted(self.catalog, name)).count() for name in BACKFILL_TABLES}

    def in_files(self) -> dict[str, list[str]]:
        """What the job gives without a catalog."""
        self.submit("tables")
        return {name: comparable(read_rows(str(self.folder / "tables"), name).to_pylist()) for name in BACKFILL_TABLES}


def backfilled(history: History, has_died: HasDied, robbing: Callable[..., AbstractContextManager[None]]) -> Row:
    """Runs that die before ever later writes, one that loses its claim, those that end, and what each leaves."""
    expected = history.in_files()
    seen: list[dict[str, list[str]]] = []
    while has_died(history.run, 3 * len(seen)):
        seen.append(history.contents())
    first = history.contents()
    history.write_metadata(1.0)
    words = ("--catalog", history.catalog)
    with robbing(history.session, history.catalog, after=2):
        robbed = history.submit("waiting", *words)["code"]
    kept = history.contents()
    ended, again = history.submit("waiting", *words), history.submit("waiting", *words)
    grown = history.contents()
    return {
        "expected": [expected, history.in_files()],
        "seen": seen,
        "ended": [first, grown],
        "robbed": robbed,
        "kept": kept == first,
        "newest": history.newest(),
        "runs": [ended, again],
        "left": [path.name for path in (history.folder / "waiting").rglob("*.parquet")],
        "refused": [
            history.submit("tables", *words)["code"],
            history.submit("waiting", *words, "--topic", "orders8")["code"],
        ],
    }
