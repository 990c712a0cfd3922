"""Manifests of inventories, the lists of a bucket's objects that a cloud writes.

S3 Inventory: Amazon S3 User Guide, "Locating your inventory list" (manifest.json, version 2016-11-30) and "Amazon S3
Inventory lists" (the fields; keys in CSV are URL-encoded). Google Cloud Storage: "Storage Insights inventory reports"
(the manifest that is written when all shards are) and the API's ReportConfig (how its CSV looks). Azure: "Azure Storage
blob inventory" (the manifest, its checksum and the fields).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError

LARGEST_MANIFEST = 64 << 20
"""In bytes; one of S3's has two hundred for a file of about a million objects."""

_MD5 = re.compile("[0-9a-f]{32}")
_SHARD_LIST = "reportshardsfilenames"
_RULE = "ruledefinition"


@dataclass(frozen=True, slots=True)
class InventoryFile:
    """A part of an inventory. `name` is its key where the inventory was written; size in bytes and MD5 (hexadecimal)
    where the manifest tells."""

    name: str
    size: int | None = None
    md5: str | None = None


@dataclass(frozen=True, slots=True)
class InventoryManifest:
    """What an inventory is of, and how to read it."""

    scheme: str
    """The scheme of the URL of a store of that kind."""
    bucket: str | None
    """None where only the objects themselves show it."""
    taken_ms: int
    """When the bucket was listed; for S3, when the listing began."""
    files: tuple[InventoryFile, ...]
    is_parquet: bool
    columns: tuple[str, ...] = ()
    """The columns of CSV, in their order, as `plain_name` writes them."""
    has_header: bool = False
    delimiter: str = ","
    records: int | None = None
    """How many objects the files have in all, where the manifest has it."""
    left_out: tuple[str, ...] = ()
    """What names of objects begin with that the inventory has not, bucket included."""
    only: tuple[str, ...] = ()
    """What those begin with that it has; empty where it has all others."""
    ends_with_checksum: bool = False
    """Whether the inventory is whole only once the manifest's checksum lies beside it."""

    @property
    def needs_bucket_column(self) -> bool:
        """Whether only a column tells which bucket an object is of: Azure's names begin with it."""
        return self.bucket is None and self.scheme != "az"

    def demand_covers(self, name: str) -> None:
        """Raises TieredctlError `inventory-unusable` where it leaves out objects below a name, bucket included."""
        missed = [left for left in self.left_out if left.startswith(name) or name.startswith(left)]
        if missed or (self.only and not name.startswith(self.only)):
            raise unusable(f"The inventory's rule leaves out objects below {name}.")


def unusable(message: str) -> TieredctlError:
    """An inventory that cannot stand for a listing."""
    return TieredctlError(ErrorCode.INVENTORY_UNUSABLE, message)


def _of_another_kind(message: str) -> TieredctlError:
    return TieredctlError(ErrorCode.USAGE, message, hint="Give the manifest.json of an inventory or a report.")


def plain_name(name: str) -> str:
    """One name for what is `LastModifiedDate` in S3's CSV and `last_modified_date` in its Parquet."""
    return name.strip().replace("_", "").replace("-", "").lower()


def read_manifest(data: bytes, where: str) -> InventoryManifest:
    """A manifest of either kind; `where` names it. Raises TieredctlError `inventory-unusable` for a damaged one, and
    `usage` for a file of another kind."""
    if not data.lstrip().startswith(b"{"):
        raise _of_another_kind(f"{where} is not a manifest: it is not a JSON object.")
    if len(data) > LARGEST_MANIFEST:
        raise unusable(f"{where} is far too large for a manifest.")
    try:
        values = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise unusable(f"{where} is not a manifest: it is not JSON.") from None
    fields = _Fields(values, where)
    for name, read in (("sourcebucket", _of_s3), (_SHARD_LIST, _of_google), (_RULE, _of_azure)):
        if fields.has(name):
            return _of_distinct_files(read(fields), where)
    raise _of_another_kind(
        f"{where} is not the manifest of an S3 Inventory, a Storage Insights report or a Blob Inventory."
    )


def _of_distinct_files(manifest: InventoryManifest, where: str) -> InventoryManifest:
    if len({file.name for file in manifest.files}) < len(manifest.files):
        raise unusable(f"{where} names a file twice.")
    return manifest


