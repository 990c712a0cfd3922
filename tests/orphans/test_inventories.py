"""A bucket's inventory stands for its listing, or for nothing."""

from __future__ import annotations

import hashlib
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
    AZURE_CHECKSUM,
    AZURE_FIELDS,
    AZURE_MANIFEST,
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
    azure_inventory,
    azure_manifest,
    azure_row,
    google_report,
    google_row,
    s3_inventory,
    s3_manifest,
    s3_row,
)
from tieredctl.errors import ErrorCode, TieredctlError
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
AZURE_TIERS = {"STANDARD": "Hot", "GLACIER": "Cool", "DEEP_ARCHIVE": "Archive"}
AZURE_OBJECTS = [stored._replace(storage_class=AZURE_TIERS[stored.storage_class or ""]) for stored in S3_OBJECTS]
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


def of_azure(files: Files, root: str = ROOT) -> list[StoredObject]:
    return listed(files, AZURE_MANIFEST, "az", root)


def azure_rows(objects: Sequence[StoredObject] = AZURE_OBJECTS) -> list[dict[str, object]]:
    return [azure_row(stored) for stored in objects]


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
def test_an_azure_inventory_has_what_a_listing_has_of_one_container(parquet: bool) -> None:
    others = [azure_row(AZURE_OBJECTS[0], Name=f"{name}/{ROOT}a") for name in ("tiered2", "tiere", "other")]

    assert of_azure(azure_inventory([*azure_rows(), *others], parquet=parquet)) == sorted(AZURE_OBJECTS)


@pytest.mark.parametrize("parquet", S3_FORMS)
def test_versions_snapshots_deleted_blobs_and_folders_of_azure_are_no_objects(parquet: bool) -> None:
    found = AZURE_OBJECTS[0]
    others = [
        azure_row(found, VersionId="1", IsCurrentVersion=False),
        azure_row(found, Snapshot="2026-11-18T09:06:00.0000000Z"),
        azure_row(found, Deleted=True),
        azure_row(found._replace(key="folder", size=0), hdi_isfolder=True),
    ]
    for row in (azure_row(found), azure_row(found, VersionId="2", IsCurrentVersion=True, Deleted=False)):
        assert of_azure(azure_inventory([*others, row], parquet=parquet)) == [found]


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


def test_only_what_is_below_the_stores_root_is_the_stores() -> None:
    cases: list[tuple[str, list[str]]] = [
        (ROOT, ["a"]),
        ("clusters/", ["a/a", "ab/b"]),
        ("", ["clusters/a/", "clusters/a/a", "clusters/ab/b", "other"]),
        ("nothing/", []),
    ]
    for root, keys in cases:
        rows = s3_rows([MARKER, MARKER._replace(key="a")])
        rows += [rows[0] | {"Key": "clusters/ab/b"}, rows[0] | {"Key": "other"}]
        found = of_s3(s3_inventory(rows), root)
        assert [stored.key for stored in found if stored.key != "a/"] == keys, (root, keys)


def test_what_is_not_told_is_left_open() -> None:
    # A version that is not told is left open.
    without = [name for name in S3_FIELDS if name != "ETag"]
    assert {stored.version for stored in of_s3(s3_inventory(s3_rows(), fields=without))} == {""}
    # A report that does not tell when objects were made tells when they were updated.
    without = [name for name in GOOGLE_FIELDS if name != "timeCreated"]
    found = of_google(google_report(google_rows(), fields=without))
    assert [stored.last_modified_ms for stored in found] == [
        one.last_modified_ms + 5_000 for one in sorted(GOOGLE_OBJECTS)
    ]
    # An empty report is an empty listing.
    assert of_google(google_report([])) == []
    # Columns of the right types are read.
    assert of_s3(of_one_row(SIZE, TIME)) == [StoredObject("a", 1, TAKEN_MS, '"x"')]


@pytest.mark.parametrize("parquet", S3_FORMS)
def test_a_storage_class_that_is_not_told_is_left_open(parquet: bool) -> None:
    without = [name for name in S3_FIELDS if name != "StorageClass"]
    found = of_s3(s3_inventory(s3_rows(), parquet=parquet, fields=without))
    assert found == sorted(stored._replace(storage_class=None) for stored in S3_OBJECTS)


MOVES: dict[str, Callable[[str], str]] = {
    "one configuration's folder": lambda name: name.removeprefix("reports/tiered/"),
    "the whole bucket": lambda name: "copy/of/" + name,
    "all files in one folder": lambda name: name.rpartition("/")[2],
}


def moved(files: Files, where: Callable[[str], str]) -> Files:
    return {where(name): data for name, data in files.items()}


def test_an_inventory_may_be_copied_elsewhere() -> None:
    for name, where in MOVES.items():
        files = moved(s3_inventory(s3_rows()), where)
        assert listed(files, where(S3_MANIFEST), "s3") == sorted(S3_OBJECTS), name


