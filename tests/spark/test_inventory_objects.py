"""An inventory that executors read has the rows that the local engine's reading has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.kept_frames import Keep, kept_by_executors
from tieredctl_spark.listing_frames import Batches, inventory_objects, listing_frame
from tieredctl_spark.output_folder import OutputFolder

from tests.rigs.inventories import (
    BUCKET,
    GOOGLE_MANIFEST,
    ROOT,
    S3_MANIFEST,
    TAKEN_MS,
    Files,
    google_report,
    google_row,
    s3_inventory,
    s3_row,
)
from tests.shares import divided
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import uuid_text
from tieredctl.ops.remote.listing import LISTING_SCHEMA
from tieredctl.ports.object_store import StoredObject
from tieredctl.wiring.listing_place import ListingPlace
from tieredctl.wiring.places import StorePlace

pytestmark = pytest.mark.spark

TOPIC_ID = "ABEiM0RVZneImaq7zN3u_w"
SEGMENT = f"t-3-{TOPIC_ID}/{17:020d}-{uuid_text(bytes(range(16)))}.log"
OBJECTS = [
    StoredObject(SEGMENT, 10, TAKEN_MS - 5_000, '"9a0364b9e99bb480dd25e1f0284c8555"', "STANDARD"),
    StoredObject('t-0/a+b%2F ,"c".log', 0, TAKEN_MS - 4_000, '"9a0364b9e99bb480dd25e1f0284c8555-12"', "GLACIER"),
    StoredObject("t-0/ünïcode\n.log", 7, 1_000, '"d41d8cd98f00b204e9800998ecf8427e"', "DEEP_ARCHIVE"),
    StoredObject("z", 1 << 40, TAKEN_MS, '"x"', "GLACIER"),
]
GENERATIONS = [one._replace(version=str(1_752_000_000_000_000 + number)) for number, one in enumerate(OBJECTS)]
OWN = StoredObject(".tieredctl/quarantine/x", 1, 1_000, '"1"', "STANDARD")


def s3(**how: Any) -> tuple[Files, str, str]:
    rows = [s3_row(one) for one in (*OBJECTS, OWN)]
    rows += [s3_row(OBJECTS[3]._replace(key="gone"), delete_marker=True), s3_row(OBJECTS[0], latest=False)]
    return s3_inventory(rows, **how), S3_MANIFEST, "s3"


def google(**how: Any) -> tuple[Files, str, str]:
    rows = [google_row(one) for one in (*GENERATIONS, OWN._replace(version="5"))]
    rows.append(google_row(GENERATIONS[0]._replace(version="4"), deleted_ms=TAKEN_MS))
    return google_report(rows, **how), GOOGLE_MANIFEST, "gs"


def written(files: Files, folder: Path) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


MADE = {
    "S3 CSV": s3(),
    "S3 Parquet": s3(parquet=True),
    "Google CSV": google(),
    "Google CSV without header": google(header=False),
    "Google Parquet": google(parquet=True),
}


@pytest.mark.parametrize("name", divided([*MADE]))
def test_rows_are_the_objects_that_were_there(spark: SparkSession, tmp_path: Path, name: str) -> None:
    files, manifest, scheme = MADE[name]
    written(files, tmp_path)
    place = StorePlace(f"{scheme}://{BUCKET}/{ROOT}", layout="local")

    found = inventory_objects(spark, str(tmp_path / manifest), place).orderBy("key").toArrow().to_pylist()

    expected = sorted(OBJECTS if scheme == "s3" else GENERATIONS)
    assert [(row["key"], row["size"], row["version"], row["storageClass"]) for row in found] == [
        (one.key, one.size, one.version, one.storage_class) for one in expected
    ]
    assert [round(row["lastModified"].timestamp() * 1_000) for row in found] == [
        one.last_modified_ms for one in expected
    ]
    (segment,) = (row for row in found if row["key"] == SEGMENT)
    assert (segment["topicId"], segment["partition"], segment["startOffset"], segment["part"]) == (
        TOPIC_ID,
        3,
        17,
        "log",
    )


def test_an_inventory_with_a_file_missing_or_cut_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    files, manifest, _ = s3()
    place = StorePlace(f"s3://{BUCKET}/{ROOT}", layout="local")
    first = next(name for name in files if name.endswith(".csv.gz"))
    written(files | {first: files[first][:-1]}, tmp_path / "cut")
    written({name: data for name, data in files.items() if name != first}, tmp_path / "missing")

    for folder, said in (("cut", "bytes, but its manifest gives"), ("missing", "is missing in")):
        with pytest.raises(TieredctlError, match=said) as raised:
            inventory_objects(spark, str(tmp_path / folder / manifest), place)
        assert raised.value.code is ErrorCode.INVENTORY_UNUSABLE


def test_an_inventory_with_an_object_twice_cannot_stand_for_a_listing(spark: SparkSession, tmp_path: Path) -> None:
    rows = [s3_row(one) for one in (*OBJECTS, OBJECTS[1])]
    written(s3_inventory(rows), tmp_path)
    place = StorePlace(f"s3://{BUCKET}/{ROOT}", layout="local")
    remote, listing = place.open(), ListingPlace(inventory=str(tmp_path / S3_MANIFEST))

    refused = []
    for read in (
        lambda: listing_frame(spark, listing, place, remote).kept(kept_by_executors),
        lambda: inventory_objects(spark, str(tmp_path / S3_MANIFEST), place),
    ):
        with pytest.raises(TieredctlError) as raised:
            read()
        refused.append(raised.value.code)

    assert refused == [ErrorCode.INVENTORY_UNUSABLE] * 2


def as_it_is(batches: Batches) -> Iterator[pa.Table]:
    return (pa.Table.from_batches([batch]) for batch in batches)


@pytest.mark.parametrize("kind", divided(["of the job", "of the command line"]))
def test_a_report_with_more_rows_than_it_gives_cannot_stand_for_a_listing(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    files, manifest, _ = google()
    place = StorePlace(f"gs://{BUCKET}/{ROOT}", layout="local")
    remote, listing = place.open(), ListingPlace(inventory=str(tmp_path / manifest))
    keep: Keep = OutputFolder(spark, str(tmp_path / "out")).keep if kind == "of the job" else kept_by_executors

    written(files, tmp_path)
    listed = listing_frame(spark, listing, place, remote).kept(keep).through(as_it_is, LISTING_SCHEMA)
    assert {bytes(row["key"]).decode() for row in listed.collect()} == {one.key for one in (*OBJECTS, OWN)}

    written({manifest: files[manifest].replace(b'"records_processed": 6', b'"records_processed": 5')}, tmp_path)
    with pytest.raises(TieredctlError, match="have 6 records, but its manifest gives 5"):
        listing_frame(spark, listing, place, remote).kept(keep)
    with pytest.raises(TieredctlError) as refused:
        inventory_objects(spark, str(tmp_path / manifest), place)
    assert refused.value.code is ErrorCode.INVENTORY_UNUSABLE
