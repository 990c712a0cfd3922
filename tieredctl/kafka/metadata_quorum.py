"""Asks the leader of the metadata quorum for snapshots, over a controller's listener (KIP-630, KIP-595).

It asks as a client that is not a replica (id -1), of which the leader remembers nothing. A Fetch of the log from offset
0 shows everything that has to be known: a controller that does not lead answers with the leader's id, epoch and address
(KIP-853), the leader with the id of its latest snapshot (KafkaRaftClient.tryCompleteFetchRequest).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any
from uuid import UUID

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.file_names import KraftSnapshotName
from tieredctl.formats.kraft_snapshot import first_record_ms
from tieredctl.formats.record_batches import HEADER_BYTES, BatchHeader, crc_matches, read_batch_header
from tieredctl.kafka.broker_connection import REQUEST_TIMEOUT_SECONDS
from tieredctl.kafka.client_properties import read_client_properties, timeout_seconds
from tieredctl.kafka.connection_settings import server_addresses
from tieredctl.kafka.server_connection import ServerConnection, Unreachable, server_name
from tieredctl.ports.snapshot_source import LeaderChanged, QuorumLeader, SnapshotChunk

METADATA_LOG = "__cluster_metadata"
_METADATA_LOG_ID = UUID(int=1)
_NO_REPLICA = _NO_LEADER = -1
_FIRST_EPOCH = 1
_FETCH_VERSIONS, _FETCH_SNAPSHOT_VERSIONS = (12, 17), (0, 1)
"""The versions of Fetch that can answer with a snapshot's id, and those of FetchSnapshot."""
_SECONDS_BETWEEN_TRIES = 0.1
_SECONDS_FOR_A_START = 3.0
"""How long to look for the first leader: the controllers may be starting, or electing one."""
_TRIES_AT_ONCE = 3
_LOG_BYTES_AT_ONCE = 8 << 20


class _Error(IntEnum):
    UNKNOWN_SERVER_ERROR = -1
    NOT_LEADER_OR_FOLLOWER = 6
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    INCONSISTENT_CLUSTER_ID = 104


_LEADER_ERRORS = (_Error.NOT_LEADER_OR_FOLLOWER, _Error.FENCED_LEADER_EPOCH, _Error.UNKNOWN_LEADER_EPOCH)