def refusal(files: Files, manifest: str = S3_MANIFEST, scheme: str = "s3", code: str = "inventory-unusable") -> str:
    with pytest.raises(TieredctlError) as raised:
        listed(files, manifest, scheme)
    assert raised.value.code == code
    return raised.value.message


def without(files: Files, ending: str) -> Files:
    return {name: data for name, data in files.items() if not name.endswith(ending)}


def with_changed(files: Files, ending: str, change: Callable[[bytes], bytes]) -> Files:
    return {name: change(data) if name.endswith(ending) else data for name, data in files.items()}


def with_flipped_bit(data: bytes) -> bytes:
    return data[:40] + bytes([data[40] ^ 1]) + data[41:]


def without_last_record(data: bytes) -> bytes:
    return data[: data.rindex(b"\n", 0, -1) + 1]


def in_progress(manifest: bytes) -> bytes:
    return json.dumps(json.loads(manifest) | {"shard_count": 3}).encode()


def of_no_bucket(manifest: bytes) -> bytes:
    document = json.loads(manifest)
    del document["report_config"]["objectMetadataReportOptions"]["storageFilters"]
    return json.dumps(document).encode()


def test_an_s3_inventory_that_is_not_whole_is_an_error() -> None:
    whole = s3_inventory(s3_rows())
    for name, files in {
        "a missing file": without(whole, "1.csv.gz"),
        "a file that was cut off": with_changed(whole, "1.csv.gz", lambda data: data[:-1]),
        "one bit": with_changed(s3_inventory(s3_rows(), parquet=True), "0.parquet", with_flipped_bit),
        "another manifest than the one that was signed off": whole | {S3_CHECKSUM: b"0" * 32},
        "another bucket's": s3_manifest({"a": b""}, sourceBucket="other"),
        "ORC": s3_manifest({"a": b""}, "ORC"),
        **{
            f"no {missing}, Parquet {parquet}": s3_inventory(
                s3_rows(), parquet=parquet, fields=[one for one in S3_FIELDS if one != missing]
            )
            for missing in ("Key", "Size", "LastModifiedDate")
            for parquet in (False, True)
        },
    }.items():
        assert refusal(files), name
    assert "an inventory of s3://tiered" in refusal(whole, scheme="gs")


def test_an_azure_inventory_that_is_not_whole_or_leaves_out_the_store_is_an_error() -> None:
    whole = azure_inventory(azure_rows())
    assert of_azure(azure_inventory(azure_rows(), prefixMatch=["a", f"{BUCKET}/clus"], excludePrefix=["other"]))
    for name, files in {
        "a missing file": without(whole, "_1.csv"),
        "a file that was cut off": with_changed(whole, "_1.csv", lambda data: data[:-1]),
        "one that is still written": without(whole, ".checksum"),
        "another manifest than the one that was signed off": whole | {AZURE_CHECKSUM: b"0" * 32},
        "one that failed": azure_manifest({}, "csv", status="Failed"),
        "one that is pending": azure_manifest({}, "csv", status="Pending"),
        "one of containers": azure_manifest({}, "csv", ruleDefinition={"objectType": "container"}),
        "one of recent blobs": azure_inventory(azure_rows(), creationTime=3),
        "one of page blobs": azure_inventory(azure_rows(), blobTypes=["pageBlob"]),
        "one of other containers": azure_inventory(azure_rows(), prefixMatch=["other"]),
        "one of a part of the store": azure_inventory(azure_rows(), prefixMatch=[f"{BUCKET}/{ROOT}t-0"]),
        "one without a part of the store": azure_inventory(azure_rows(), excludePrefix=[f"{BUCKET}/{ROOT}t-0"]),
        "one without the store": azure_inventory(azure_rows(), excludePrefix=[BUCKET]),
        **{
            f"no {missing}, Parquet {parquet}": azure_inventory(
                azure_rows(), parquet=parquet, fields=[one for one in AZURE_FIELDS if one != missing]
            )
            for missing in ("Name", "Content-Length", "Last-Modified")
            for parquet in (False, True)
        },
    }.items():
        assert refusal(files, AZURE_MANIFEST, "az"), name


def test_a_google_report_that_is_not_whole_is_an_error() -> None:
    whole = google_report(google_rows())
    others = google_report([row | {"bucket": "other"} for row in google_rows()])
    for name, files in {
        "a missing file": without(whole, "_1.csv"),
        "fewer records than were processed": with_changed(whole, "_1.csv", without_last_record),
        "one in progress": with_changed(whole, GOOGLE_MANIFEST, in_progress),
        "another bucket's objects": with_changed(others, GOOGLE_MANIFEST, of_no_bucket),
    }.items():
        assert refusal(files, GOOGLE_MANIFEST, "gs"), name


