"""The files of an inventory as columns, whichever cloud wrote them, as CSV or as Parquet.

See `tieredctl.formats.inventory_manifest` for where their formats are described.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.formats.arrow_columns import bytes_array, same_text_array, without_beginning
from tieredctl.formats.inventory_manifest import InventoryManifest, plain_name, unusable

_BLOCK_BYTES = 16 << 20
_ROWS_AT_ONCE = 1 << 16
_LARGEST_LINE = 1 << 16
_GZIP = b"\x1f\x8b"
_LATEST_MS = 253_402_300_799_999
"""The end of the year 9999."""


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """A cloud's names for the columns of a listing, as plain names. Of several, the first that an inventory has."""

    key: str
    modified: tuple[str, ...]
    version: str
    latest: str | None = None
    """Whether it is the current version of its key."""
    others: tuple[str, ...] = ()
    """Flags of what is not an object: a delete marker, a folder, what is deleted."""
    blank_flags: bool = False
    """Whether a flag may be left out of a row: that one is a current object."""
    deleted: str | None = None
    """When a version ceased to be the current one, or which snapshot it is; empty for the current one."""
    size: str = "size"
    storage_class: str = "storageclass"


_VOCABULARIES = {
    "s3": _Vocabulary("key", ("lastmodifieddate",), "etag", latest="islatest", others=("isdeletemarker",)),
    # A live listing has the time of creation, too: a change of only its metadata does not make an object younger.
    "gs": _Vocabulary("name", ("timecreated", "updated"), "generation", deleted="timedeleted"),
    "az": _Vocabulary(
        "name",
        ("lastmodified",),
        "etag",
        latest="iscurrentversion",
        others=("deleted", "hdiisfolder"),
        blank_flags=True,
        deleted="snapshot",
        size="contentlength",
        storage_class="accesstier",
    ),
}


@dataclass(frozen=True, slots=True)
class InventoryObjects:
    """A row for each object that is there: its key in the bucket, size in bytes, time in ms, and as a store's listing
    gives them, its version (null where the inventory does not have it) and storage class (then empty)."""

    keys: pa.BinaryArray
    sizes: pa.Int64Array
    last_modified_ms: pa.Int64Array
    versions: pa.BinaryArray
    storage_classes: pa.DictionaryArray
    records: int
    """How many rows of the inventory these came from: those of past versions and delete markers are left out."""


def read_inventory_file(file: Path, manifest: InventoryManifest, bucket: str, where: str) -> Iterator[InventoryObjects]:
    """The objects in one file of a bucket's inventory, many at a time; `where` names the file.

    Raises TieredctlError `inventory-unusable` for anything that does not follow the format.
    """
    try:
        batches = _parquet_batches(file, manifest) if manifest.is_parquet else _csv_batches(file, manifest)
        for columns in batches:
            yield _objects(columns, manifest, bucket)
    except (pa.ArrowException, csv.Error, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise unusable(f"{where} is not a valid inventory file: {reason[:200]}.") from None


_Columns = Mapping[str, Any]


def _wanted(manifest: InventoryManifest, present: list[str]) -> list[str]:
    """The columns of a file to read."""
    words = _VOCABULARIES[manifest.scheme]
    modified = next((name for name in words.modified if name in present), None)
    demanded = [words.key, words.size, modified or words.modified[0]] + (
        ["bucket"] if manifest.needs_bucket_column else []
    )
    missing = [name for name in demanded if name not in present]
    if missing:
        raise unusable(f"The inventory does not have {', '.join(missing)} of its objects.")
    optional = {words.version, words.latest, *words.others, words.deleted, words.storage_class, "bucket"}
    return [name for name in present if name in demanded or name in optional]


def _parquet_batches(file: Path, manifest: InventoryManifest) -> Iterator[_Columns]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as parquet:
        names = {plain_name(name): name for name in parquet.schema_arrow.names}
        wanted = _wanted(manifest, list(names))
        for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=[names[name] for name in wanted]):
            yield {name: batch.column(names[name]) for name in wanted}


