"""Writes inventories as Amazon S3, Google Cloud Storage and Azure do: by their documentation, since no emulator
has them."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa
import pyarrow.parquet as pq

from tieredctl.ports.object_store import StoredObject

BUCKET = "tiered"
ROOT = "clusters/a/"
"""Where in the bucket the store is."""
TAKEN_MS = 1_795_000_000_000
S3_MANIFEST = "reports/tiered/daily/2026-11-18T09-06Z/manifest.json"
S3_CHECKSUM = "reports/tiered/daily/2026-11-18T09-06Z/manifest.checksum"
S3_DATA = "reports/tiered/daily/data/"
GOOGLE_MANIFEST = "reports/7c3c_2026-11-18T09:06_manifest.json"
GOOGLE_SHARD = "reports/7c3c_2026-11-18T09:06_"
S3_FIELDS = (
    "Bucket",
    "Key",
    "VersionId",
    "IsLatest",
    "IsDeleteMarker",
    "Size",
    "LastModifiedDate",
    "ETag",
    "StorageClass",
)
_S3_PARQUET = {
    "bucket": pa.string(),
    "key": pa.string(),
    "version_id": pa.string(),
    "is_latest": pa.bool_(),
    "is_delete_marker": pa.bool_(),
    "size": pa.int64(),
    "last_modified_date": pa.timestamp("ms", "UTC"),
    "e_tag": pa.string(),
    "storage_class": pa.string(),
}
GOOGLE_FIELDS = (
    "project",
    "bucket",
    "name",
    "size",
    "timeCreated",
    "timeDeleted",
    "updated",
    "etag",
    "generation",
    "storageClass",
)
_GOOGLE_PARQUET = {
    "project": pa.string(),
    "bucket": pa.string(),
    "name": pa.string(),
    "size": pa.int64(),
    "timeCreated": pa.timestamp("us", "UTC"),
    "timeDeleted": pa.timestamp("us", "UTC"),
    "updated": pa.timestamp("us", "UTC"),
    "etag": pa.string(),
    "generation": pa.int64(),
    "storageClass": pa.string(),
}

AZURE_MANIFEST = "2026/11/18/09-06-00/segments/segments-manifest.json"
AZURE_CHECKSUM = "2026/11/18/09-06-00/segments/segments-manifest.checksum"
_AZURE_PARQUET = {
    "Name": pa.string(),
    "Content-Length": pa.int64(),
    "Last-Modified": pa.timestamp("ms", "UTC"),
    "Etag": pa.string(),
    "AccessTier": pa.string(),
    "VersionId": pa.string(),
    "IsCurrentVersion": pa.bool_(),
    "Snapshot": pa.string(),
    "Deleted": pa.bool_(),
    "hdi_isfolder": pa.bool_(),
}
AZURE_FIELDS = tuple(_AZURE_PARQUET)

Row = dict[str, Any]
Files = dict[str, bytes]


def s3_row(stored: StoredObject, *, latest: bool = True, delete_marker: bool = False) -> Row:
    """An object as a row, its key below ROOT."""
    values = (BUCKET, ROOT + stored.key, "", latest, delete_marker, None if delete_marker else stored.size)
    version, storage_class = stored.version.strip('"'), stored.storage_class or ""
    return dict(zip(S3_FIELDS, (*values, stored.last_modified_ms, version, storage_class), strict=True))


def s3_inventory(rows: Sequence[Row], *, parquet: bool = False, fields: Sequence[str] = S3_FIELDS) -> Files:
    """An inventory of two files."""
    suffix = "parquet" if parquet else "csv.gz"
    write = _s3_parquet if parquet else _s3_csv
    halves = {f"{S3_DATA}{number}.{suffix}": write(rows[number::2], fields) for number in range(2)}
    return halves | s3_manifest(halves, "Parquet" if parquet else "CSV", ", ".join(fields))


def s3_manifest(files: Files, file_format: str = "CSV", schema: str = ", ".join(S3_FIELDS), **other: Any) -> Files:
    """The manifest of an inventory of these files, and its checksum."""
    manifest = {
        "sourceBucket": BUCKET,
        "destinationBucket": "arn:aws:s3:::reports",
        "version": "2016-11-30",
        "creationTimestamp": str(TAKEN_MS),
        "fileFormat": file_format,
        "fileSchema": schema,
        "files": [
            {"key": name, "size": len(data), "MD5checksum": hashlib.md5(data).hexdigest()}
            for name, data in files.items()
        ],
    }
    text = json.dumps(manifest | other, indent=2).encode()
    return {S3_MANIFEST: text, S3_CHECKSUM: hashlib.md5(text).hexdigest().encode()}


def google_row(stored: StoredObject, *, deleted_ms: int | None = None) -> Row:
    """An object as a row, its key below ROOT."""
    made = (stored.last_modified_ms, deleted_ms, stored.last_modified_ms + 5_000, "CJ==", int(stored.version or 0))
    values = ("project", BUCKET, ROOT + stored.key, stored.size, *made, stored.storage_class or "")
    return dict(zip(GOOGLE_FIELDS, values, strict=True))


def google_report(
    rows: Sequence[Row], *, parquet: bool = False, header: bool = True, fields: Sequence[str] = GOOGLE_FIELDS
) -> Files:
    """A report of two files."""
    shards = {
        f"{GOOGLE_SHARD}{number}.{'parquet' if parquet else 'csv'}": (
            _google_parquet(rows[number::2], fields) if parquet else _google_csv(rows[number::2], fields, header)
        )
        for number in range(2)
    }
    how = {"parquetOptions": {}} if parquet else {"csvOptions": {"delimiter": ",", "headerRequired": header}}
    manifest = {
        "report_config": {
            "objectMetadataReportOptions": {
                "metadataFields": list(fields),
                "storageFilters": {"bucket": BUCKET},
                "storageDestinationOptions": {"bucket": "reports", "destinationPath": "reports"},
            },
            **how,
        },
        "records_processed": len(rows),
        "snapshot_time": datetime.fromtimestamp(TAKEN_MS / 1_000, UTC).isoformat(),
        "shard_count": len(shards),
        "report_shards_file_names": [name.rpartition("/")[2] for name in shards],
    }
    return shards | {GOOGLE_MANIFEST: json.dumps(manifest).encode()}


def azure_row(stored: StoredObject, **other: Any) -> Row:
    """A blob as a row, its key below ROOT; `other` are fields, with underscores."""
    name, version = f"{BUCKET}/{ROOT}{stored.key}", stored.version.strip('"')
    values = (name, stored.size, stored.last_modified_ms, version, stored.storage_class, None, None, None, None, None)
    return dict(zip(AZURE_FIELDS, values, strict=True)) | other


def azure_inventory(
    rows: Sequence[Row], *, parquet: bool = False, fields: Sequence[str] = AZURE_FIELDS, **filters: Any
) -> Files:
    """An inventory of two files, by a rule with these filters."""
    suffix = "parquet" if parquet else "csv"
    write = _azure_parquet if parquet else _azure_csv
    folder = AZURE_MANIFEST.rpartition("/")[0]
    halves = {f"{folder}/segments_{number}.{suffix}": write(rows[number::2], fields) for number in range(2)}
    return halves | azure_manifest(halves, suffix, fields, filters)


def azure_manifest(
    files: Files, suffix: str, fields: Sequence[str] = AZURE_FIELDS, filters: Row | None = None, **other: Any
) -> Files:
    """The manifest of an inventory of these files, and its checksum."""
    manifest = {
        "destinationContainer": "reports",
        "endpoint": "https://acme.blob.core.windows.net",
        "files": [{"blob": name, "size": len(data)} for name, data in files.items()],
        "inventoryCompletionTime": datetime.fromtimestamp(TAKEN_MS / 1_000 + 600, UTC).isoformat(),
        "inventoryStartTime": datetime.fromtimestamp(TAKEN_MS / 1_000, UTC).isoformat(),
        "ruleDefinition": {
            "filters": {"blobTypes": ["blockBlob"], **(filters or {})},
            "format": suffix,
            "objectType": "blob",
            "schedule": "daily",
            "schemaFields": list(fields),
        },
        "ruleName": "segments",
        "status": "Succeeded",
        "version": "1.0",
    }
    text = json.dumps(manifest | other, indent=2).encode()
    return {AZURE_MANIFEST: text, AZURE_CHECKSUM: hashlib.md5(text).hexdigest().encode()}


def _azure_csv(rows: Sequence[Row], fields: Sequence[str]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(fields)
    writer.writerows([_azure_text(name, row[name]) for name in fields] for row in rows)
    return text.getvalue().encode()


def _azure_text(name: str, value: Any) -> str:
    if name == "Last-Modified" and value is not None:
        return datetime.fromtimestamp(value / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _azure_parquet(rows: Sequence[Row], fields: Sequence[str]) -> bytes:
    return _parquet({name: pa.array([row[name] for row in rows], _AZURE_PARQUET[name]) for name in fields})


def _s3_csv(rows: Sequence[Row], fields: Sequence[str]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([_s3_text(name, row[name]) for name in fields] for row in rows)
    return gzip.compress(text.getvalue().encode(), 1)


def _s3_text(name: str, value: Any) -> str:
    if name == "Key":
        return quote_plus(value, safe="/")
    if name == "LastModifiedDate":
        return datetime.fromtimestamp(value / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _s3_parquet(rows: Sequence[Row], fields: Sequence[str]) -> bytes:
    kinds = [(own, kind) for own, (name, kind) in zip(S3_FIELDS, _S3_PARQUET.items(), strict=True) if own in fields]
    names = dict(zip(S3_FIELDS, _S3_PARQUET, strict=True))
    return _parquet({names[own]: pa.array([row[own] for row in rows], kind) for own, kind in kinds})


def _google_csv(rows: Sequence[Row], fields: Sequence[str], header: bool) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(fields)
    writer.writerows([_google_text(name, row[name]) for name in fields] for row in rows)
    return text.getvalue().encode()


def _google_text(name: str, value: Any) -> str:
    if value is not None and (name.startswith("time") or name == "updated"):
        return datetime.fromtimestamp(value / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return "" if value is None else str(value)


def _google_parquet(rows: Sequence[Row], fields: Sequence[str]) -> bytes:
    def moment(name: str, value: Any) -> Any:
        return value * 1_000 if value is not None and pa.types.is_timestamp(_GOOGLE_PARQUET[name]) else value

    return _parquet(
        {name: pa.array([moment(name, row[name]) for row in rows], _GOOGLE_PARQUET[name]) for name in fields}
    )


def _parquet(columns: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()
