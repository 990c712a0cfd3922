"""A live cluster that is also asked about its consumer groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.ports.cluster import CommittedOffset

_GROUPS_A_REQUEST = 100
_FIRST_VERSION_OF_SEVERAL_GROUPS, _LAST_VERSION_BY_TOPIC_NAME = 8, 9
_COMMITTING_PROTOCOLS = ("consumer", "streams", "")
"""Those of groups that commit offsets; Kafka Streams has its own since 4.1 (KIP-1071). Groups of Kafka Connect and
share groups commit none; a group that only commits, without members, has no protocol."""
_UNKNOWN_GROUP, _GROUP_DENIED = 69, 30


class LiveClusterWithGroups(LiveCluster):
    """A `Cluster` and its `ConsumerGroups` over kafka-python. To be closed."""

    def committed_offsets(self) -> Sequence[CommittedOffset]:
        def of_groups_at(broker: int) -> list[CommittedOffset]:
            return list(self._of_groups_at(broker))

        return sorted({committed for _, some in self._of_each_broker(of_groups_at) for committed in some})

    def _of_groups_at(self, broker: int) -> Iterator[CommittedOffset]:
        """The groups that a broker coordinates: each lists its own."""
        from kafka.protocol.admin import ListGroupsRequest

        response = self._ask(broker, ListGroupsRequest(), awaits_broker=False)
        self._demand_access(response.error_code, "the cluster")
        self._demand_no_error(response.error_code, f"Broker {broker} did not list its groups")
        names = [one.group_id for one in response.groups if one.protocol_type in _COMMITTING_PROTOCOLS]
        for start in range(0, len(names), _GROUPS_A_REQUEST):
            for group in self._committed(broker, names[start : start + _GROUPS_A_REQUEST]):
                yield from self._offsets_of(group)

    def _committed(self, broker: int, names: list[str]) -> Sequence[Any]:
        from kafka.protocol.consumer import OffsetFetchRequest

        asked = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
        request = OffsetFetchRequest(
            groups=asked,
            require_stable=False,
            min_version=_FIRST_VERSION_OF_SEVERAL_GROUPS,
            max_version=_LAST_VERSION_BY_TOPIC_NAME,
        )
        groups: Sequence[Any] = self._ask(broker, request, awaits_broker=False).groups
        return groups

    def _offsets_of(self, group: Any) -> Iterator[CommittedOffset]:
        if group.error_code == _UNKNOWN_GROUP:
            return  # It was deleted meanwhile.
        if group.error_code == _GROUP_DENIED:
            hint = f"The user needs the operation Describe on group {group.group_id}."
            raise TieredctlError(
                ErrorCode.BROKER_REFUSED, f"The user may not look at group {group.group_id}.", hint=hint
            )
        self._demand_no_error(group.error_code, f"The coordinator of group {group.group_id} did not report its offsets")
        for topic in group.topics:
            for one in topic.partitions:
                if one.error_code == 0 and one.committed_offset >= 0:
                    yield CommittedOffset(group.group_id, topic.name, one.partition_index, one.committed_offset)

    def _demand_no_error(self, error_code: int, what: str) -> None:
        from kafka.errors import for_code as error_of

        if error_code:
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, f"{what}: {error_of(error_code).message}.")