def _csv_batches(file: Path, manifest: InventoryManifest) -> Iterator[_Columns]:
    from pyarrow import csv as arrow_csv

    with _opened(file) as stream:
        first_line = stream.read(_LARGEST_LINE).partition(b"\n")[0]
    columns, has_header = _csv_columns(first_line, manifest)
    wanted = _wanted(manifest, columns)
    reading = arrow_csv.ReadOptions(column_names=columns, skip_rows=int(has_header), block_size=_BLOCK_BYTES)
    # S3 writes keys URL-encoded, the others as they are.
    parsing = arrow_csv.ParseOptions(delimiter=manifest.delimiter, newlines_in_values=manifest.scheme != "s3")
    converting = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.binary()), include_columns=wanted, check_utf8=False
    )
    if not first_line:
        return
    with _opened(file) as stream, arrow_csv.open_csv(stream, reading, parsing, converting) as reader:
        for batch in reader:
            yield dict(zip(wanted, batch.columns, strict=True))


def _opened(file: Path) -> Any:
    with file.open("rb") as raw:
        is_compressed = raw.read(len(_GZIP)) == _GZIP
    return pa.input_stream(str(file), compression="gzip" if is_compressed else None)


def _csv_columns(first_line: bytes, manifest: InventoryManifest) -> tuple[list[str], bool]:
    """The columns, and whether the first line is a header."""
    text = first_line.decode("utf-8", "replace")
    first = [plain_name(value) for value in next(csv.reader([text], delimiter=manifest.delimiter), [])]
    columns = list(manifest.columns)
    words = _VOCABULARIES[manifest.scheme]
    if manifest.has_header or first == columns or (not columns and {words.key, words.size} <= set(first)):
        return first, True
    if not columns:
        raise unusable("Neither the inventory's manifest nor its files name the columns.")
    return columns, False


def _objects(columns: _Columns, manifest: InventoryManifest, bucket: str) -> InventoryObjects:
    words = _VOCABULARIES[manifest.scheme]
    records = len(columns[words.size])
    present = _present(columns, words)
    if present is not None:
        columns = {name: column.filter(present) for name, column in columns.items()}
    _demand_bucket(columns.get("bucket"), bucket)
    if manifest.scheme == "az":
        columns = _in_container(columns, bucket)
    keys = _as_binary(columns[words.key])
    modified = next(columns[name] for name in words.modified if name in columns)
    sizes, times = _sizes(columns[words.size]), _milliseconds(modified)
    if keys.null_count or sizes.null_count or times.null_count or (len(sizes) and pc.min(sizes).as_py() < 0):
        raise ValueError("an object has no key, no size or no time")
    if len(times) and not 0 <= pc.min(times).as_py() <= pc.max(times).as_py() <= _LATEST_MS:
        raise ValueError("an object has an impossible time")
    if manifest.scheme == "s3" and not manifest.is_parquet:
        keys = _url_decoded(keys)
    if len(pc.unique(keys)) < len(keys):
        raise ValueError("it has an object twice, and does not say which version is the current one")
    version = columns.get(words.version)
    versions = pa.nulls(len(keys), pa.binary()) if version is None else _versions(version, manifest)
    classes = _storage_classes(columns.get(words.storage_class), len(keys))
    return InventoryObjects(keys, sizes, times, versions, classes, records)


def _present(columns: _Columns, words: _Vocabulary) -> Any:
    """Flags the rows about the current version of an object that is there; None for all."""
    masks: list[Any] = []
    if words.latest and words.latest in columns:
        masks.append(_flags(columns[words.latest], True if words.blank_flags else None))
    blank_other = False if words.blank_flags else None
    masks.extend(pc.invert(_flags(columns[other], blank_other)) for other in words.others if other in columns)
    if words.deleted and words.deleted in columns:
        deleted = columns[words.deleted]
        is_text = pa.types.is_binary(deleted.type) or pa.types.is_string(deleted.type)
        is_empty = pc.equal(pc.binary_length(deleted), 0) if is_text else pc.is_null(deleted)
        masks.append(pc.fill_null(is_empty, True))
    while len(masks) > 1:
        masks.append(pc.and_(masks.pop(), masks.pop()))
    return masks[0] if masks else None


