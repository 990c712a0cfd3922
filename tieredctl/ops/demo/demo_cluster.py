"""The cluster that `demo` shows, and the faults that it injects into a copy of it."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from tieredctl.formats.log_scan import LogBlock, OneByOne, scan_log
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_batches import BatchHeader, Record, encode_batch
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentMetadataUpdate
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.rlmm.partitioner import metadata_partition

_ARCHIVE = "kafka-4.3.1.tar.gz"
_STORE = Path("remote", "kafka-tiered-storage")
_LOG_WITH_FLIPPED_BYTE = "slow7-0-lcnE_s-aS2CK3YNg0m89Qg/00000000000000000000-IFofCnMCQE6z3_jircTlnQ.log"
_REMOVED_LOG = "orders7-0-Ex-aw3fEQIi3do0H9Y7cKQ/00000000000000000005-V_QmtSRAS-qC_YrVmRd2HA.log"
_CUT_INDEX = "slow7-0-lcnE_s-aS2CK3YNg0m89Qg/00000000000000000126-GO1yWZckTOapkLtIH_MiCg.index"  # 128 bytes
_STRAY = "orders7-2.tar.gz"
_STUCK = RemoteLogSegmentMetadata(
    # The broker's last local segment of this partition.
    topic_id_partition=TopicIdPartition("lcnE_s-aS2CK3YNg0m89Qg", "slow7", 0),
    segment_id="q8Zt5sVnT5mE0yPzv1u2Xw",
    start_offset=247,
    end_offset=286,
    author=1,
    max_timestamp_ms=1_795_252_470_000,
    event_timestamp_ms=1_795_252_480_000,
    segment_leader_epochs=((2, 247),),
    segment_size_in_bytes=328_486,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a cluster, and the one finding that must report it."""

    done: str
    inject: Callable[[Path], None]
    """Injects it into the cluster in this folder."""
    code: FindingCode
    subject: str
    position: int | None = None
    offsets: tuple[int, int] | None = None

    def is_told_by(self, finding: Mapping[str, Any]) -> bool:
        """Whether this finding, as `-o json` has it, names the fault and its exact place."""
        evidence = finding["evidence"]
        offsets = list(self.offsets) if self.offsets else None
        identity = (finding["code"], finding["subject"], evidence.get("position"), evidence.get("offsets"))
        return identity == (self.code, self.subject, self.position, offsets)


def unpack_cluster(folder: Path) -> None:
    """Writes what a real broker left into a folder: `data`, its log directory, and `remote`, its
    LocalTieredStorage, with the topic folders where a broker has them."""
    packed = files("tieredctl") / "demo_cluster" / _ARCHIVE
    with packed.open("rb") as file, tarfile.open(fileobj=file, mode="r:gz") as archive:
        # Python before 3.11.4 has no filters.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    packed_store = (folder / _STORE.parts[0]).rename(folder / _STORE.name)
    (folder / _STORE).parent.mkdir()
    packed_store.rename(folder / _STORE)


def _flip_byte(cluster: Path) -> None:
    flip_bits(cluster / _STORE / _LOG_WITH_FLIPPED_BYTE, 500_000)


def _remove_log(cluster: Path) -> None:
    (cluster / _STORE / _REMOVED_LOG).unlink()


def _cut_index(cluster: Path) -> None:
    cut(cluster / _STORE / _CUT_INDEX, 64)


def _leave_stray(cluster: Path) -> None:
    (cluster / _STORE / _STRAY).write_bytes(bytes(4_096))


def _begin_copy(cluster: Path) -> None:
    append_event(cluster / "data", _STUCK)


FAULTS = (
    Fault(
        "flipped byte 500000 of the log of slow7-0 IFofCnMCQE6z3_jircTlnQ, in the batch at byte 459856",
        _flip_byte,
        FindingCode.BATCH_CORRUPT,
        "slow7-0 IFofCnMCQE6z3_jircTlnQ log",
        position=459_856,
        offsets=(56, 62),
    ),
    Fault(
        "removed the log of orders7-0 V_QmtSRAS-qC_YrVmRd2HA",
        _remove_log,
        FindingCode.OBJECT_MISSING,
        "orders7-0 V_QmtSRAS-qC_YrVmRd2HA log",
        offsets=(5, 7),
    ),
    Fault(
        "cut the offset index of slow7-0 GO1yWZckTOapkLtIH_MiCg to 64 bytes",
        _cut_index,
        FindingCode.INDEX_DAMAGED,
        "slow7-0 GO1yWZckTOapkLtIH_MiCg offset-index",
        position=64,
    ),
    Fault(f"put a stray file into the store, {_STRAY}", _leave_stray, FindingCode.OBJECT_UNREFERENCED, _STRAY),
    Fault(
        f"appended COPY_SEGMENT_STARTED of slow7-0 {_STUCK.segment_id}, without an end",
        _begin_copy,
        FindingCode.COPY_STUCK,
        f"{_STUCK.topic_id_partition} {_STUCK.segment_id}",
    ),
)
"""The faults that `demo` injects into the cluster of `unpack_cluster`."""


SegmentEvent = RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate


def flip_bits(path: Path, position: int, mask: int = 0xFF) -> None:
    """Flips the bits in `mask` of the byte at `position`."""
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes((byte ^ mask,)))


def cut(path: Path, size: int) -> None:
    """Cuts a file after its first `size` bytes."""
    with path.open("r+b") as file:
        file.truncate(size)


def append_event(log_dir: Path, event: SegmentEvent) -> None:
    """Appends an event to its metadata partition, as its leader would."""
    partition = event.topic_id_partition
    partitions = len(list(log_dir.glob(f"{METADATA_TOPIC}-*")))
    number = metadata_partition(partition.topic_id, partition.partition, partitions)
    log = max((log_dir / f"{METADATA_TOPIC}-{number}").glob("*.log"))
    last = max(_headers(log), key=lambda header: header.last_offset, default=None)
    offset, epoch = (last.last_offset + 1, last.partition_leader_epoch) if last else (int(log.stem), 0)
    record = Record(offset, event.event_timestamp_ms, None, encode_event(event))
    with log.open("ab") as file:
        file.write(encode_batch([record], partition_leader_epoch=epoch))


def _headers(log: Path) -> Iterator[BatchHeader]:
    data = log.read_bytes()
    for part in scan_log([data], len(data), OneByOne()):
        if isinstance(part, LogBlock):
            yield from part.headers