class MetadataQuorum:
    """A `SnapshotSource` over controllers' listeners. To be closed."""

    def __init__(
        self,
        controllers: str,
        command_config: Path | None = None,
        request_timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
        *,
        cluster_id: str | None = None,
    ) -> None:
        """Does not connect yet. `controllers` are HOST:PORT, with commas between them; `cluster_id` is demanded of the
        cluster, if given. Raises TieredctlError `usage`."""
        self._controllers = controllers
        self._addresses = server_addresses(controllers)
        self._properties = read_client_properties(command_config)
        self._patience = timeout_seconds(self._properties, request_timeout_seconds)
        self._cluster_id = cluster_id
        self._connection: ServerConnection | None = None
        self._tried = 0
        self._leader: QuorumLeader | None = None

    def describe(self) -> dict[str, object]:
        leader = None if self._leader is None else self._leader.node_id
        return {"kind": "controllers", "bootstrapController": self._controllers, "leader": leader}

    def close(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def leader(self) -> QuorumLeader:
        patience = min(self._patience, _SECONDS_FOR_A_START) if self._leader is None else self._patience
        deadline = time.monotonic() + patience
        epoch = _FIRST_EPOCH if self._leader is None else self._leader.epoch
        tries, reason = 0, ""
        while True:
            try:
                answer = self._fetch(epoch)
            except Unreachable as error:
                reason = str(error)
                self._turn_to_next()
            else:
                partition = _partition(answer.responses)
                error_code = answer.error_code or (partition.error_code if partition is not None else 0)
                if not error_code and partition is not None:
                    self._leader = _leader(partition)
                    return self._leader
                if error_code not in _LEADER_ERRORS or partition is None:
                    raise self._refusal(error_code)
                current = partition.current_leader
                reason = f"{self._server} answered {_name(error_code)}, and reports {_leads(current.leader_id)}"
                epoch = max(current.leader_epoch, _FIRST_EPOCH)
                if error_code == _Error.NOT_LEADER_OR_FOLLOWER:
                    self._turn_to(current.leader_id, answer.node_endpoints)
            tries += 1
            if time.monotonic() > deadline and tries >= len(self._addresses):
                hint = "Check that a majority of the controllers runs, and give the address of each."
                raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, f"No leader was found: {reason}.", hint=hint)
            if tries > _TRIES_AT_ONCE:
                time.sleep(_SECONDS_BETWEEN_TRIES)

    def log_begins_ms(self) -> int | None:
        leader = self.leader()
        # At the log's start a leader with a snapshot answers with that; after it with records, if it has the epoch.
        after, epoch = 0, 0
        if leader.latest_snapshot is not None:
            after, epoch = leader.log_start_offset + 1, leader.latest_snapshot.epoch
        try:
            answer = self._fetch(leader.epoch, after, epoch)
        except Unreachable as error:
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, f"The leader did not answer: {error}.") from None
        partition = _partition(answer.responses)
        if answer.error_code or partition is None or partition.error_code:
            return None
        return first_record_ms(bytes(partition.records or b""))

    def chunk(self, snapshot: KraftSnapshotName, position: int, max_bytes: int) -> SnapshotChunk:
        deadline = time.monotonic() + self._patience
        while True:
            asked = self._leader or self.leader()
            try:
                return self._chunk(asked, snapshot, position, max_bytes)
            except (_Passing, Unreachable) as error:
                if time.monotonic() > deadline:
                    message = f"Controller {asked.node_id} does not serve snapshot {_id(snapshot)}: {error}."
                    raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message) from None
                if isinstance(error, Unreachable):
                    self._turn_to_next()
            if self.leader().node_id != asked.node_id:
                raise LeaderChanged

    def _chunk(self, leader: QuorumLeader, snapshot: KraftSnapshotName, position: int, max_bytes: int) -> SnapshotChunk:
        answer = self._fetch_snapshot(leader.epoch, snapshot, position, max_bytes)
        partition = _partition(answer.topics)
        error_code = answer.error_code or (partition.error_code if partition is not None else 0)
        if error_code in _LEADER_ERRORS:
            raise _Passing(_name(error_code))
        if error_code == _Error.SNAPSHOT_NOT_FOUND:
            raise _not_found(leader, snapshot)
        if error_code == _Error.POSITION_OUT_OF_RANGE:
            raise _out_of_range(leader, snapshot, position)
        if error_code == _Error.UNKNOWN_SERVER_ERROR:
            raise self._reason_unsaid(leader, snapshot, position)
        if error_code or partition is None:
            raise self._refusal(error_code)
        answered_id, data = partition.snapshot_id, bytes(partition.unaligned_records or b"")
        if (answered_id.end_offset, answered_id.epoch, partition.position) != (
            snapshot.end_offset,
            snapshot.epoch,
            position,
        ):
            message = (
                f"{self._server} answered with byte {partition.position} of snapshot {_id(answered_id)}, not with byte "
            )
            raise TieredctlError(ErrorCode.BROKER_REFUSED, f"{message}{position} of {_id(snapshot)}.", hint="")
        if not data and position < partition.size:
            raise _Passing("it sent no bytes")
        return SnapshotChunk(partition.size, data)

    def _reason_unsaid(self, leader: QuorumLeader, snapshot: KraftSnapshotName, position: int) -> Exception:
        """Why a controller answered UNKNOWN_SERVER_ERROR. Kafka (3.9 and 4.3 were seen) fails to write the answer that
        has an error in it, for want of records in it, so that it stands for all errors of a partition."""
        now = self.leader()
        if (now.node_id, now.epoch) != (leader.node_id, leader.epoch):
            return _Passing("the leader's epoch changed")
        if position:
            answer = self._fetch_snapshot(leader.epoch, snapshot, 0, 1)
            if not answer.error_code:
                return _out_of_range(leader, snapshot, position)
        return _not_found(leader, snapshot)

    def log_after(self, snapshot: KraftSnapshotName | None) -> Iterator[bytes]:
        leader = self.leader()
        offset, epoch = (0, 0) if snapshot is None else (snapshot.end_offset, snapshot.epoch)
        while offset < leader.high_watermark:
            try:
                answer = self._fetch(leader.epoch, offset, epoch, _LOG_BYTES_AT_ONCE)
            except Unreachable as error:
                raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, f"The leader did not answer: {error}.") from None
            partition = _partition(answer.responses)
            error_code = answer.error_code or (partition.error_code if partition is not None else 0)
            if partition is None or error_code in _LEADER_ERRORS:
                raise LeaderChanged
            if error_code:
                raise self._refusal(error_code)
            before = offset
            for header, batch in _whole_batches(bytes(partition.records or b"")):
                if header.last_offset >= leader.high_watermark:
                    return
                yield batch
                offset, epoch = header.last_offset + 1, header.partition_leader_epoch
            if offset == before:  # it answered with a newer snapshot, or with where the logs part
                raise LeaderChanged

    def _fetch(self, epoch: int, offset: int = 0, last_fetched_epoch: int = 0, max_bytes: int = 1) -> Any:
        from kafka.protocol.consumer import FetchRequest

        topics = FetchRequest.FetchTopic
        asked = topics.FetchPartition(
            partition=0,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_fetched_epoch,
            log_start_offset=-1,
            partition_max_bytes=max_bytes,
        )
        connection = self._connected()
        request = FetchRequest(
            version=self._version_of(connection, FetchRequest.API_KEY, _FETCH_VERSIONS),
            **self._demanded_cluster(),
            replica_id=_NO_REPLICA,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[topics(topic=METADATA_LOG, topic_id=_METADATA_LOG_ID, partitions=[asked])],
            forgotten_topics_data=[],
            rack_id="",
        )
        return connection.answer_to(request, self._patience)

    def _fetch_snapshot(self, epoch: int, snapshot: KraftSnapshotName, position: int, max_bytes: int) -> Any:
        from tieredctl.kafka.fetch_snapshot import FetchSnapshotRequest

        topics = FetchSnapshotRequest.TopicSnapshot
        partitions = topics.PartitionSnapshot
        snapshot_id = partitions.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
        asked = partitions(partition=0, current_leader_epoch=epoch, snapshot_id=snapshot_id, position=position)
        connection = self._connected()
        request = FetchSnapshotRequest(
            version=self._version_of(connection, FetchSnapshotRequest.API_KEY, _FETCH_SNAPSHOT_VERSIONS),
            **self._demanded_cluster(),
            replica_id=_NO_REPLICA,
            max_bytes=max_bytes,
            topics=[topics(name=METADATA_LOG, partitions=[asked])],
        )
        return connection.answer_to(request, self._patience)

    def _demanded_cluster(self) -> Mapping[str, str]:
        return {} if self._cluster_id is None else {"cluster_id": self._cluster_id}

    def _version_of(self, connection: ServerConnection, api_key: int, usable: tuple[int, int]) -> int:
        """The latest version that both know. Raises TieredctlError `usage` where it is not a controller's listener."""
        from tieredctl.kafka.fetch_snapshot import FetchSnapshotRequest

        if FetchSnapshotRequest.API_KEY not in connection.versions:
            message = f"{connection.server} is not a controller's listener: it does not know the request FetchSnapshot."
            hint = "Give a broker with --bootstrap-server, and a controller's own listener with --bootstrap-controller."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
        first, last = connection.versions.get(api_key, (0, -1))
        version = min(last, usable[1])
        if version < max(first, usable[0]):
            raise self._refusal(_Error.UNSUPPORTED_VERSION)
        return version

    @property
    def _server(self) -> str:
        return self._controllers if self._connection is None else self._connection.server

    def _connected(self) -> ServerConnection:
        """Raises Unreachable."""
        if self._connection is None:
            host, port = self._addresses[self._tried % len(self._addresses)]
            try:
                self._connection = ServerConnection(host, port, self._properties, self._patience)
            except Unreachable as error:
                raise Unreachable(f"{server_name(host, port)} {error}") from None
        return self._connection

    def _turn_to_next(self) -> None:
        self.close()
        self._tried += 1

    def _turn_to(self, node_id: int, endpoints: Any) -> None:
        """To a controller's address, if it was answered; to the next of those that were given where it was not."""
        address = next(((one.host, one.port) for one in endpoints or () if one.node_id == node_id), None)
        if address is None:
            self._turn_to_next()
            return
        if address not in self._addresses:
            self._addresses.append(address)
        self.close()
        self._tried = self._addresses.index(address)

    def _refusal(self, error_code: int) -> TieredctlError:
        if error_code == _Error.CLUSTER_AUTHORIZATION_FAILED:
            hint = "The user needs the operation ClusterAction on the cluster."
            return TieredctlError(ErrorCode.BROKER_REFUSED, "The user may not fetch the metadata log.", hint=hint)
        if error_code == _Error.INCONSISTENT_CLUSTER_ID:
            message = f"{self._server} belongs to another cluster than {self._cluster_id}."
            return TieredctlError(ErrorCode.ANOTHER_CLUSTER, message, hint="Check --cluster-id and the address.")
        if error_code == _Error.UNSUPPORTED_VERSION:
            message = f"{self._server} knows no version of the request that tieredctl knows."
            return TieredctlError(ErrorCode.BROKER_REFUSED, message, hint="Kafka 3.3 and later are supported.")
        return TieredctlError(ErrorCode.BROKER_REFUSED, f"{self._server} answered {_name(error_code)}.", hint="")