class _Fields:
    """The fields of a JSON object by their plain names: their writers do not agree about underscores."""

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, dict):
            raise unusable(f"{where} is not a manifest: it is not an object.")
        self._values = {plain_name(name): value for name, value in values.items()}
        self._where = where

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def fields(self, name: str) -> _Fields:
        return _Fields(self._values.get(name) or {}, f"{self._where}, {name},")

    def text(self, name: str) -> str:
        text: str = self._as(name, lambda value: isinstance(value, str) and value != "", "a text")
        return text

    def number(self, name: str) -> int:
        """A whole number that is not negative, or its text."""
        value = self._values.get(name)
        if isinstance(value, str) and value.isdecimal() and len(value) < 19:
            return int(value)
        number: int = self._as(name, lambda value: type(value) is int and 0 <= value < 1 << 63, "a number")
        return number

    def flag(self, name: str) -> bool:
        return self._values.get(name) is True

    def texts(self, name: str) -> Sequence[str]:
        texts: Sequence[str] = self._as(name, _are_texts, "a list of texts")
        return texts

    def objects(self, name: str) -> list[_Fields]:
        values = self._as(name, lambda values: isinstance(values, list), "a list")
        return [_Fields(value, f"{self._where}, {name},") for value in values]

    def time_ms(self, name: str) -> int:
        text = self.text(name)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise unusable(f"{self._where} has {text!r} for {name}, which is not a time.") from None
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)

    def _as(self, name: str, fits: Callable[[Any], bool], kind: str) -> Any:
        value = self._values.get(name)
        if not fits(value):
            raise unusable(f"{self._where} lacks {name}, or it is not {kind}.")
        return value


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) and value for value in values)


def _of_s3(fields: _Fields) -> InventoryManifest:
    file_format = fields.text("fileformat").upper()
    if file_format not in ("CSV", "PARQUET"):
        message = f"The inventory is written as {file_format}, which tieredctl cannot read."
        raise TieredctlError(ErrorCode.INVENTORY_UNUSABLE, message, hint="Have it written as CSV or Parquet.")
    is_parquet = file_format == "PARQUET"
    columns = () if is_parquet else tuple(map(plain_name, fields.text("fileschema").split(",")))
    files = tuple(map(_file_of_s3, fields.objects("files")))
    if not files:
        raise unusable("The inventory's manifest does not name a file.")
    bucket = fields.text("sourcebucket").removeprefix("arn:aws:s3:::")
    return InventoryManifest("s3", bucket, fields.number("creationtimestamp"), files, is_parquet, columns)


def _file_of_s3(fields: _Fields) -> InventoryFile:
    name, md5 = fields.text("key"), fields.text("md5checksum").lower()
    if not _MD5.fullmatch(md5):
        raise unusable(f"The inventory's manifest has {md5!r} for the checksum of {name}.")
    return InventoryFile(name, fields.number("size"), md5)


def _of_google(fields: _Fields) -> InventoryManifest:
    files = tuple(InventoryFile(name) for name in fields.texts(_SHARD_LIST))
    if len(files) != fields.number("shardcount") or not files:
        raise unusable(f"The report has {fields.number('shardcount')} files, and its manifest names {len(files)}.")
    config = fields.fields("reportconfig")
    report, csv = config.fields("objectmetadatareportoptions"), config.fields("csvoptions")
    filters = report.fields("storagefilters")
    is_parquet = files[0].name.endswith(".parquet") or config.has("parquetoptions")
    delimiter = csv.text("delimiter") if csv.has("delimiter") else ","
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise unusable(f"The report's fields are separated by {delimiter!r}, which tieredctl cannot read.")
    return InventoryManifest(
        "gs",
        filters.text("bucket") if filters.has("bucket") else None,
        fields.time_ms("snapshottime"),
        files,
        is_parquet,
        columns=tuple(map(plain_name, report.texts("metadatafields"))) if report.has("metadatafields") else (),
        has_header=csv.flag("headerrequired"),
        delimiter=delimiter,
        records=fields.number("recordsprocessed"),
    )


def _of_azure(fields: _Fields) -> InventoryManifest:
    status = fields.text("status")
    if status != "Succeeded":
        raise unusable(f"The inventory is not finished, or has failed: its status is {status!r}.")
    rule = fields.fields(_RULE)
    filters = rule.fields("filters")
    if rule.text("objecttype") != "blob" or filters.has("creationtime"):
        raise unusable("The inventory's rule does not list all blobs: it is of containers, or of recent blobs alone.")
    if filters.has("blobtypes") and "blockBlob" not in filters.texts("blobtypes"):
        raise unusable("The inventory's rule lists no block blobs, as which segments are stored.")
    files = tuple(InventoryFile(one.text("blob"), one.number("size")) for one in fields.objects("files"))
    return InventoryManifest(
        "az",
        None,
        fields.time_ms("inventorystarttime"),
        files,
        rule.text("format").lower() == "parquet",
        columns=tuple(map(plain_name, rule.texts("schemafields"))),
        has_header=True,
        left_out=tuple(filters.texts("excludeprefix")) if filters.has("excludeprefix") else (),
        only=tuple(filters.texts("prefixmatch")) if filters.has("prefixmatch") else (),
        ends_with_checksum=True,
    )
