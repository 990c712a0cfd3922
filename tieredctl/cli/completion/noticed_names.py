"""Notices the topics and segments that a command reads and shows anyway, and keeps their names for completions.

Only at a terminal: nothing is kept for cron jobs and scripts, in which nobody types the next command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any

from tieredctl.cli.completion.completion_cache import SeenNames, remember
from tieredctl.cli.output import Item, JsonLines
from tieredctl.model.findings import Finding

_MOST_NOTICED = 1_000
_MOST_PARTITIONS = 20_000

_names: ContextVar[SeenNames | None] = ContextVar("_seen", default=None)
"""What the command that runs has read so far; None where nothing is kept."""


@contextmanager
def names_kept(words: Sequence[str]) -> Iterator[None]:
    """What a command reads is kept, once it ends well or with an error."""
    if not _is_terminal():
        yield
        return
    from tieredctl.wiring.places import metadata_was_read

    names = SeenNames()
    tokens = _names.set(names), metadata_was_read.set(lambda stream: _notice_partitions(names, stream.partitions))
    try:
        yield
    finally:
        _names.reset(tokens[0])
        metadata_was_read.reset(tokens[1])
        if names.topics or names.segments:
            _keep(names, words)


def noticed(items: Iterable[Item]) -> Iterable[Item]:
    """The same items, of which the first are noticed."""
    names = _names.get()
    if names is None:
        return items
    if hasattr(items, "__len__"):
        for item in islice(items, _MOST_NOTICED):
            _notice(names, item)
        return items
    if isinstance(items, JsonLines):
        return items  # these are read once, and faster than one by one
    return _noticed_on_the_way(names, items)


def notice_findings(findings: Iterable[Finding]) -> None:
    """Notices what findings are about."""
    names = _names.get()
    for finding in () if names is None else islice(findings, _MOST_NOTICED):
        assert names is not None
        topic, topic_id, partition, _ = finding.about.place
        names.add_topic(topic, topic_id, partition)
        for segment_id in finding.about.segment_ids:
            names.add_segment(segment_id, topic, partition)


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _noticed_on_the_way(names: SeenNames, items: Iterable[Item]) -> Iterator[Item]:
    for number, item in enumerate(items):
        if number < _MOST_NOTICED:
            _notice(names, item)
        yield item


def _notice(names: SeenNames, item: Item) -> None:
    topic, partition = item.get("topic"), item.get("partition")
    if topic is not None:
        names.add_topic(topic, item.get("topicId"), partition)
    if "segmentId" in item:
        names.add_segment(item["segmentId"], topic, partition)


def _notice_partitions(names: SeenNames, partitions: Iterable[Any]) -> None:
    for one in islice(partitions, _MOST_PARTITIONS):
        names.add_topic(one.topic, one.topic_id, one.partition)


def _keep(names: SeenNames, words: Sequence[str]) -> None:
    from tieredctl.cli.completion.command_table import CommandTable
    from tieredctl.cli.completion.half_typed import half_typed, places_of

    try:
        table = CommandTable.installed()
    except OSError:
        return
    remember(names, places_of(half_typed(table, words), os.environ), os.environ)
