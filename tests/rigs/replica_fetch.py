"""Fetches as a replica would, without being one: what a leader answers to it."""

from __future__ import annotations

import base64
import logging
import uuid
from contextlib import closing

_FUTURE_REPLICA = -3
"""A replica that moves to another disk: the one kind that a leader serves as a follower without knowing it."""
_NEWEST_WITH_REPLICA_ID = 14
"""Of the Fetch versions, the last that takes the replica's id as a plain field; and the first that knows error 109."""
ERRORS = {0: None, 1: "OFFSET_OUT_OF_RANGE", 109: "OFFSET_MOVED_TO_TIERED_STORAGE"}


def replica_fetch_error(bootstrap_server: str, topic_id: str, partition: int, offset: int) -> str | None:
    """The name of the error that the one broker of a cluster answers; None where it sends records, or none yet."""
    from kafka.net.compat import KafkaNetClient
    from kafka.protocol.consumer import FetchRequest

    logging.getLogger("kafka").addHandler(logging.NullHandler())
    topics = FetchRequest.FetchTopic
    asked = topics.FetchPartition(
        partition=partition,
        current_leader_epoch=-1,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1 << 20,
    )
    request = FetchRequest(
        replica_id=_FUTURE_REPLICA,
        max_wait_ms=100,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[topics(topic_id=uuid.UUID(bytes=base64.urlsafe_b64decode(f"{topic_id}==")), partitions=[asked])],
        max_version=_NEWEST_WITH_REPLICA_ID,
    )
    with closing(KafkaNetClient(bootstrap_servers=bootstrap_server)) as client:
        client.check_version(timeout_ms=30_000)
        answer = client.send_and_receive(client.least_loaded_node(), request, 30_000)
    return ERRORS[answer.responses[0].partitions[0].error_code]
