"""Backup sets of a large cluster, its restore, and what is healed in it: `python -m benchmarks.large_restore FOLDER
--topics 1000`.

A real broker has the topics and the events of `__remote_log_metadata`. It does not tier: the store's files have the
sizes that the metadata promises, and no bytes but of the last segment's leader epochs, which alone are read. One more
topic has whole segments, of which every log is lost or damaged. What is measured are tieredctl's own processes.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from benchmarks.measure import Contender, tieredctl
from tests.faults.cluster import key_of
from tests.faults.segment_writer import SegmentWriter
from tests.rigs.broker import METADATA_TOPIC, KafkaBroker
from tests.rigs.maven import kafka_jars
from tests.rigs.topics import create_topics, topic_ids
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.formats.metadata_records import encode_event
from tieredctl.model.events import (
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ports.layout import Part
from tieredctl.rlmm.partitioner import DEFAULT_METADATA_PARTITIONS, metadata_partition

RECORDS_IN_SEGMENT = 1_000
SEGMENT_BYTES = 1_000_000
SUFFIXES = {".log": SEGMENT_BYTES, ".index": 4_096, ".timeindex": 6_144}
COPIED_MS = 1_795_000_000_000
WHOLE = "whole"
"""The topic whose segments have all their bytes."""
_SEGMENTS_TO_HEAL, _BATCHES = 1_000, 10
_TOPICS_AT_ONCE = 20
_PROPERTIES = {
    "remote.log.storage.system.enable": "false",
    "log.retention.check.interval.ms": "3600000",
    "metadata.log.max.record.bytes.between.snapshots": str(20 << 20),
    "log.index.size.max.bytes": "4096",
    "auto.create.topics.enable": "false",
}


class _LargeBroker(KafkaBroker):
    heap = "-Xmx3G"


@dataclass(frozen=True)
class LargeCluster:
    """A broker that runs, its partitions, and its store."""

    broker: KafkaBroker
    folder: Path
    partitions: Sequence[TopicIdPartition]

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def copy_segments(self, first: int, count: int) -> None:
        """Of each partition so many, with their events and files; `first` is the place of the first of them."""
        producer = self._producer()
        for place in range(first, first + count):
            for one in self.partitions:
                segment_id = os.urandom(16)
                _send(producer, one, _events(one, uuid_text(segment_id), place * RECORDS_IN_SEGMENT))
                self._write(one, uuid_text(segment_id), place * RECORDS_IN_SEGMENT, is_last=place == first + count - 1)
            producer.flush(120)

    def copy_whole_segments(self, partition: TopicIdPartition, count: int, replica: Path) -> None:
        """So many with all their bytes, to a replica of the store; in the store itself no log is what it was."""
        producer = self._producer()
        for place in range(count):
            writer = SegmentWriter(place * RECORDS_IN_SEGMENT, partition=partition, seed=place)
            for _ in range(_BATCHES):
                writer.append(writer.data(RECORDS_IN_SEGMENT // _BATCHES))
            written = writer.close()
            metadata = replace(written.metadata, segment_id=uuid_text(os.urandom(16)))
            begun = replace(metadata, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED)
            _send(producer, partition, [begun, _finished(partition, metadata.segment_id)])
            for part, data in written.parts.items():
                _put(replica / key_of(metadata, part), data)
                if part is not Part.LOG:
                    _put(self.store / key_of(metadata, part), data)
                elif place % 2:
                    _put(self.store / key_of(metadata, part), data[:-1] + bytes([data[-1] ^ 1]))
        producer.flush(120)

    def _producer(self) -> Producer:
        settings = {"linger.ms": 50, "queue.buffering.max.messages": 200_000}
        return Producer({"bootstrap.servers": self.broker.bootstrap_server, **settings})

    def _write(self, partition: TopicIdPartition, segment_id: str, start: int, *, is_last: bool) -> None:
        folder = self.store / f"{partition.topic}-{partition.partition}-{partition.topic_id}"
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, size in SUFFIXES.items():
            with (folder / f"{start:020}-{segment_id}{suffix}").open("wb") as file:
                file.truncate(size)
        if is_last:
            epochs = encode_leader_epoch_checkpoint([EpochEntry(0, 0)])
            (folder / f"{start:020}-{segment_id}.leader_epoch_checkpoint").write_bytes(epochs)


def _events(partition: TopicIdPartition, segment_id: str, start: int) -> Iterator[MetadataEvent]:
    yield RemoteLogSegmentMetadata(
        topic_id_partition=partition,
        segment_id=segment_id,
        start_offset=start,
        end_offset=start + RECORDS_IN_SEGMENT - 1,
        author=1,
        max_timestamp_ms=COPIED_MS,
        event_timestamp_ms=COPIED_MS,
        segment_leader_epochs=((0, start),),
        segment_size_in_bytes=SEGMENT_BYTES,
        txn_idx_empty=True,
    )
    yield _finished(partition, segment_id)


def _finished(partition: TopicIdPartition, segment_id: str) -> RemoteLogSegmentMetadataUpdate:
    return RemoteLogSegmentMetadataUpdate(
        topic_id_partition=partition,
        segment_id=segment_id,
        author=1,
        event_timestamp_ms=COPIED_MS,
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
    )


def _send(producer: Producer, partition: TopicIdPartition, events: Iterable[MetadataEvent]) -> None:
    home = metadata_partition(partition.topic_id, partition.partition, DEFAULT_METADATA_PARTITIONS)
    for event in events:
        producer.produce(METADATA_TOPIC, encode_event(event), partition=home, timestamp=COPIED_MS)
    producer.poll(0)


def _put(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


@contextmanager
def large_cluster(folder: Path, topics: int, partitions: int, segments: int) -> Iterator[LargeCluster]:
    """A cluster whose partitions have so many segments each."""
    names = [f"topic-{number:04}" for number in range(topics)]
    with _LargeBroker(kafka_jars("4.3.1"), properties=_PROPERTIES, work_dir=folder / "broker") as broker:
        server = broker.bootstrap_server
        create_topics(server, NewTopic(METADATA_TOPIC, DEFAULT_METADATA_PARTITIONS, replication_factor=1))
        for start in range(0, topics, _TOPICS_AT_ONCE):
            some = names[start : start + _TOPICS_AT_ONCE]
            create_topics(server, *(NewTopic(name, partitions, replication_factor=1) for name in some))
        ids = topic_ids(server, names)
        places = [TopicIdPartition(ids[name], name, number) for name in names for number in range(partitions)]
        cluster = LargeCluster(broker, folder, places)
        cluster.copy_segments(0, segments)
        yield cluster


def _measure(name: str, command: Sequence[str], exit_code: int = 0) -> None:
    contender = Contender(name, command, exit_code)
    contender.run()
    (run,) = contender.runs
    print(f"| {name} | {run.wall:.0f} s | {run.cpu:.0f} s | {run.megabytes:.0f} MB |", flush=True)


def measure(cluster: LargeCluster, segments: int) -> None:
    """Prints a line for each command."""
    live, sets = ("--bootstrap-server", cluster.broker.bootstrap_server), f"file:{cluster.folder}/sets"
    (cluster.folder / "sets").mkdir()
    store = ("--store", f"file:{cluster.store}", "--layout", "local")
    restored = ("--from", sets, *store, "--node", f"1={cluster.folder / 'node'}")
    confirmed = ("--yes", "--cluster-id", cluster.broker.cluster_id)
    json = ("-q", "-o", "json")
    print("| | took | CPU | memory |\n| --- | --- | --- | --- |", flush=True)
    _measure("`backup run`, the first set", tieredctl("backup", "run", *live, "--to", sets, *json))
    cluster.copy_segments(segments, 1)
    _measure("`backup run`, the next", tieredctl("backup", "run", *live, "--to", sets, *json))
    _measure("`backup verify`, of both", tieredctl("backup", "verify", "--from", sets, *json))
    _measure("`restore plan`", tieredctl("restore", "plan", *restored, *json))
    _measure("`restore apply`", tieredctl("restore", "apply", *restored, *confirmed, *json))
    copy = cluster.folder / "copy"
    shutil.copytree(cluster.store, copy, copy_function=os.link)
    _measure(
        "`store compare --by size`",
        tieredctl("store", "compare", *store, "--to", f"file:{copy}", "--by", "size", "-q", "-o", "jsonl"),
    )
    shutil.rmtree(copy)
    measure_healing(cluster)


def measure_healing(cluster: LargeCluster) -> None:
    """Prints a line for each command."""
    server, replica, result = cluster.broker.bootstrap_server, cluster.folder / "replica", cluster.folder / "verified"
    create_topics(server, NewTopic(WHOLE, 1, replication_factor=1))
    partition = TopicIdPartition(topic_ids(server, [WHOLE])[WHOLE], WHOLE, 0)
    cluster.copy_whole_segments(partition, _SEGMENTS_TO_HEAL, replica)
    places = ("--bootstrap-server", server, "--store", f"file:{cluster.store}", "--layout", "local")
    verify = tieredctl("verify", *places, "--topic", WHOLE, "-q", "-o", "json")
    _measure(f"`verify`, of {_SEGMENTS_TO_HEAL:,} segments", ["sh", "-c", f'"$@" > {result}', "sh", *verify], 4)
    heal = ("heal", "--result", str(result), *places, "--from-store", f"file:{replica}", "-q", "-o", "json")
    confirmed = ("--apply", "--yes", "--cluster-id", cluster.broker.cluster_id)
    _measure(f"`heal`, the plan for {_SEGMENTS_TO_HEAL:,} logs", tieredctl(*heal), 3)
    _measure("`heal --apply`", tieredctl(*heal, *confirmed))
    _measure("`verify`, again", verify)


def main() -> None:
    """Makes the cluster, and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--topics", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--segments", type=int, default=50, help="of each partition")
    options = parser.parse_args()
    with large_cluster(options.folder, options.topics, options.partitions, options.segments) as cluster:
        measure(cluster, options.segments)


if __name__ == "__main__":
    main()
