"""A bucket's inventory stands for its listing, or for nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from gzip import decompress as gunzipped
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.rigs.inventories import (
    BUCKET,
    GOOGLE_FIELDS,
    GOOGLE_MANIFEST,
    ROOT,
    S3_CHECKSUM,
    S3_DATA,
    S3_FIELDS,
    S3_MANIFEST,
    TAKEN_MS,
    Files,
    google_report,
    google_row,
    s3_inventory,
    s3_manifest,
    s3_row,
)
from tieredctl.errors import TieredctlError
from tieredctl.ops.orphans.bucket_inventory import BucketPlace, find_inventory
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.memory import MemoryStore

S3_OBJECTS = [
    StoredObject("t-0/a b.log", 10, TAKEN_MS - 5_000, '"9a0364b9e99bb480dd25e1f0284c8555"', "STANDARD"),
    StoredObject('t-0/a+b%2F,"c".log', 0, TAKEN_MS - 4_000, '"9a0364b9e99bb480dd25e1f0284c8555-12"', "GLACIER"),
    StoredObject("t-0/ünïcode\n.log", 7, 1_000, '"d41d8cd98f00b204e9800998ecf8427e"', "DEEP_ARCHIVE"),
    StoredObject("z", 1 << 40, TAKEN_MS, '"x"', "GLACIER"),
]
GOOGLE_CLASSES = {"STANDARD": "STANDARD", "GLACIER": "NEARLINE", "DEEP_ARCHIVE": "ARCHIVE"}
GOOGLE_OBJECTS = [
    stored._replace(
        version=str(1_752_000_000_000_000 + number), storage_class=GOOGLE_CLASSES[stored.storage_class or ""]
    )
    for number, stored in enumerate(S3_OBJECTS)
]
MARKER = StoredObject("", 0, 0, '"x"')
"""The folder that the console makes for the store's own root."""

S3_FORMS = [pytest.param(False, id="CSV"), pytest.param(True, id="Parquet")]
GOOGLE_FORMS = [
    pytest.param({"header": True}, id="CSV"),
    pytest.param({"header": False}, id="CSV without header"),
    pytest.param({"parquet": True}, id="Parquet"),
]


def listed(files: Files, manifest: str, scheme: str, root: str = ROOT) -> list[StoredObject]:
    store = MemoryStore()
    for name, data in files.items():
        store.put(name, data)
    found = find_inventory(store, manifest, BucketPlace(scheme, BUCKET, root))
    rows = [row for batch in found.batches() for row in batch.to_pylist()]
    objects = [
        StoredObject(
            row["key"].decode("utf-8", "replace"),
            row["size"],
            row["lastModifiedMs"],
            (row["version"] or b"").decode("utf-8", "replace"),
            row["storageClass"] or None,
        )
        for row in rows
    ]
    return sorted(objects)


def of_s3(files: Files, root: str = ROOT) -> list[StoredObject]:
    return listed(files, S3_MANIFEST, "s3", root)


def of_google(files: Files, root: str = ROOT) -> list[StoredObject]:
    return listed(files, GOOGLE_MANIFEST, "gs", root)


def s3_rows(objects: Sequence[StoredObject] = S3_OBJECTS) -> list[dict[str, object]]:
    return [s3_row(stored) for stored in objects]


def google_rows(objects: Sequence[StoredObject] = GOOGLE_OBJECTS) -> list[dict[str, object]]:
    return [google_row(stored) for stored in objects]


@pytest.mark.parametrize("parquet", S3_FORMS)
def test_an_s3_inventory_has_what_a_listing_has(parquet: bool) -> None:
    assert of_s3(s3_inventory(s3_rows(), parquet=parquet)) == sorted(S3_OBJECTS)


@pytest.mark.parametrize("form", GOOGLE_FORMS)
def test_a_google_report_has_what_a_listing_has(form: dict[str, Any]) -> None:
    assert of_google(google_report(google_rows(), **form)) == sorted(GOOGLE_OBJECTS)


