"""Records as a consumer on a live broker gets them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, cast

from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, KafkaError, Message, TopicPartition

from tests.rigs.topics import TO_THE_END
from tieredctl.records.request import Isolation

SECONDS = 60
Row = tuple[Any, ...]
"""Offset, time and its type, key, value, headers, leader epoch."""


def consumer_of(server: str, isolation: Isolation, **settings: Any) -> Consumer:
    """One that is told where a partition ends, with other settings beside its own."""
    return Consumer(
        {
            **settings,
            **TO_THE_END,
            "bootstrap.servers": server,
            "group.id": "records",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation.value,
            "log_level": 2,
        }
    )


def consumed(server: str, topic: str, number: int, isolation: Isolation) -> list[Row]:
    """What a consumer gets from the earliest offset to the end."""
    rows: list[Row] = []
    with closing(consumer_of(server, isolation)) as consumer:
        consumer.assign([TopicPartition(topic, number, 0)])
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF
                return rows
            rows.append(_row_of(message))


def _row_of(message: Message) -> Row:
    kind, timestamp = message.timestamp()
    headers = tuple(cast("Sequence[tuple[str, bytes | None]]", message.headers() or ()))
    named = "CreateTime" if kind == TIMESTAMP_CREATE_TIME else "LogAppendTime"
    return message.offset(), timestamp, named, message.key(), message.value(), headers, message.leader_epoch()
