"""Where a segment's producer snapshot and leader-epoch checkpoint must agree with its metadata.

Does a producer snapshot match the producers in its segment's log?

The snapshot that a broker copies with a segment was taken after the segment's last batch, so a producer that wrote in
the segment is in it as its last batches left it. Producers that only wrote before it may be there, and those silent
for producer.id.expiration.ms may be missing, unless they have an open transaction.

Sources: ProducerStateManager (takeSnapshot, isProducerExpired), ProducerAppendInfo, ProducerStateEntry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from struct import calcsize

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.formats.log_scan import LogBlock
from tieredctl.formats.producer_snapshot import PRODUCER_ENTRY, PRODUCER_SNAPSHOT_HEADER, ProducerEntry
from tieredctl.formats.producer_state import ProducerState
from tieredctl.formats.record_batches import NO_PRODUCER_ID, NO_SEQUENCE
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Severity
from tieredctl.ops.verification.report import SegmentFindings
from tieredctl.ops.verification.transactions import TRANSACTION_ENTRY_BYTES
from tieredctl.ports.layout import Part

_NO_NEXT = 1 << 63
_SNAPSHOT_HEADER_BYTES, _ENTRY_BYTES = map(
    calcsize, (PRODUCER_SNAPSHOT_HEADER.fixed_format, PRODUCER_ENTRY.fixed_format)
)
_SHORTEST_CHECKPOINT = len(encode_leader_epoch_checkpoint([EpochEntry(0, 0)]))


def sizes_are_possible(size: Callable[[Part], int | None]) -> bool:
    """Whether a broker may write a small part of this size; `size` is None for one that is missing."""
    snapshot, checkpoint, aborted = map(size, (Part.PRODUCER_SNAPSHOT, Part.LEADER_EPOCH, Part.TRANSACTION_INDEX))
    producers = None if snapshot is None else divmod(snapshot - _SNAPSHOT_HEADER_BYTES, _ENTRY_BYTES)
    return (
        (producers is None or (producers[0] >= 0 and not producers[1]))
        and (checkpoint is None or checkpoint >= _SHORTEST_CHECKPOINT)
        and (aborted is None or (aborted > 0 and not aborted % TRANSACTION_ENTRY_BYTES))
    )


def report_producers(entries: Sequence[ProducerEntry], check: ProducersCheck | None, findings: SegmentFindings) -> bool:
    """The first producer in a snapshot with an offset after the segment's end, or that contradicts the log; without a
    `check`, the log is unknown. Returns whether there was a finding."""
    end, copied_ms = findings.metadata.end_offset, findings.metadata.event_timestamp_ms
    beyond = next((number for number, entry in enumerate(entries) if entry.last_offset > end), None)
    wrong: WrongProducer | None = None
    if beyond is not None:
        entry = entries[beyond]
        message = f"producer {entry.producer_id} has offset {entry.last_offset}, after the segment's end {end}"
        wrong = WrongProducer(beyond, message)
    elif check:
        wrong = check.first_wrong(entries, copied_ms)
    if wrong:
        position = _SNAPSHOT_HEADER_BYTES + wrong.number * _ENTRY_BYTES
        severity = None if wrong.certain else Severity.WARNING
        part = Part.PRODUCER_SNAPSHOT
        findings.add(FindingCode.PRODUCER_SNAPSHOT_DAMAGED, part, wrong.message, position=position, severity=severity)
    return wrong is not None


def report_leader_epochs(entries: Sequence[EpochEntry], findings: SegmentFindings) -> None:
    """Where a segment's checkpoint contradicts its metadata."""
    contradiction = leader_epoch_contradiction(entries, findings.metadata)
    if contradiction:
        findings.add(FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED, Part.LEADER_EPOCH, contradiction)


def leader_epoch_contradiction(entries: Sequence[EpochEntry], metadata: RemoteLogSegmentMetadata) -> str | None:
    """How a checkpoint copied with a segment contradicts the segment's leader epochs; None where it does not.

    It holds the lineage up to the segment's end. Its epochs before the segment are not checked.
    """
    entry_epochs = [
        (entry.epoch, max(entry.start_offset, metadata.start_offset))
        for entry, following in pairwise([*entries, EpochEntry(-1, _NO_NEXT)])
        if following.start_offset > metadata.start_offset
    ]
    for (epoch, offset), (claimed_epoch, claimed_offset) in zip(
        entry_epochs, metadata.segment_leader_epochs, strict=False
    ):
        if (epoch, offset) != (claimed_epoch, claimed_offset):
            claim = f"epoch {claimed_epoch} at offset {claimed_offset}"
            return f"it has leader epoch {epoch} at offset {offset}, but the metadata has {claim}"
    if len(entry_epochs) != len(metadata.segment_leader_epochs):
        promised = len(metadata.segment_leader_epochs)
        return f"it has {len(entry_epochs)} of the segment's leader epochs, but the metadata has {promised}"
    return None


NONE = -1
"""Kafka's word for no offset, no epoch."""
SHORTEST_EXPIRATION_MS = 3_600_000
"""No cluster is assumed to expire producers sooner. Kafka's default for producer.id.expiration.ms is a day."""
_NO_BATCH = (NO_SEQUENCE, NONE, 0)