@pytest.mark.parametrize("parquet", S3_FORMS)
def test_past_versions_and_delete_markers_are_no_objects(parquet: bool) -> None:
    past = s3_row(S3_OBJECTS[0], latest=False)
    removed = s3_row(S3_OBJECTS[0]._replace(key="gone"), delete_marker=True)
    current = s3_row(S3_OBJECTS[0]._replace(version='"newer"'))

    found = of_s3(s3_inventory([past, removed, current], parquet=parquet))

    assert found == [S3_OBJECTS[0]._replace(version='"newer"')]


@pytest.mark.parametrize("form", GOOGLE_FORMS)
def test_past_generations_are_no_objects(form: dict[str, Any]) -> None:
    past = google_row(GOOGLE_OBJECTS[0], deleted_ms=TAKEN_MS)
    current = google_row(GOOGLE_OBJECTS[0]._replace(version="9"))

    assert of_google(google_report([past, current], **form)) == [GOOGLE_OBJECTS[0]._replace(version="9")]


@pytest.mark.parametrize(
    ("root", "keys"),
    [
        (ROOT, ["a"]),
        ("clusters/", ["a/a", "ab/b"]),
        ("", ["clusters/a/", "clusters/a/a", "clusters/ab/b", "other"]),
        ("nothing/", []),
    ],
)
def test_only_what_is_below_the_stores_root_is_the_stores(root: str, keys: list[str]) -> None:
    rows = s3_rows([MARKER, MARKER._replace(key="a")])
    rows += [rows[0] | {"Key": "clusters/ab/b"}, rows[0] | {"Key": "other"}]

    found = of_s3(s3_inventory(rows), root)

    assert [stored.key for stored in found if stored.key != "a/"] == keys


def test_a_version_that_is_not_told_is_left_open() -> None:
    without = [name for name in S3_FIELDS if name != "ETag"]
    assert {stored.version for stored in of_s3(s3_inventory(s3_rows(), fields=without))} == {""}


@pytest.mark.parametrize("parquet", S3_FORMS)
def test_a_storage_class_that_is_not_told_is_left_open(parquet: bool) -> None:
    without = [name for name in S3_FIELDS if name != "StorageClass"]
    found = of_s3(s3_inventory(s3_rows(), parquet=parquet, fields=without))
    assert found == sorted(stored._replace(storage_class=None) for stored in S3_OBJECTS)


def test_a_report_that_does_not_tell_when_objects_were_made_tells_when_they_were_updated() -> None:
    without = [name for name in GOOGLE_FIELDS if name != "timeCreated"]
    found = of_google(google_report(google_rows(), fields=without))
    assert [stored.last_modified_ms for stored in found] == [
        one.last_modified_ms + 5_000 for one in sorted(GOOGLE_OBJECTS)
    ]


def test_an_empty_report_is_an_empty_listing() -> None:
    assert of_google(google_report([])) == []


def moved(files: Files, where: Callable[[str], str]) -> Files:
    return {where(name): data for name, data in files.items()}


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(lambda name: name.removeprefix("reports/tiered/"), id="one configuration's folder"),
        pytest.param(lambda name: "copy/of/" + name, id="the whole bucket"),
        pytest.param(lambda name: name.rpartition("/")[2], id="all files in one folder"),
    ],
)
def test_an_inventory_may_be_copied_elsewhere(where: Callable[[str], str]) -> None:
    files = moved(s3_inventory(s3_rows()), where)
    assert listed(files, where(S3_MANIFEST), "s3") == sorted(S3_OBJECTS)


def refusal(files: Files, manifest: str = S3_MANIFEST, scheme: str = "s3", code: str = "inventory-unusable") -> str:
    with pytest.raises(TieredctlError) as raised:
        listed(files, manifest, scheme)
    assert raised.value.code == code
    return raised.value.message


