"""Logs what brokers are asked: the request's name, topics and offsets, never what is written or configured."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tieredctl.model.counted import counted
from tieredctl.process.tracing import Asked, is_traced, traced

_ASKER = "tieredctl.kafka"
_MOST_NAMED = 3


def traced_request(server: str, question: str) -> AbstractContextManager[Asked]:
    """Logs a question to a server once it was answered, or failed."""
    return traced(_ASKER, server, question)


def traced_answer(server: str, request: Any, ask: Callable[[], Any]) -> Any:
    """The answer to a request of kafka-python's, which is logged."""
    if not is_traced(_ASKER):
        return ask()
    with traced_request(server, described(request)) as asked:
        response = ask()
        size = records_in(response)
        asked.answer = "" if size is None else counted(size, "byte")
        return response


def described(request: Any) -> str:
    """`Fetch __remote_log_metadata-3 from 17`."""
    name = type(request).__name__.removesuffix("Request")
    topics = getattr(request, "topics", None) or []
    places = [_place(topic) for topic in topics[:_MOST_NAMED]]
    more = f" and {counted(len(topics) - _MOST_NAMED, 'more topic')}" if len(topics) > _MOST_NAMED else ""
    return f"{name} {', '.join(places)}{more}".rstrip()


def records_in(response: Any) -> int | None:
    """How many bytes of records an answer has; None if it is not one to a Fetch."""
    topics = getattr(response, "responses", None)
    if not isinstance(topics, list | tuple):
        return None
    partitions = [one for topic in topics for one in getattr(topic, "partitions", None) or []]
    if not any(hasattr(one, "records") for one in partitions):
        return None
    return sum(len(getattr(one, "records", None) or b"") for one in partitions)


def _place(topic: Any) -> str:
    if isinstance(topic, str):
        return topic
    name = getattr(topic, "topic", None) or getattr(topic, "name", None) or getattr(topic, "topic_id", "")
    partitions = getattr(topic, "partitions", None) or []
    if len(partitions) != 1:
        return f"{name} ({counted(len(partitions), 'partition')})" if partitions else str(name)
    (one,) = partitions
    number = getattr(one, "partition", getattr(one, "partition_index", one))
    offset = getattr(one, "fetch_offset", None)
    return f"{name}-{number}" if offset is None else f"{name}-{number} from {offset}"
