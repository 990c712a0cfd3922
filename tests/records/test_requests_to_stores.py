"""One offset out of a large segment takes at most three requests of a server, and little of what it has."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tieredctl_aiven import AivenLayout
from tieredctl_aiven.keys import PrivateKeys

from tests.faults.aiven_storage_manager import AivenStorageManager, private_key
from tests.faults.cluster import LAYOUT
from tests.records.kafka_records import rows_of
from tests.records.one_segment import OneSegment, of_log
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy
from tests.rigs.object_servers import ObjectServer
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.ports.layout import Layout, Part
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.remote_partition import RemotePartition
from tieredctl.records.request import RecordRequest
from tieredctl.records.served_spans import ServedSpan
from tieredctl.rlmm.cache import NOTHING_DELETED
from tieredctl.storage.registry import open_store

INTERVAL, BATCHES, CHUNK = 4_096, 2_048, 1 << 20
MOST_REQUESTS = 3
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


def segment() -> OneSegment:
    """Eight MiB: batches of an index interval, each with an entry."""
    empty = len(encode_batch([Record(0, 0, None, b"")], partition_leader_epoch=3))
    value = bytes(INTERVAL - empty - 2)
    log = b"".join(encode_batch([Record(n, 0, None, value)], partition_leader_epoch=3) for n in range(BATCHES))
    assert len(log) == INTERVAL * BATCHES
    index = b"".join(n.to_bytes(4) + (n * INTERVAL).to_bytes(4) for n in range(1, BATCHES))
    return of_log(log, 0, BATCHES - 1).with_part(Part.OFFSET_INDEX, index)


def test_one_offset_takes_at_most_three_requests_of_a_server(versitygw: ObjectServer) -> None:
    made, bucket = segment(), S3Bucket(versitygw.endpoint)
    aiven = AivenLayout(keys=PrivateKeys((private_key(),)))
    indexed = {Part.TIME_INDEX: b"", Part.PRODUCER_SNAPSHOT: b"", **made.parts}
    chunked = AivenStorageManager(CHUNK, compression=True, encryption=True).objects(indexed)
    chunk_bytes = len(chunked[Part.LOG]) * CHUNK // (INTERVAL * BATCHES) + 100
    layouts: list[tuple[Layout, Mapping[Part, bytes], int]] = [
        (LAYOUT, made.parts, 2 * INTERVAL + 61),
        (aiven, chunked, 2 * chunk_bytes),
    ]
    for layout, parts, most_bytes in layouts:
        keys = layout.promised_objects(made.metadata)
        for part, data in parts.items():
            bucket.put(keys[part], data)
        with FaultyProxy(versitygw.endpoint) as proxy:
            for offset in (0, 1, 777, BATCHES - 1):
                proxy.requests.clear()
                store = open_store(f"s3://{BUCKET}", {"endpoint": proxy.endpoint, "addressing-style": "path"})
                span = ServedSpan(made.metadata, 0, BATCHES - 1)
                remote = RemotePartition(made.metadata.topic_id_partition, [span], None, NOTHING_DELETED)

                rows = rows_of(PartitionRecords(remote, store, layout, RecordRequest(offset, offset + 1)))

                asked = [(one.path, one.headers.get("range", "")) for one in proxy.requests]
                assert [row[0] for row in rows] == [offset], layout
                assert len(asked) <= MOST_REQUESTS, asked
                ((start, end),) = (_RANGE.findall(bounds)[0] for path, bounds in asked if path.endswith(".log"))
                assert int(end) - int(start) < most_bytes, asked
