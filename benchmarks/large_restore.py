"""Backup sets of a large cluster, and its restore: `python -m benchmarks.large_restore FOLDER --topics 1000`.

A real broker has the topics and the events of `__remote_log_metadata`. It does not tier: the store's files have the
sizes that the metadata promises, and no bytes but of the last segment's leader epochs, which alone are read. What is
measured are tieredctl's own processes.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from benchmarks.measure import Contender, tieredctl
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
from tieredctl.rlmm.partitioner import DEFAULT_METADATA_PARTITIONS, metadata_partition

RECORDS_IN_SEGMENT = 1_000
SEGMENT_BYTES = 1_000_000
SUFFIXES = {".log": SEGMENT_BYTES, ".index": 4_096, ".timeindex": 6_144}
COPIED_MS = 1_795_000_000_000
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
        producer = Producer(
            {
                "bootstrap.servers": self.broker.bootstrap_server,
                "linger.ms": 50,
                "queue.buffering.max.messages": 200_000,
            }
        )
        for place in range(first, first + count):
            for one in self.partitions:
                segment_id = os.urandom(16)
                home = metadata_partition(one.topic_id, one.partition, DEFAULT_METADATA_PARTITIONS)
                for event in _events(one, uuid_text(segment_id), place * RECORDS_IN_SEGMENT):
                    producer.produce(METADATA_TOPIC, encode_event(event), partition=home, timestamp=COPIED_MS)
                self._write(one, uuid_text(segment_id), place * RECORDS_IN_SEGMENT, is_last=place == first + count - 1)
                producer.poll(0)
            producer.flush(120)

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
    yield RemoteLogSegmentMetadataUpdate(
        topic_id_partition=partition,
        segment_id=segment_id,
        author=1,
        event_timestamp_ms=COPIED_MS,
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
    )


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


def _measure(name: str, command: Sequence[str]) -> None:
    contender = Contender(name, command)
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
        tieredctl("store", "compare", *store, "--to", f"file:{copy}", "--by", "size", *json),
    )


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