def _flags(column: Any, blank: bool | None) -> Any:
    """`blank` is what a flag means that is left out; None where none may be, but a null is false."""
    if pa.types.is_boolean(column.type):
        return pc.fill_null(column, bool(blank))
    text = pc.utf8_lower(pc.cast(column, pa.string()))
    if blank is not None:
        text = pc.fill_null(text, "")
        text = pc.if_else(pc.equal(text, ""), str(blank).lower(), text)
    if not pc.all(pc.is_in(text, pa.array(["true", "false"]))).as_py() and len(text):
        raise ValueError("a flag is neither true nor false")
    return pc.equal(text, "true")


def _in_container(columns: _Columns, container: str) -> _Columns:
    """The rows of a container, and their names there: an inventory may be of a whole account."""
    beginning = f"{container}/".encode()
    names = _as_binary(columns["name"])
    is_there = pc.fill_null(pc.starts_with(names, pattern=beginning), True)
    there = {name: column.filter(is_there) for name, column in (dict(columns) | {"name": names}).items()}
    return there | {"name": without_beginning(there["name"], len(beginning))}


def _demand_bucket(column: Any, bucket: str) -> None:
    if column is not None and pc.any(pc.not_equal(_as_binary(column), pa.scalar(bucket.encode()))).as_py():
        raise ValueError(f"it has objects of another bucket than {bucket}")


def _as_binary(column: Any) -> Any:
    return column if pa.types.is_binary(column.type) else pc.cast(pc.cast(column, pa.string()), pa.binary())


def _as_text(column: Any) -> Any:
    return pc.cast(column, pa.string()) if pa.types.is_binary(column.type) else column


def _sizes(column: Any) -> Any:
    """In bytes, of text or numbers: flags and times would become numbers too."""
    sizes = _as_text(column)
    if not (pa.types.is_string(sizes.type) or pa.types.is_integer(sizes.type)):
        raise ValueError(f"its sizes are of type {sizes.type}")
    return pc.cast(sizes, pa.int64())


def _milliseconds(column: Any) -> Any:
    """Times, of ISO 8601 where they are text; a bare number would not show its unit."""
    moments = _as_text(column)
    if pa.types.is_string(moments.type):
        moments = pc.cast(moments, pa.timestamp("ns", "UTC"))
    if not pa.types.is_timestamp(moments.type):
        raise ValueError(f"its times are of type {moments.type}")
    return pc.cast(pc.cast(moments, pa.timestamp("ms", "UTC"), safe=False), pa.int64())


def _url_decoded(keys: Any) -> Any:
    """A space may be `+`: a plus sign is `%2B`."""
    encoded: Any = pc.match_substring_regex(keys, "[%+]")
    if not encoded.true_count:
        return keys
    rows = np.flatnonzero(np.array(encoded.to_pylist(), np.bool_))
    values = keys.to_pylist()
    for row in rows.tolist():
        values[row] = unquote_to_bytes(values[row].replace(b"+", b" "))
    return bytes_array(values)


def _storage_classes(column: Any, count: int) -> Any:
    if column is None:
        return same_text_array("", count)
    return pc.dictionary_encode(pc.fill_null(pc.cast(column, pa.string()), ""))


def _versions(column: Any, manifest: InventoryManifest) -> Any:
    """The versions as a store's listing has them: ETags in quotes."""
    versions = _as_binary(column)
    versions = pc.if_else(pc.equal(pc.binary_length(versions), 0), pa.scalar(None, pa.binary()), versions)
    if manifest.scheme == "gs":
        return versions
    quoted = pc.binary_join_element_wise(pa.scalar(b'"'), versions, pa.scalar(b'"'), pa.scalar(b""))
    return pc.if_else(pc.starts_with(versions, pattern='"'), versions, quoted)