def _whole_batches(data: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    """The batches that arrived whole. Raises DecodeError where one is damaged."""
    position = 0
    while len(data) - position >= HEADER_BYTES:
        header = read_batch_header(data, position, len(data))
        if header.size > len(data) - position:
            return
        if not crc_matches(data, position, header):
            raise DecodeError("CRC-32C does not match, in the leader's metadata log", position)
        yield header, data[position : position + header.size]
        position += header.size


class _Passing(Exception):
    """A refusal that asking again may end; the text says which."""


def _leader(partition: Any) -> QuorumLeader:
    snapshot_id, current = partition.snapshot_id, partition.current_leader
    latest = None
    if snapshot_id is not None and snapshot_id.end_offset > 0:
        latest = KraftSnapshotName(snapshot_id.end_offset, snapshot_id.epoch)
    return QuorumLeader(
        current.leader_id,
        current.leader_epoch,
        latest,
        partition.log_start_offset,
        partition.high_watermark,
    )


def _leads(node_id: int) -> str:
    return "no leader" if node_id == _NO_LEADER else f"controller {node_id} as the leader"


def _partition(topics: Any) -> Any:
    """The one partition of an answer; None where it has none."""
    partitions = topics[0].partitions if topics else None
    return partitions[0] if partitions else None


def _not_found(leader: QuorumLeader, snapshot: KraftSnapshotName) -> TieredctlError:
    message = f"Controller {leader.node_id} has no snapshot {_id(snapshot)}: it was deleted, or never made."
    latest = leader.latest_snapshot
    hint = f"Its latest is {_id(latest)}: run it again without --snapshot." if latest else "It has none yet."
    return TieredctlError(ErrorCode.SNAPSHOT_UNAVAILABLE, message, hint=hint)


def _out_of_range(leader: QuorumLeader, snapshot: KraftSnapshotName, position: int) -> TieredctlError:
    message = f"Snapshot {_id(snapshot)} of controller {leader.node_id} ends before byte {position}: it is another file"
    return TieredctlError(ErrorCode.SNAPSHOT_UNAVAILABLE, f"{message}.", hint="Run it again: it begins again.")


def _id(snapshot: Any) -> str:
    return f"{snapshot.end_offset}-{snapshot.epoch}"


def _name(error_code: int) -> str:
    from kafka.errors import for_code

    names = {error.value: error.name for error in _Error}
    return names.get(error_code) or str(for_code(error_code).message or error_code)
