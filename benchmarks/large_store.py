"""A store of any size, without its bytes: the metadata's logs, and the bucket's inventory.

    python -m benchmarks.large_store FOLDER --objects 10000000 --skew 0.6

Three objects a segment. One segment in a hundred is deleted by its metadata, and its objects are still there: orphans.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from crc32c import crc32c

from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_batches import CRC_FROM, Record, encode_batch
from tieredctl.model.events import (
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.rlmm.partitioner import DEFAULT_METADATA_PARTITIONS, metadata_partition

BUCKET = "tiered"
TAKEN_MS = 1_795_000_000_000
COPIED_MS = TAKEN_MS - 30 * 86_400_000
RECORDS_IN_SEGMENT = 1_000
TOPICS, PARTITIONS_OF_TOPIC = 100, 12
DELETED_SHARE = 0.01
SUFFIXES = (".index", ".log", ".timeindex")
_ROWS_AT_ONCE = 200_000
ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
"""Of ids as text."""
# Values that stand nowhere else in an event, whose places in it are those of the fields.
_ID, _START, _END, _SIZE = bytes(range(200, 216)), 0x1122334455660000, 0x1122334455667788, 0x21436587

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LargeStore:
    """What was written: a log directory, an inventory's manifests, and the ids of live segments as text."""

    log_dir: Path
    csv_manifest: Path
    parquet_manifest: Path
    live_ids: Path
    segments: int
    objects: int
    orphans: int


@dataclass(frozen=True)
class _Segments:
    """Of all partitions: the number of each one's partition, its place in that partition's order, and its id."""

    owners: Numbers
    places: Numbers
    ids: Bytes
    deleted: npt.NDArray[np.bool_]