def test_versions_of_which_none_is_said_to_be_the_current_one_are_an_error() -> None:
    s3_fields = [one for one in S3_FIELDS if one not in ("IsLatest", "IsDeleteMarker")]
    google_fields = [one for one in GOOGLE_FIELDS if one != "timeDeleted"]
    for parquet in (False, True):
        with_versions = [row for one in S3_OBJECTS for row in (s3_row(one), *3 * [s3_row(one, latest=False)])]
        deleted = [row for one in GOOGLE_OBJECTS for row in (google_row(one), *3 * [google_row(one, deleted_ms=1)])]

        of_s3(s3_inventory(with_versions, parquet=parquet))
        of_google(google_report(deleted, parquet=parquet))

        assert "twice" in refusal(s3_inventory(with_versions, parquet=parquet, fields=s3_fields))
        report = google_report(deleted, parquet=parquet, fields=google_fields)
        assert "twice" in refusal(report, GOOGLE_MANIFEST, "gs")


def test_a_damaged_manifest_is_refused_and_what_is_none_is_a_wrong_argument() -> None:
    for manifest in (b"{", b'{"sourceBucket": {}}', b'{"sourceBucket": "a"}', b'{"a": ' * 100_000):
        refusal({S3_MANIFEST: manifest})
    for manifest in (b"", b"[]", b"{}", b"\xff", b'"text"', b"[" * 100_000):
        refusal({S3_MANIFEST: manifest}, code="usage")


def test_a_manifest_that_names_a_file_twice_is_an_error() -> None:
    for files, manifest, scheme in (
        (without(s3_inventory(s3_rows()), ".checksum"), S3_MANIFEST, "s3"),
        (google_report(google_rows()), GOOGLE_MANIFEST, "gs"),
    ):
        assert "names a file twice" in refusal(with_changed(files, manifest, with_first_file_twice), manifest, scheme)


def test_an_inventory_with_an_object_twice_is_an_error() -> None:
    s3, google, azure = s3_rows(), google_rows(), azure_rows()
    for read, files in (
        (of_s3, s3_inventory([*s3, s3[1]])),
        (of_s3, s3_inventory([*s3, *s3], parquet=True)),
        (of_google, google_report([*google, google[1]])),
        (of_azure, azure_inventory([*azure, azure[1]])),
    ):
        with pytest.raises(TieredctlError) as refused:
            read(files)
        assert refused.value.code is ErrorCode.INVENTORY_UNUSABLE


def with_first_file_twice(manifest: bytes) -> bytes:
    document = json.loads(manifest)
    files = document.get("files") or document["report_shards_file_names"]
    files[1] = files[0]
    return json.dumps(document).encode()


def test_a_row_that_cannot_be_is_an_error() -> None:
    sizes: tuple[object, ...] = ("many", -1, None, 1 << 63, "9" * 5_000, "1e3")
    rows: list[dict[str, object]] = [*({"Size": size} for size in sizes), {"IsLatest": "perhaps"}, {"Bucket": "other"}]
    for row in rows:
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


def test_sizes_and_times_that_cannot_be_are_an_error() -> None:
    for size in (
        *(pa.array([-1], pa.int64()), pa.array([1 << 63], pa.uint64()), pa.array([1.0]), pa.array([float("nan")])),
        *(pa.array([True]), pa.array(["many"]), pa.array([[1]]), TIME),
    ):
        assert refusal(of_one_row(size, TIME)), size
    milliseconds = ((1 << 63) - 1, -(1 << 63), 253_402_300_800_000, -1)
    texts = ("yesterday", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "")
    for modified in (
        *(pa.array([one], MILLISECONDS) for one in milliseconds),
        *(pa.array([one]) for one in texts),
        *(SIZE, pa.array([True]), pa.array([1e300]), pa.array([1], pa.time64("us"))),
    ):
        assert refusal(of_one_row(SIZE, modified)), modified


@settings(max_examples=examples(150))
@given(data=st.data(), parquet=st.booleans(), cloud=st.sampled_from(["s3", "gs", "az"]))
def test_a_damaged_inventory_is_read_or_refused(data: st.DataObject, parquet: bool, cloud: str) -> None:
    files = {
        "s3": lambda: s3_inventory(s3_rows(), parquet=parquet),
        "gs": lambda: google_report(google_rows(), parquet=parquet),
        "az": lambda: azure_inventory(azure_rows(), parquet=parquet),
    }[cloud]()
    victim = data.draw(st.sampled_from(sorted(files)))
    content = gunzipped(files[victim]) if victim.endswith(".gz") else files[victim]
    at = data.draw(st.integers(0, len(content)))
    files[victim] = content[:at] + data.draw(st.binary(max_size=3)) + content[at + data.draw(st.integers(0, 3)) :]
    if victim.startswith(S3_DATA):
        shards = {name: shard for name, shard in files.items() if name.startswith(S3_DATA)}
        files |= s3_manifest(shards, "Parquet" if parquet else "CSV")
    if victim == S3_MANIFEST:
        del files[S3_CHECKSUM]
    if victim == AZURE_MANIFEST:
        files[AZURE_CHECKSUM] = hashlib.md5(files[victim]).hexdigest().encode()

    with suppress(TieredctlError):
        {"s3": of_s3, "gs": of_google, "az": of_azure}[cloud](files)
