"""Coordinators as their logs have them: of each log a state is made, as a coordinator's recovery does, and asked.

The states are made in a folder of the run, one after the other, and nothing is written beside the logs. What is asked
is answered as by a follower, which may lack what the leader has by now.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from tieredctl.model.counted import counted
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import partition_document
from tieredctl_proposals.coordinator.apply import Applier, DoesNotFit
from tieredctl_proposals.coordinator.metadata_log import LoggedRecord
from tieredctl_proposals.coordinator.queries import describe_file, find_batches, list_offset
from tieredctl_proposals.coordinator.schema import StateUnusable, connect, create_state, distrusted
from tieredctl_proposals.coordinator.snapshots import remove_database
from tieredctl_proposals.model.diskless_records import DISKLESS_METADATA_TOPIC
from tieredctl_proposals.model.diskless_requests import (
    DescribedFiles,
    DescribeFiles,
    FindBatches,
    FoundBatches,
    ListedOffsets,
    ListOffsets,
)
from tieredctl_proposals.ops.diskless.coordinator_logs import INCOMPLETE, CoordinatorLogs
from tieredctl_proposals.ops.diskless.coordinator_snapshots import SnapshotContents
from tieredctl_proposals.ops.diskless.written_states import unwritable, written_states

_PARTITIONS = "SELECT topic_id, name, partition FROM partitions"
_OWNERS = "SELECT DISTINCT owner_ids FROM files"
_OF = "the coordinators"


class LoggedCoordinator:
    """A coordinator whose log was read up to its end; to be closed, which removes its state."""

    def __init__(self, number: int, state: Path, connection: sqlite3.Connection | None, *, is_whole: bool) -> None:
        self.number = number
        self.is_whole = is_whole
        """Whether its log has all that the coordinator knew at its end; if not, no answer of it counts."""
        self._state, self._connection = state, connection

    def partitions(self) -> list[TopicIdPartition]:
        """The partitions that its log has, as far as it can be read."""
        rows = self._connection.execute(_PARTITIONS) if self._connection else ()
        return [TopicIdPartition(topic_id, topic, number) for topic_id, topic, number in rows]

    def owners(self) -> set[int]:
        """All coordinators that its files name."""
        rows = self._connection.execute(_OWNERS) if self._connection else ()
        return {int(owner) for (owners,) in rows for owner in owners.split(",")}

    def list_offsets(self, request: ListOffsets) -> ListedOffsets:
        """DisklessListOffsets."""
        return ListedOffsets(tuple(list_offset(self._answering, asked) for asked in request.partitions))

    def find_batches(self, request: FindBatches) -> FoundBatches:
        """DisklessFindBatches."""
        return find_batches(self._answering, request, is_follower=True)

    def describe_files(self, request: DescribeFiles) -> DescribedFiles:
        """DisklessDescribeFiles."""
        return DescribedFiles(tuple(describe_file(self._answering, key) for key in request.object_keys))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        remove_database(self._state)

    @property
    def _answering(self) -> sqlite3.Connection:
        if self._connection is None or not self.is_whole:
            raise ValueError("a coordinator whose log is not whole answers nothing")
        return self._connection


def logged_coordinators(logs: CoordinatorLogs, folder: Path, only: int | None = None) -> Iterator[LoggedCoordinator]:
    """Each coordinator whose log is here, or one of them, ascending; whoever gets one closes it. What the logs lack is
    in their findings, of a log at the latest when its coordinator is given, and of all after the last.

    Raises TieredctlError `unwritable` where the folder does not take their states.
    """
    owners: set[int] = set()
    having: dict[TopicIdPartition, list[int]] = {}
    for number in logs.named(only):
        with written_states(folder.parent, _OF):
            made = _made(logs, number, folder / f"{number}.sqlite")
        owners |= made.owners()
        for partition in made.partitions():
            having.setdefault(partition, []).append(number)
        yield made
    if only is None:
        logs.demand_all(owners)
        _demand_one_each(logs, having)


def _demand_one_each(logs: CoordinatorLogs, having: Mapping[TopicIdPartition, Sequence[int]]) -> None:
    """A partition is one coordinator's: where several have it, nothing tells which of them answers for it."""
    several = {partition: numbers for partition, numbers in having.items() if len(numbers) > 1}
    for partition, numbers in islice(several.items(), 1):
        message = f"{counted(len(several), 'partition')} in several coordinators' logs, such as "
        message += f"{partition.topic}:{partition.partition} in those of {', '.join(map(str, numbers))}"
        evidence = {**partition_document(partition), "metadataPartitions": [*numbers]}
        logs.findings.append(Finding(INCOMPLETE, DISKLESS_METADATA_TOPIC, message, evidence))


def _made(logs: CoordinatorLogs, number: int, state: Path) -> LoggedCoordinator:
    """A coordinator with what its log says, up to the first record that does not fit."""
    connection = _begun(logs, number, state)
    records = logs.records_of(number)
    if connection is not None:
        try:
            with distrusted():
                Applier(connection).catch_up(LoggedRecord(*logged[1:]) for logged in records)
        except DoesNotFit as fault:
            logs.contradiction(number, fault.offset, fault.why)
        except StateUnusable as fault:
            logs.doubt(number, f"no state can be made of it: {fault}")
        except BaseException:
            connection.close()
            raise
    for _ in records:
        pass  # what else is wrong with it is known at its end
    logs.demand_fit(number)  # the end may have been read before a record of it was applied
    logs.demand_records([number])
    return LoggedCoordinator(number, state, connection, is_whole=number not in logs.incomplete)


def _begun(logs: CoordinatorLogs, number: int, state: Path) -> sqlite3.Connection | None:
    """The state that a log begins with: of a snapshot, or an empty one. None where what was before it is unknown."""

    def restored(contents: SnapshotContents) -> str:
        try:
            contents.restore(state)
        except OSError as fault:
            if fault.errno == errno.ENOENT:
                raise StateUnusable(f"it cannot be read: {fault}") from None
            raise unwritable(state.parents[1], _OF, fault) from None
        return contents.log

    log = logs.begin(number, restored)
    if log is not None:
        return connect(state, log)
    if logs.source.offset_range(number).start:
        return None
    return create_state(state, f"{DISKLESS_METADATA_TOPIC}-{number}")