def write_large_store(
    folder: Path, objects: int, *, skew: float = 0.0, metadata_skew: float = 0.0, seed: int = 1
) -> LargeStore:
    """Writes all of it. `skew` is the share of all segments that one topic has beyond its own part, `metadata_skew`
    that of the partitions whose events are in the first metadata partition."""
    partitions = _partitions()
    crowded = {
        tuple(range(PARTITIONS_OF_TOPIC)): skew,
        tuple(np.flatnonzero(_homes(partitions) == 0).tolist()): metadata_skew,
    }
    segments = _segments(objects // len(SUFFIXES), len(partitions), crowded, np.random.default_rng(seed))
    log_dir, inventory = folder / "data", folder / "inventory"
    _write_logs(log_dir, partitions, segments)
    inventory.mkdir(parents=True)
    manifests = _write_inventory(inventory, partitions, segments)
    live_ids = folder / "live-ids.parquet"
    pq.write_table(pa.table({"segmentId": _texts(segments.ids[~segments.deleted])}), live_ids)
    count = len(segments.owners)
    orphans = int(segments.deleted.sum()) * len(SUFFIXES)
    return LargeStore(log_dir, *manifests, live_ids, count, count * len(SUFFIXES), orphans)


def _partitions() -> list[TopicIdPartition]:
    ids = [uuid_text(hashlib.md5(b"topic %d" % number).digest()) for number in range(TOPICS)]
    return [
        TopicIdPartition(topic_id, f"topic-{number:04}", partition)
        for number, topic_id in enumerate(ids)
        for partition in range(PARTITIONS_OF_TOPIC)
    ]


def _homes(partitions: list[TopicIdPartition]) -> Numbers:
    """The metadata partition of each."""
    numbers = [metadata_partition(one.topic_id, one.partition, DEFAULT_METADATA_PARTITIONS) for one in partitions]
    return np.array(numbers, np.int64)


def _segments(
    count: int, partitions: int, crowded: Mapping[tuple[int, ...], float], random: np.random.Generator
) -> _Segments:
    """By the order of their partitions, evenly spread but for the share of all that some have besides."""
    owners = random.integers(0, partitions, count)
    for some, share in crowded.items():
        moved = random.random(count) < share
        owners[moved] = random.choice(some, int(moved.sum()))
    owners.sort()
    firsts = np.searchsorted(owners, owners)
    ids = np.frombuffer(random.bytes(16 * count), np.uint8).reshape(count, 16)
    return _Segments(owners, np.arange(count) - firsts, ids, random.random(count) < DELETED_SHARE)


class _Template:
    """A batch of one event, of which copies are made that differ in their fields."""

    def __init__(self, event: MetadataEvent) -> None:
        batch = encode_batch([Record(0, COPIED_MS, None, encode_event(event))], partition_leader_epoch=0)
        self._bytes = np.frombuffer(batch, np.uint8)
        self._places = {
            value: [at for at in range(len(batch)) if batch.startswith(value, at)]
            for value in (_ID, _START.to_bytes(8), _END.to_bytes(8), _SIZE.to_bytes(4))
        }
        assert len(self._places[_ID]) == 1

    def copies(self, ids: Bytes, starts: Numbers) -> Bytes:
        """A row for each segment, without offset and CRC."""
        rows = np.tile(self._bytes, (len(ids), 1))
        values = {
            _ID: ids,
            _START.to_bytes(8): _big_endian(starts, ">i8"),
            _END.to_bytes(8): _big_endian(starts + RECORDS_IN_SEGMENT - 1, ">i8"),
            _SIZE.to_bytes(4): _big_endian(starts % 1_000_003 + 1_000_000, ">i4"),
        }
        for value, places in self._places.items():
            for place in places:
                rows[:, place : place + len(value)] = values[value]
        return rows


def _big_endian(numbers: Numbers, kind: str) -> Bytes:
    return numbers.astype(kind).view(np.uint8).reshape(len(numbers), -1)


def _write_logs(folder: Path, partitions: list[TopicIdPartition], segments: _Segments) -> None:
    """As brokers mostly do, an event a batch; partitions take turns, as their segments grow together."""
    of_segments = _homes(partitions)[segments.owners]
    for number in range(DEFAULT_METADATA_PARTITIONS):
        mine = np.flatnonzero(of_segments == number)
        mine = mine[np.argsort(segments.places[mine], kind="stable")]
        log = folder / f"__remote_log_metadata-{number}" / f"{0:020}.log"
        log.parent.mkdir(parents=True)
        with log.open("wb") as out:
            offset = 0
            for rows, kinds in _stretches(mine, segments.deleted):
                batches = _batches(partitions, segments, rows, kinds)
                out.write(_numbered(batches, offset))
                offset += sum(map(len, batches))


def _stretches(rows: Numbers, deleted: npt.NDArray[np.bool_]) -> Iterator[tuple[Numbers, list[RemoteLogSegmentState]]]:
    """Segments with the states that they come to: all are copied, and at last some are deleted."""
    state = RemoteLogSegmentState
    for chosen, kinds in (
        (rows, [state.COPY_SEGMENT_STARTED, state.COPY_SEGMENT_FINISHED]),
        (rows[deleted[rows]], [state.DELETE_SEGMENT_STARTED, state.DELETE_SEGMENT_FINISHED]),
    ):
        for first in range(0, len(chosen), _ROWS_AT_ONCE):
            yield chosen[first : first + _ROWS_AT_ONCE], kinds


def _batches(
    partitions: list[TopicIdPartition], segments: _Segments, rows: Numbers, kinds: list[RemoteLogSegmentState]
) -> list[Bytes]:
    """For each kind the batches of all rows, which are of one length."""
    owners = segments.owners[rows]
    made: list[Bytes] = []
    for kind in kinds:
        whole: Bytes | None = None
        for owner in np.unique(owners):
            at = np.flatnonzero(owners == owner)
            chosen = rows[at]
            starts = segments.places[chosen] * RECORDS_IN_SEGMENT
            copies = _Template(_event(partitions[owner], kind)).copies(segments.ids[chosen], starts)
            whole = np.empty((len(rows), copies.shape[1]), np.uint8) if whole is None else whole
            whole[at] = copies
        assert whole is not None
        made.append(whole)
    return made


def _event(partition: TopicIdPartition, state: RemoteLogSegmentState) -> MetadataEvent:
    segment_id = uuid_text(_ID)
    if state is not RemoteLogSegmentState.COPY_SEGMENT_STARTED:
        return RemoteLogSegmentMetadataUpdate(
            topic_id_partition=partition, segment_id=segment_id, author=1, event_timestamp_ms=COPIED_MS, state=state
        )
    return RemoteLogSegmentMetadata(
        topic_id_partition=partition,
        segment_id=segment_id,
        start_offset=_START,
        end_offset=_END,
        author=1,
        max_timestamp_ms=COPIED_MS,
        event_timestamp_ms=COPIED_MS,
        segment_leader_epochs=((0, _START),),
        segment_size_in_bytes=_SIZE,
        txn_idx_empty=True,
    )


def _numbered(batches: list[Bytes], first_offset: int) -> bytes:
    """Row by row one batch of each kind, with offsets and CRCs."""
    offset = np.arange(first_offset, first_offset + len(batches) * len(batches[0]), len(batches))
    for number, rows in enumerate(batches):
        rows[:, :8] = _big_endian(offset + number, ">i8")
        view = memoryview(rows.tobytes())
        width = rows.shape[1]
        sums = [crc32c(view[start + CRC_FROM : start + width]) for start in range(0, len(view), width)]
        rows[:, CRC_FROM - 4 : CRC_FROM] = _big_endian(np.array(sums, np.uint32), ">u4")
    return np.hstack(batches).tobytes()


def _texts(ids: Bytes) -> pa.Array:
    """URL-safe base64 without padding, as Kafka writes ids."""
    padded = np.zeros((len(ids), 18), np.uint32)
    padded[:, :16] = ids
    triples = padded.reshape(-1, 3)
    bits = triples[:, 0] << 16 | triples[:, 1] << 8 | triples[:, 2]
    letters = ALPHABET[np.stack([bits >> shift & 63 for shift in (18, 12, 6, 0)], axis=1)]
    text = np.ascontiguousarray(letters.reshape(len(ids), 24)[:, :22])
    return (
        pa.FixedSizeBinaryArray.from_buffers(pa.binary(22), len(ids), [None, pa.py_buffer(text)])
        .cast(pa.binary())
        .cast(pa.string())
    )


def _write_inventory(folder: Path, partitions: list[TopicIdPartition], segments: _Segments) -> tuple[Path, Path]:
    """Two reports of the same: gzipped CSV, and Parquet."""
    (folder / "csv").mkdir()
    (folder / "parquet").mkdir()
    names: dict[str, list[Path]] = {"csv": [], "parquet": []}
    options = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
    for first in range(0, len(segments.owners), _ROWS_AT_ONCE):
        rows = np.arange(first, min(first + _ROWS_AT_ONCE, len(segments.owners)))
        table = _objects(partitions, segments, rows)
        parquet = folder / "parquet" / f"{first:010}.parquet"
        pq.write_table(table, parquet)
        compressed = folder / "csv" / f"{first:010}.csv.gz"
        texts = table.set_column(3, "last_modified_date", _iso_8601(table))
        with pa.CompressedOutputStream(str(compressed), "gzip") as out:
            pa.csv.write_csv(texts, out, options)
        names["parquet"].append(parquet)
        names["csv"].append(compressed)
    written = table.schema.names
    schema = "message s3.inventory { " + " ".join(f"optional {name};" for name in written) + " }"
    return (
        _write_manifest(folder / "csv", "CSV", "Bucket, Key, Size, LastModifiedDate, ETag, StorageClass", names["csv"]),
        _write_manifest(folder / "parquet", "Parquet", schema, names["parquet"]),
    )


def _objects(partitions: list[TopicIdPartition], segments: _Segments, rows: Numbers) -> pa.Table:
    folders = pa.array([f"{one.topic}-{one.partition}-{one.topic_id}/" for one in partitions])
    starts = pa.array(segments.places[rows] * RECORDS_IN_SEGMENT).cast(pa.string())
    stems = pc.binary_join_element_wise(
        folders.take(pa.array(segments.owners[rows])),
        pc.utf8_lpad(starts, 20, "0"),
        "-",
        _texts(segments.ids[rows]),
        "",
    )
    keys = pa.chunked_array([pc.binary_join_element_wise(stems, suffix, "") for suffix in SUFFIXES]).combine_chunks()
    count = len(keys)
    return pa.table(
        {
            "bucket": pa.repeat(BUCKET, count),
            "key": keys,
            "size": pa.array(np.tile(segments.places[rows] % 1_000 + 1_000, len(SUFFIXES))),
            "last_modified_date": pa.repeat(pa.scalar(COPIED_MS, pa.timestamp("ms", "UTC")), count),
            "e_tag": pa.repeat("d41d8cd98f00b204e9800998ecf8427e", count),
            "storage_class": pa.repeat("STANDARD", count),
        }
    )


def _iso_8601(table: pa.Table) -> pa.Array:
    text = pc.strftime(pa.scalar(COPIED_MS, pa.timestamp("ms", "UTC")), "%Y-%m-%dT%H:%M:%SZ")
    return pa.repeat(text, len(table))


def _write_manifest(folder: Path, file_format: str, schema: str, files: list[Path]) -> Path:
    described = [
        {"key": f"{folder.name}/{file.name}", "size": file.stat().st_size, "MD5checksum": _md5(file)} for file in files
    ]
    manifest = folder / "manifest.json"
    document = {
        "sourceBucket": BUCKET,
        "destinationBucket": f"arn:aws:s3:::{BUCKET}",
        "version": "2016-11-30",
        "creationTimestamp": str(TAKEN_MS),
        "fileFormat": file_format,
        "fileSchema": schema,
        "files": described,
    }
    text = json.dumps(document).encode()
    manifest.write_bytes(text)
    (folder / "manifest.checksum").write_text(hashlib.md5(text).hexdigest())
    return manifest


def _md5(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "md5").hexdigest()


def main() -> None:
    """Writes a store's metadata and inventory into a folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_store", description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--skew", type=float, default=0.0, help="the first topic's share of all segments")
    parser.add_argument("--metadata-skew", type=float, default=0.0, help="one metadata partition's share of all events")
    options = parser.parse_args()
    skews = {"skew": options.skew, "metadata_skew": options.metadata_skew}
    print(write_large_store(options.folder, options.objects, **skews))


if __name__ == "__main__":
    main()