def test_a_missing_file_is_an_error() -> None:
    files = s3_inventory(s3_rows())
    del files[S3_DATA + "1.csv.gz"]

    assert "is missing" in refusal(files)


def test_a_missing_file_of_a_report_is_an_error() -> None:
    files = google_report(google_rows())
    del files[next(name for name in files if name.endswith("_1.csv"))]

    assert "is missing" in refusal(files, GOOGLE_MANIFEST, "gs")


def test_a_file_that_was_cut_off_is_an_error() -> None:
    files = s3_inventory(s3_rows())
    files[S3_DATA + "1.csv.gz"] = files[S3_DATA + "1.csv.gz"][:-1]

    assert "bytes" in refusal(files)


def test_a_file_with_one_bit_changed_is_an_error() -> None:
    files = s3_inventory(s3_rows(), parquet=True)
    data = bytearray(files[S3_DATA + "0.parquet"])
    data[40] ^= 1
    files[S3_DATA + "0.parquet"] = bytes(data)

    assert "checksum" in refusal(files)


def test_a_manifest_that_is_not_the_one_that_was_signed_off_is_an_error() -> None:
    files = s3_inventory(s3_rows())
    files[S3_CHECKSUM] = b"0" * 32

    assert "checksum" in refusal(files)


def test_a_report_with_fewer_records_than_were_processed_is_an_error() -> None:
    files = google_report(google_rows())
    shard = next(name for name in files if name.endswith("_1.csv"))
    files[shard] = files[shard][: files[shard].rindex(b"\n", 0, -1) + 1]

    assert "3 records" in refusal(files, GOOGLE_MANIFEST, "gs")


def test_a_report_in_progress_is_an_error() -> None:
    files = google_report(google_rows())
    manifest = json.loads(files[GOOGLE_MANIFEST])
    files[GOOGLE_MANIFEST] = json.dumps(manifest | {"shard_count": 3}).encode()

    assert "3 files" in refusal(files, GOOGLE_MANIFEST, "gs")


@pytest.mark.parametrize("missing", ["Key", "Size", "LastModifiedDate"])
@pytest.mark.parametrize("parquet", S3_FORMS)
def test_an_inventory_that_does_not_tell_what_is_needed_is_refused(missing: str, parquet: bool) -> None:
    fields = [name for name in S3_FIELDS if name != missing]
    assert "does not have" in refusal(s3_inventory(s3_rows(), parquet=parquet, fields=fields))


def test_another_buckets_inventory_is_refused() -> None:
    assert "an inventory of s3://other" in refusal(s3_manifest({"a": b""}, sourceBucket="other"))


def test_another_clouds_inventory_is_refused() -> None:
    assert "an inventory of s3://tiered" in refusal(s3_inventory(s3_rows()), scheme="gs")


def test_a_report_that_leaves_open_of_which_bucket_it_is_must_tell_of_each_object() -> None:
    files = google_report([row | {"bucket": "other"} for row in google_rows()])
    manifest = json.loads(files[GOOGLE_MANIFEST])
    del manifest["report_config"]["objectMetadataReportOptions"]["storageFilters"]
    files[GOOGLE_MANIFEST] = json.dumps(manifest).encode()

    assert "another bucket" in refusal(files, GOOGLE_MANIFEST, "gs")


def test_orc_is_refused_with_what_to_do() -> None:
    assert "ORC" in refusal(s3_manifest({"a": b""}, "ORC"))


@pytest.mark.parametrize("manifest", [b"{", b'{"sourceBucket": {}}', b'{"sourceBucket": "a"}', b'{"a": ' * 100_000])
def test_a_damaged_manifest_is_refused(manifest: bytes) -> None:
    refusal({S3_MANIFEST: manifest})


@pytest.mark.parametrize("manifest", [b"", b"[]", b"{}", b"\xff", b'"text"', b"[" * 100_000])
def test_what_is_not_a_manifest_is_a_wrong_argument(manifest: bytes) -> None:
    refusal({S3_MANIFEST: manifest}, code="usage")


