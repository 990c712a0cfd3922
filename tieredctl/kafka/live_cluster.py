"""A live cluster, asked with kafka-python what librdkafka cannot ask."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.cluster_answers import (
    features_in,
    listed_offset,
    partitions_of,
    quorum_description,
    settings_in,
)
from tieredctl.kafka.kafka_python_client import CLUSTER_DENIED, PatientCluster, is_passing
from tieredctl.model.ids import uuid_text
from tieredctl.model.nearest import nearest_hint
from tieredctl.ports.cluster import (
    FIRST_VERSION_OF,
    BrokerFeatures,
    ConfigValue,
    ListedOffset,
    MetadataProgress,
    OffsetSpec,
    PartitionDescription,
    QuorumDescription,
    TopicDescription,
)

_SECONDS_FOR_A_SIGN_OF_LIFE = 2.0
"""The time for requests that brokers answer from memory."""
_CONSUMER = -1
_FIRST_VERSION_OF_TIMESTAMPS = 1
_UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
_NONE = -1
_SET, _DELETE = 0, 1
"""AlterConfigOp.OpType."""
_UNKNOWN_TOPIC, _NOT_LEADER, _INVALID_TOPIC = 3, 6, 17
_PASSING = frozenset({_UNKNOWN_TOPIC, 5, _NOT_LEADER, 74, 75, 78})
"""LEADER_NOT_AVAILABLE, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE; a topic is new, or gone."""


class LiveCluster(PatientCluster):
    """A `Cluster` over kafka-python. To be closed."""

    def topic(self, name: str) -> TopicDescription:
        from kafka.protocol.metadata import MetadataRequest

        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        (answer,) = self._ask(None, request).topics
        if answer.error_code == _UNKNOWN_TOPIC:
            raise self._unknown_topic(name)
        if answer.error_code == _INVALID_TOPIC:
            hint = "A name has letters, digits, '.', '_' and '-', 249 at most."
            raise TieredctlError(ErrorCode.USAGE, f"{name!r} is not a valid topic name.", hint=hint)
        self._demand_access(answer.error_code, f"topic {name}")
        return TopicDescription(name, uuid_text(answer.topic_id.bytes), partitions_of(answer))

    def _unknown_topic(self, name: str) -> TieredctlError:
        """The error for an unknown topic, with the nearest names that the user may see, whichever command asked."""
        alike = None
        with suppress(TieredctlError):
            alike = nearest_hint(name, self.topic_names())
        return TieredctlError(
            ErrorCode.UNKNOWN_TOPIC, f"{self._bootstrap_server} has no topic {name}.", hint=alike or ""
        )

    def topic_names(self) -> Sequence[str]:
        return sorted(self.topic_partitions())

    def topic_partitions(self) -> Mapping[str, Sequence[PartitionDescription]]:
        from kafka.protocol.metadata import MetadataRequest

        request = MetadataRequest(
            topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        return {topic.name: partitions_of(topic) for topic in self._ask(None, request).topics}

    def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue]]:
        from kafka.admin import ConfigResourceType
        from kafka.protocol.admin import DescribeConfigsRequest

        if not names:
            return {}
        kind = ConfigResourceType.TOPIC
        request = DescribeConfigsRequest(
            resources=[(kind, name, None) for name in names], include_synonyms=False, min_version=1
        )
        configs: dict[str, Mapping[str, ConfigValue]] = {}
        for resource in self._ask(None, request).results:
            if resource.error_code == _UNKNOWN_TOPIC:
                continue
            self._demand_access(resource.error_code, f"topic {resource.resource_name}", "DescribeConfigs")
            _demand_answer(resource.error_code, f"the settings of topic {resource.resource_name}")
            configs[resource.resource_name] = settings_in(resource)
        return configs

    def broker_configs(self) -> Mapping[int, Mapping[str, ConfigValue]]:
        from kafka.admin import ConfigResourceType
        from kafka.protocol.admin import DescribeConfigsRequest

        def ask(broker: int) -> Any:
            asked = [(ConfigResourceType.BROKER, str(broker), None)]
            request = DescribeConfigsRequest(resources=asked, include_synonyms=False, min_version=1)
            return self._ask(broker, request, awaits_broker=False)

        configs: dict[int, Mapping[str, ConfigValue]] = {}
        for broker, response in self._of_each_broker(ask):
            (resource,) = response.results
            self._demand_access(resource.error_code, "the cluster", "DescribeConfigs")
            _demand_answer(resource.error_code, f"the settings of broker {broker}")
            configs[broker] = settings_in(resource)
        return configs

    def broker_features(self) -> Mapping[int, BrokerFeatures]:
        def ask(broker: int) -> Any:
            return self._ask(broker, _api_versions_request(), awaits_broker=False)

        return {broker: features_in(response) for broker, response in self._of_each_broker(ask)}

    def metadata_progress(self) -> MetadataProgress:
        applied: dict[int, int | None] = {}
        for broker in self._broker_ids():
            try:
                response = self._ask(broker, _api_versions_request(), _SECONDS_FOR_A_SIGN_OF_LIFE)
            except TieredctlError as error:
                if error.code is not ErrorCode.BROKER_UNREACHABLE:
                    raise
                applied[broker] = None
            else:
                # KRaftMetadataCache.features: the offset of the broker's image of the metadata.
                epoch = response.finalized_features_epoch
                applied[broker] = None if epoch == _NONE else epoch + 1
        try:
            end = self._quorum(_SECONDS_FOR_A_SIGN_OF_LIFE).high_watermark
        except TieredctlError as error:
            if error.code not in (ErrorCode.BROKER_REFUSED, ErrorCode.BROKER_UNREACHABLE):
                raise
            end = None
        return MetadataProgress(end, applied)

    def quorum(self) -> QuorumDescription:
        deadline = time.monotonic() + self._request_timeout_seconds
        while True:
            try:
                return self._quorum()
            except TieredctlError as error:
                if error.code is not ErrorCode.BROKER_UNREACHABLE or time.monotonic() > deadline:
                    raise
            self._client.hear_of_changes()

    def _quorum(self, seconds: float | None = None) -> QuorumDescription:
        """The active controller's view of the metadata log."""
        from kafka.errors import IncompatibleBrokerVersion, UnsupportedVersionError
        from kafka.protocol.admin import DescribeQuorumRequest

        topics = DescribeQuorumRequest.TopicData
        asked = topics(topic_name="__cluster_metadata", partitions=[topics.PartitionData(partition_index=0)])
        try:
            response = self._ask(None, DescribeQuorumRequest(topics=[asked]), seconds)
        except (IncompatibleBrokerVersion, UnsupportedVersionError):
            message = f"{self._bootstrap_server} does not support DescribeQuorum: it has no KRaft controllers."
            raise TieredctlError(ErrorCode.BROKER_REFUSED, message, hint="") from None
        self._demand_access(response.error_code, "the cluster")
        parts = [part for one in response.topics for part in one.partitions]
        error_code = response.error_code or (parts[0].error_code if parts else 0)
        if error_code or not parts:
            _demand_answer(error_code or _NOT_LEADER, "its metadata quorum")
        return quorum_description(parts[0], response.nodes)

    def replica_bytes(self, names: Sequence[str]) -> Mapping[tuple[str, int], Mapping[int, int]]:
        wanted = set(names)
        bytes_of_replicas: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for broker, log_dirs in self._log_dirs():
            for log_dir in log_dirs:
                for topic in log_dir.topics:
                    if topic.name in wanted:
                        for one in topic.partitions:
                            if not one.is_future_key:  # what was copied of it to another disk so far
                                bytes_of_replicas[topic.name, one.partition_index][broker] = one.partition_size
        return bytes_of_replicas

    def free_bytes(self, names: Sequence[str]) -> Mapping[int, int]:
        wanted, free = set(names), dict[int, int]()
        for broker, log_dirs in self._log_dirs():
            for log_dir in log_dirs:
                if log_dir.usable_bytes != _NONE and any(topic.name in wanted for topic in log_dir.topics):
                    free[broker] = free.get(broker, 0) + log_dir.usable_bytes
        return free

    def _log_dirs(self) -> Iterator[tuple[int, Sequence[Any]]]:
        """Each broker's readable log directories."""
        from kafka.protocol.admin import DescribeLogDirsRequest

        def ask(broker: int) -> Any:
            return self._ask(broker, DescribeLogDirsRequest(topics=None), awaits_broker=False)

        for broker, response in self._of_each_broker(ask):
            # Before version 3 a broker refuses by listing no directory, and every broker has one.
            denied = CLUSTER_DENIED if not response.results and not response.error_code else response.error_code
            self._demand_access(denied, "the cluster")
            for log_dir in response.results:
                self._demand_access(log_dir.error_code, "the cluster")
            yield broker, response.results

    def alter_topic_configs(self, name: str, changes: Mapping[str, str | None], *, validate_only: bool) -> None:
        from kafka.admin import ConfigResourceType
        from kafka.errors import for_code as error_of
        from kafka.protocol.admin import IncrementalAlterConfigsRequest

        operations = [(key, _DELETE if value is None else _SET, value) for key, value in changes.items()]
        resources = [(ConfigResourceType.TOPIC, name, operations)]
        (answered,) = self._ask_until(
            lambda response: not is_passing(response.responses[0].error_code),
            lambda: IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only),
        ).responses
        self._demand_access(answered.error_code, f"topic {name}", "AlterConfigs")
        if answered.error_code == _UNKNOWN_TOPIC:
            raise self._unknown_topic(name)
        if answered.error_code:
            error = error_of(answered.error_code)
            reason = answered.error_message or error.message
            if error.retriable:
                raise TieredctlError(
                    ErrorCode.BROKER_UNREACHABLE, f"The settings of topic {name} were not changed: {reason}"
                )
            raise TieredctlError(ErrorCode.CONFIG_REFUSED, f"Kafka refuses these settings of topic {name}: {reason}")

    def list_offsets(self, topic: TopicDescription, timestamp: int) -> Mapping[int, ListedOffset]:
        answers: dict[int, ListedOffset] = {}
        deadline = time.monotonic() + self._request_timeout_seconds
        while open_questions := [one for one in topic.partitions if one.partition not in answers]:
            is_last = time.monotonic() > deadline
            for leader, partitions in _by_leader(open_questions).items():
                try:
                    offsets_of_leader = list(self._offsets_from(leader, topic.topic, partitions, timestamp))
                except TieredctlError as error:
                    if error.code is not ErrorCode.BROKER_UNREACHABLE or is_last:
                        raise
                    continue  # Another broker may lead soon.
                answers |= {
                    partition: answer for partition, answer, passing in offsets_of_leader if is_last or not passing
                }
            topic = topic if len(answers) == len(topic.partitions) else self._as_it_is_now(topic)
        return dict(sorted(answers.items()))

    def epoch_end_offset(self, topic: TopicDescription, partition: int, leader_epoch: int) -> tuple[int, int] | None:
        from kafka.errors import for_code as error_of

        deadline = time.monotonic() + self._request_timeout_seconds
        while True:
            leader = next(one.leader for one in topic.partitions if one.partition == partition)
            try:
                end = self._epoch_end_offset(leader, topic.topic, partition, leader_epoch)
            except TieredctlError as error:
                if error.code is not ErrorCode.BROKER_UNREACHABLE or time.monotonic() > deadline:
                    raise
            else:
                self._demand_access(end.error_code, f"topic {topic.topic}")
                if not end.error_code:
                    return None if end.end_offset == _NONE else (end.leader_epoch, end.end_offset)
                if end.error_code not in _PASSING or time.monotonic() > deadline:
                    message = f"The leader of {topic.topic}-{partition} answered: {error_of(end.error_code).message}."
                    raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message)
            topic = self._as_it_is_now(topic)

    def _as_it_is_now(self, topic: TopicDescription) -> TopicDescription:
        """The topic with the leaders of now. Raises TieredctlError `unknown-topic` where it is gone, whoever has its
        name."""
        self._client.hear_of_changes()
        now = self.topic(topic.topic)
        if now.topic_id != topic.topic_id:
            raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, f"Topic {topic.topic} was made again.", hint="")
        asked = {one.partition for one in topic.partitions}
        return replace(now, partitions=[one for one in now.partitions if one.partition in asked])

    def _epoch_end_offset(self, leader: int | None, topic: str, partition: int, leader_epoch: int) -> Any:
        from kafka.protocol.consumer import OffsetForLeaderEpochRequest

        topics = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        asked = topics.OffsetForLeaderPartition(partition=partition, leader_epoch=leader_epoch)
        request = OffsetForLeaderEpochRequest(topics=[topics(topic=topic, partitions=[asked])])
        return self._ask(leader, request, awaits_broker=False).topics[0].partitions[0]

    def _offsets_from(
        self, leader: int | None, topic: str, partitions: list[int], timestamp: int
    ) -> Iterator[tuple[int, ListedOffset, bool]]:
        """A leader's answers, and whether each may soon change."""
        from kafka.errors import IncompatibleBrokerVersion, UnsupportedVersionError
        from kafka.errors import for_code as error_of

        if leader is None:
            yield from ((one, ListedOffset(None, error="LEADER_NOT_AVAILABLE"), True) for one in partitions)
            return
        try:
            request = self._list_offsets_request(topic, partitions, timestamp)
            response = self._ask(leader, request, awaits_broker=False)
        except (IncompatibleBrokerVersion, UnsupportedVersionError):
            yield from ((one, ListedOffset(None, error=_UNSUPPORTED_VERSION), False) for one in partitions)
            return
        for partition_answer in (partition_answer for one in response.topics for partition_answer in one.partitions):
            if partition_answer.error_code:
                error = error_of(partition_answer.error_code)
                self._demand_access(partition_answer.error_code, f"topic {topic}")
                yield (
                    partition_answer.partition_index,
                    ListedOffset(None, error=error.message),
                    partition_answer.error_code in _PASSING,
                )
            else:
                yield partition_answer.partition_index, listed_offset(partition_answer), False

    def _list_offsets_request(self, topic: str, partitions: list[int], timestamp: int) -> Any:
        from kafka.protocol.consumer import ListOffsetsRequest

        topics = ListOffsetsRequest.ListOffsetsTopic
        asked = [topics.ListOffsetsPartition(partition_index=one, timestamp=timestamp) for one in partitions]
        is_special = timestamp in FIRST_VERSION_OF
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=0,
            topics=[topics(name=topic, partitions=asked)],
            timeout_ms=int(self._request_timeout_seconds * 1000),
            min_version=FIRST_VERSION_OF[OffsetSpec(timestamp)] if is_special else _FIRST_VERSION_OF_TIMESTAMPS,
        )


def _demand_answer(error_code: int, what: str) -> None:
    from kafka.errors import for_code

    if error_code:
        raise TieredctlError(
            ErrorCode.BROKER_UNREACHABLE, f"The cluster did not report {what}: {for_code(error_code).__name__}."
        )


def _api_versions_request() -> Any:
    from kafka.protocol.metadata import ApiVersionsRequest

    return ApiVersionsRequest(client_software_name="tieredctl", client_software_version="1", min_version=3)


def _by_leader(partitions: list[PartitionDescription]) -> dict[int | None, list[int]]:
    leaders: dict[int | None, list[int]] = defaultdict(list)
    for one in partitions:
        leaders[one.leader].append(one.partition)
    return leaders
