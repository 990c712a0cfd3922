"""The example's dashboard: every panel's query runs over a run's tables, as DuckDB sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tieredctl_spark.tables.kinds import TABLES

from tests.spark.pipeline.captured_pipeline import CapturedPipeline

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

EXAMPLE = Path(__file__).parents[3] / "examples" / "pipeline"
PLACE = "s3://lake/tiered"
WITHOUT_ROWS = {"Cost a month, by topic", "Orphaned, by cause"}
"""There are no prices, and nothing is orphaned."""


def test_every_panel_shows_what_the_tables_have(kafka_4: Path, tmp_path: Path) -> None:
    pipeline = CapturedPipeline.of_kafka(kafka_4, tmp_path / "tables")
    pipeline.run()
    views = (EXAMPLE / "duckdb_views.sql").read_text()
    panels: list[dict[str, Any]] = json.loads((EXAMPLE / "dashboard.json").read_text())["panels"]

    with duckdb.connect() as session:
        session.execute(views.replace(PLACE, str(pipeline.tables)))
        seen = {name: session.sql(f"SELECT * FROM {name}").columns for name in TABLES}
        rows = {
            panel["title"]: session.sql(target["rawSql"]).fetchall() for panel in panels for target in panel["targets"]
        }

    assert {name: set(columns) for name, columns in seen.items()} == {
        name: set(kind.read_schema.names) for name, kind in TABLES.items()
    }
    assert {title for title, found in rows.items() if not found} == WITHOUT_ROWS
    stored = sum(row[2] for row in rows["Stored, by topic"])
    assert stored == sum(file.stat().st_size for file in pipeline.store.rglob("*") if file.is_file())
