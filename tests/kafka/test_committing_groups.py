"""Which groups are asked for the offsets that they committed."""

from __future__ import annotations

from typing import Any

import pytest

from tieredctl.kafka.consumer_groups import LiveClusterWithGroups
from tieredctl.ports.cluster import CommittedOffset

PROTOCOLS = {"classic": "consumer", "streams": "streams", "bare": "", "workers": "connect", "shared": "share"}
"""By the name of a group."""


def test_every_group_that_commits_offsets_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka.protocol.admin import ListGroupsResponse
    from kafka.protocol.consumer import OffsetFetchResponse

    listed, group = ListGroupsResponse.ListedGroup, OffsetFetchResponse.OffsetFetchResponseGroup
    topic = group.OffsetFetchResponseTopics
    partition = topic.OffsetFetchResponsePartitions

    def ask(_self: LiveClusterWithGroups, _broker: int, request: Any, **_more: Any) -> Any:
        if hasattr(request, "groups"):
            one = partition(partition_index=0, committed_offset=7, committed_leader_epoch=0, metadata="", error_code=0)
            topics = [topic(name="t", partitions=[one])]
            asked = [group(group_id=of.group_id, topics=topics, error_code=0) for of in request.groups]
            return OffsetFetchResponse(throttle_time_ms=0, groups=asked)
        groups = [listed(group_id=name, protocol_type=protocol) for name, protocol in PROTOCOLS.items()]
        return ListGroupsResponse(throttle_time_ms=0, error_code=0, groups=groups)

    monkeypatch.setattr(LiveClusterWithGroups, "_ask", ask)
    monkeypatch.setattr(LiveClusterWithGroups, "_of_each_broker", lambda _, of: [(1, of(1))])

    found = LiveClusterWithGroups.__new__(LiveClusterWithGroups).committed_offsets()

    assert found == [CommittedOffset(name, "t", 0, 7) for name in ("bare", "classic", "streams")]