@pytest.mark.parametrize(
    "row",
    [
        {"Size": "many"},
        {"Size": -1},
        {"Size": None},
        {"Size": 1 << 63},
        {"Size": "9" * 5_000},
        {"Size": "1e3"},
        {"IsLatest": "perhaps"},
        {"Bucket": "other"},
    ],
    ids=str,
)
def test_a_row_that_cannot_be_is_an_error(row: dict[str, object]) -> None:
    refusal(s3_inventory([*s3_rows(), s3_row(S3_OBJECTS[0]) | row]))


def of_one_row(size: pa.Array, modified: pa.Array) -> Files:
    """An inventory in Parquet, whose columns may have any type."""
    columns = {"bucket": [BUCKET], "key": [ROOT + "a"], "size": size, "last_modified_date": modified, "e_tag": ["x"]}
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    files = {f"{S3_DATA}0.parquet": file.getvalue()}
    return files | s3_manifest(files, "Parquet", "message")


SIZE, TIME = pa.array([1], pa.int64()), pa.array([TAKEN_MS], pa.timestamp("ms", "UTC"))
MILLISECONDS = pa.timestamp("ms", "UTC")


def test_columns_of_the_right_types_are_read() -> None:
    assert of_s3(of_one_row(SIZE, TIME)) == [StoredObject("a", 1, TAKEN_MS, '"x"')]


@pytest.mark.parametrize(
    "size",
    [
        pa.array([-1], pa.int64()),
        pa.array([1 << 63], pa.uint64()),
        pa.array([1.0]),
        pa.array([float("nan")]),
        pa.array([True]),
        pa.array(["many"]),
        pa.array([[1]]),
        TIME,
    ],
    ids=lambda column: f"{column.type} {column[0]}",
)
def test_sizes_that_cannot_be_are_an_error(size: pa.Array) -> None:
    refusal(of_one_row(size, TIME))


@pytest.mark.parametrize(
    "modified",
    [
        pa.array([(1 << 63) - 1], MILLISECONDS),
        pa.array([-(1 << 63)], MILLISECONDS),
        pa.array([253_402_300_800_000], MILLISECONDS),
        pa.array([-1], MILLISECONDS),
        SIZE,
        pa.array([True]),
        pa.array([1e300]),
        pa.array([1], pa.time64("us")),
        pa.array(["yesterday"]),
        pa.array(["9999-12-31T23:59:59Z"]),
        pa.array(["0001-01-01T00:00:00Z"]),
        pa.array([""]),
    ],
    ids=lambda column: f"{column.type}",
)
def test_times_that_cannot_be_are_an_error(modified: pa.Array) -> None:
    refusal(of_one_row(SIZE, modified))


@settings(max_examples=examples(150))
@given(data=st.data(), parquet=st.booleans(), google=st.booleans())
def test_a_damaged_inventory_is_read_or_refused(data: st.DataObject, parquet: bool, google: bool) -> None:
    files = google_report(google_rows(), parquet=parquet) if google else s3_inventory(s3_rows(), parquet=parquet)
    victim = data.draw(st.sampled_from(sorted(files)))
    content = gunzipped(files[victim]) if victim.endswith(".gz") else files[victim]
    at = data.draw(st.integers(0, len(content)))
    files[victim] = content[:at] + data.draw(st.binary(max_size=3)) + content[at + data.draw(st.integers(0, 3)) :]
    if victim.startswith(S3_DATA):
        shards = {name: shard for name, shard in files.items() if name.startswith(S3_DATA)}
        files |= s3_manifest(shards, "Parquet" if parquet else "CSV")
    if victim == S3_MANIFEST:
        del files[S3_CHECKSUM]

    with suppress(TieredctlError):
        of_google(files) if google else of_s3(files)
