"""A controller on a real socket that answers as a test says: with the errors that Kafka's source names, and with lies.

Kafka 3.9 and 4.3 fail to write an answer with an error of the partition: they answer UNKNOWN_SERVER_ERROR instead.
"""

from __future__ import annotations

import socketserver
import struct
from dataclasses import dataclass, field
from threading import Thread
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from tests.rigs.gone_clients import SilentAboutGoneClients
from tieredctl.kafka.fetch_snapshot import FetchSnapshotResponse

FETCH, API_VERSIONS, FETCH_SNAPSHOT = 1, 18, 59
UNKNOWN_SERVER_ERROR, NOT_LEADER, FENCED_EPOCH, UNKNOWN_EPOCH, NOT_FOUND, OUT_OF_RANGE = -1, 6, 74, 75, 98, 99
_LENGTH = struct.Struct(">i")
_BEGINNING_OF_REQUEST = struct.Struct(">hhi")


class _Server(SilentAboutGoneClients, socketserver.ThreadingTCPServer):
    pass


@dataclass
class ScriptedController:
    """Node 1, which leads in epoch 5 and has one snapshot, inside a `with`."""

    snapshot: bytes
    snapshot_id: tuple[int, int] | None = (47, 5)
    log: bytes = b""
    """What it has of the log from its beginning on."""
    node_id: int = 1
    epoch: int = 5
    leader_id: int = 1
    size: int | None = None
    """What it says of the snapshot's size, if not the truth."""
    top_level_error: int = 0
    """In the answer to every Fetch."""
    errors: list[int] = field(default_factory=list)
    """In the answers to the next requests for a snapshot."""
    hides_errors: bool = False
    """Whether it answers UNKNOWN_SERVER_ERROR instead, as Kafka does."""
    garbage: bytes | None = None
    """What follows the correlation id of every answer about a snapshot, instead of it."""
    api_keys: tuple[int, ...] = (FETCH, API_VERSIONS, FETCH_SNAPSHOT)
    others: dict[int, int] = field(default_factory=dict)
    """Ports of other controllers, by node id."""
    positions: list[int] = field(default_factory=list)
    """Where chunks were asked for."""

    def __enter__(self) -> Self:
        controller = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while beginning := self.rfile.read(_LENGTH.size):
                    frame = self.rfile.read(_LENGTH.unpack(beginning)[0])
                    key, version, correlation_id = _BEGINNING_OF_REQUEST.unpack_from(frame)
                    self.wfile.write(controller.answer(key, version, correlation_id, frame))

        self._server = _Server(("localhost", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.address = f"localhost:{self.port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, key: int, version: int, correlation_id: int, frame: bytes) -> bytes:
        """The whole frame of an answer."""
        if key == FETCH_SNAPSHOT and self.garbage is not None:
            body = struct.pack(">ib", correlation_id, 0) + self.garbage
            return _LENGTH.pack(len(body)) + body
        answers = {API_VERSIONS: self._versions, FETCH: self._fetch, FETCH_SNAPSHOT: self._chunk}
        answer = answers[key](version, frame)
        answer.with_header(correlation_id=correlation_id)
        encoded: bytes = answer.encode(framed=True, header=True)
        return encoded

    def _versions(self, version: int, frame: bytes) -> Any:
        from kafka.protocol.metadata import ApiVersionsResponse

        del frame
        keys = [
            ApiVersionsResponse.ApiVersion(version=version, api_key=key, min_version=0, max_version=17)
            for key in self.api_keys
        ]
        return ApiVersionsResponse(version=version, error_code=0, api_keys=keys)

    def _fetch(self, version: int, frame: bytes) -> Any:
        from kafka.protocol.consumer import FetchRequest, FetchResponse

        asked = FetchRequest.decode(frame, version=version, header=True).topics[0].partitions[0]
        topics = FetchResponse.FetchableTopicResponse
        partitions = topics.PartitionData
        error = self._leader_error(asked.current_leader_epoch)
        tags: dict[str, Any] = {
            "current_leader": partitions.LeaderIdAndEpoch(
                version=version, leader_id=self.leader_id, leader_epoch=self.epoch
            )
        }
        is_sent_the_snapshot = asked.fetch_offset == 0 and not error
        if self.snapshot_id is not None and is_sent_the_snapshot:
            end_offset, epoch = self.snapshot_id
            tags["snapshot_id"] = partitions.SnapshotId(version=version, end_offset=end_offset, epoch=epoch)
        partition = partitions(
            version=version,
            partition_index=0,
            error_code=error,
            high_watermark=50,
            log_start_offset=0,
            aborted_transactions=[],
            records=b"" if is_sent_the_snapshot and self.snapshot_id else self.log,
            **tags,
        )
        topic = topics(version=version, topic_id=UUID(int=1), partitions=[partition])
        nodes = [
            FetchResponse.NodeEndpoint(version=version, node_id=node, host="localhost", port=port, rack=None)
            for node, port in self.others.items()
            if node == self.leader_id
        ]
        return FetchResponse(
            version=version,
            error_code=self.top_level_error,
            session_id=0,
            responses=[] if self.top_level_error else [topic],
            node_endpoints=nodes,
        )

    def _leader_error(self, epoch: int) -> int:
        """As KafkaRaftClient.validateLeaderOnlyRequest."""
        if epoch != self.epoch:
            return FENCED_EPOCH if epoch < self.epoch else UNKNOWN_EPOCH
        return 0 if self.leader_id == self.node_id else NOT_LEADER

    def _chunk(self, version: int, frame: bytes) -> Any:
        from tieredctl.kafka.fetch_snapshot import FetchSnapshotRequest

        request = FetchSnapshotRequest.decode(frame, version=version, header=True)
        asked = request.topics[0].partitions[0]
        self.positions.append(asked.position)
        error = self.errors.pop(0) if self.errors else self._leader_error(asked.current_leader_epoch)
        wanted = (asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        if not error and wanted != self.snapshot_id:
            error = NOT_FOUND
        if not error and not 0 <= asked.position < len(self.snapshot):
            error = OUT_OF_RANGE
        if error and self.hides_errors:
            return FetchSnapshotResponse(version=version, error_code=UNKNOWN_SERVER_ERROR, topics=[])
        topics = FetchSnapshotResponse.TopicSnapshot
        partitions = topics.PartitionSnapshot
        partition = partitions(
            version=version,
            index=0,
            error_code=error,
            snapshot_id=partitions.SnapshotId(version=version, end_offset=wanted[0], epoch=wanted[1]),
            size=0 if error else len(self.snapshot) if self.size is None else self.size,
            position=asked.position,
            unaligned_records=b"" if error else self.snapshot[asked.position :][: request.max_bytes],
        )
        topic = topics(version=version, name="__cluster_metadata", partitions=[partition])
        return FetchSnapshotResponse(version=version, error_code=0, topics=[topic])