@dataclass(frozen=True, slots=True)
class WrongProducer:
    """The first entry of a snapshot that contradicts the log, by its number from 0, or a missing one after the last.
    `certain` is false where an expiration below SHORTEST_EXPIRATION_MS would explain it."""

    number: int
    message: str
    certain: bool = True


class ProducersCheck:
    """Takes a log's batches block by block. What is before damage is discarded: only what follows is compared with the
    snapshot."""

    def __init__(self, start_offset: int, end_offset: int) -> None:
        """The segment's claim, inclusive."""
        self._start: int | None = start_offset
        self._end = end_offset
        self._state = ProducerState(())
        self._unreadable = False

    def feed(self, block: LogBlock[HeaderColumns]) -> None:
        """The log's next sound batches."""
        if self._start is None and len(block.positions):
            self._start = int(block.headers["baseOffset"][0])
        if (block.headers["producerId"] == NO_PRODUCER_ID).all():
            return
        try:
            self._state.feed(block)
        except DecodeError:  # a marker, which the log's findings cover
            self._unreadable = True

    def forget(self) -> None:
        """A stretch of the log cannot be read: its content is unknown."""
        self._start, self._state = None, ProducerState(())

    def first_wrong(self, entries: Sequence[ProducerEntry], copied_ms: int) -> WrongProducer | None:
        """The first wrong entry of a snapshot, once the whole log was fed; `copied_ms` is when it was copied."""
        by_producer = {} if self._unreadable else {entry.producer_id: entry for entry in self._state.entries()}
        start = self._end + 1 if self._start is None or self._unreadable else self._start
        for number, entry in enumerate(entries):
            why = _contradiction(entry, by_producer.get(entry.producer_id), start)
            if why:
                return WrongProducer(number, f"producer {entry.producer_id} {why}")
        return _missing(entries, by_producer, copied_ms)


def _contradiction(entry: ProducerEntry, state: ProducerEntry | None, start: int) -> str | None:
    """How an entry contradicts its producer's batches in the log from offset `start` on; None where it does not."""
    if state is None:
        if max(entry.last_offset, entry.current_txn_first_offset) >= start:
            return f"has offset {max(entry.last_offset, entry.current_txn_first_offset)}, where it wrote nothing"
        return None
    ended = state.coordinator_epoch != NONE
    if entry.epoch != state.epoch:
        return f"has epoch {entry.epoch}, but the log ends with {state.epoch}"
    if not _is_last_batch(entry, state, start, ended=ended):
        return f"has sequence {entry.last_sequence} at offset {entry.last_offset} for {_last_batch_of(state)}"
    if entry.timestamp != state.timestamp:
        return f"has timestamp {entry.timestamp}, but the log ends with {state.timestamp}"
    if ended and entry.coordinator_epoch not in (state.coordinator_epoch, NONE):
        return f"has coordinator epoch {entry.coordinator_epoch}, but the log ends with {state.coordinator_epoch}"
    begun, expected = entry.current_txn_first_offset, state.current_txn_first_offset
    if begun != expected and (ended or expected == NONE or not 0 <= begun < start):
        return f"has a transaction open since {begun}, but the log has {expected}"
    return None


def _is_last_batch(entry: ProducerEntry, state: ProducerEntry, start: int, *, ended: bool) -> bool:
    if state.last_offset == NONE:  # only markers: what it wrote last lies before
        return entry.last_offset < start
    written = (entry.last_sequence, entry.last_offset, entry.offset_delta)
    # A producer that expired, and then had a transaction ended to which it wrote nothing, has no batch.
    return written == (state.last_sequence, state.last_offset, state.offset_delta) or (ended and written == _NO_BATCH)


def _last_batch_of(state: ProducerEntry) -> str:
    if state.last_offset == NONE:
        return "batches before the segment"
    return f"a last batch with sequence {state.last_sequence} at offset {state.last_offset}"


def _missing(
    entries: Sequence[ProducerEntry], by_producer: Mapping[int, ProducerEntry], copied_ms: int
) -> WrongProducer | None:
    """The first producer of the log that is not in the snapshot and should be.

    All expired producers are removed at once. So one that is still there, silent since before the log and last seen no
    later than a missing one, proves that the missing one cannot have expired.
    """
    remembered = np.array([e.timestamp for e in entries if e.producer_id not in by_producer and _is_idle(e)], np.int64)
    oldest = int(remembered.min()) if len(remembered) else None
    there = {entry.producer_id for entry in entries}
    for producer, entry in by_producer.items():
        if producer in there:
            continue
        message = f"producer {producer} is missing, though the log has it up to timestamp {entry.timestamp}"
        if not _is_idle(entry) or (oldest is not None and oldest <= entry.timestamp):
            return WrongProducer(len(entries), message)
        if copied_ms - entry.timestamp < SHORTEST_EXPIRATION_MS:
            return WrongProducer(len(entries), f"{message}, shortly before it was copied", certain=False)
    return None


def _is_idle(entry: ProducerEntry) -> bool:
    """Whether it has no transaction open: only then it can expire."""
    return entry.current_txn_first_offset == NONE
