"""Checks small objects of the remote store that others depend on: most by key, a few by reading them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.indexes import AbortedTransaction, read_transaction_index
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.snapshot import PartitionFacts
from tieredctl.ops.verification.other_forms import OtherForms
from tieredctl.ops.verification.report import SegmentFindings
from tieredctl.ops.verification.transactions import TRANSACTION_ENTRY_BYTES
from tieredctl.ports.layout import Layout, Part, possible_objects
from tieredctl.ports.object_store import ObjectStore

INDEXES_A_PARTITION = 10
"""How many of a partition's latest segments have their transaction index read."""
LONGEST_INDEX_BYTES = 1 << 20
"""Longer transaction indexes are not read."""
_FOLLOWER_PARTS = (Part.LEADER_EPOCH, Part.PRODUCER_SNAPSHOT, Part.INDEXES, Part.MANIFEST)


class LookedAt(NamedTuple):
    """How many objects were checked, how many were skipped for their size, and what is wrong."""

    objects: int
    passed_over: int
    findings: list[Finding]


def auxiliary_state(partitions: Iterable[PartitionFacts], store: ObjectStore, layout: Layout) -> LookedAt:
    """Asks for the objects by key from which a new follower of each partition builds its leader epochs and producers.
    Raises TieredctlError as the store does."""
    asked, reported, forms = 0, list[Finding](), OtherForms(store, layout)
    for facts in partitions:
        for segment in _segments_for_followers(facts):
            promised = layout.promised_objects(segment)
            findings = SegmentFindings(segment, promised)
            needed = [part for part in _FOLLOWER_PARTS if part in promised]
            for part in needed:
                asked += 1
                if store.head(promised[part]) is None:
                    message = f"{promised[part]} is not in the store: a new follower cannot build its state"
                    findings.add(FindingCode.FOLLOWER_STATE_MISSING, part, message)
            elsewhere = forms.not_judged(segment) if len(findings.found) == len(needed) > 0 else None
            reported += [elsewhere] if elsewhere else findings.found
    return LookedAt(asked, 0, reported)


def transaction_indexes(partitions: Iterable[PartitionFacts], store: ObjectStore, layout: Layout) -> LookedAt:
    """Reads the transaction indexes of each partition's latest segments, where there are any. Raises TieredctlError as
    the store and the layout do."""
    read, passed_over, reported = 0, 0, list[Finding]()
    for facts in partitions:
        for segment in sorted(_in_use(facts), key=lambda one: one.start_offset)[-INDEXES_A_PARTITION:]:
            keys = possible_objects(layout, segment)
            findings = SegmentFindings(segment, keys)
            try:
                size = 0 if segment.txn_idx_empty else _index_size(segment, keys, store, layout)
                read += 0 < size <= LONGEST_INDEX_BYTES
                passed_over += size > LONGEST_INDEX_BYTES
                if 0 < size <= LONGEST_INDEX_BYTES:
                    data = layout.open_segment(store, segment).read(Part.TRANSACTION_INDEX)
                    _judge(read_transaction_index(data), segment, findings)
            except DecodeError as error:
                part = Part.TRANSACTION_INDEX
                findings.add(FindingCode.TRANSACTION_INDEX_DAMAGED, part, error.message, position=error.position)
            reported += findings.found
    return LookedAt(read, passed_over, reported)


def _in_use(facts: PartitionFacts) -> list[RemoteLogSegmentMetadata]:
    start = facts.earliest or 0
    return [one for one in facts.finished if one.segment_id not in facts.displaced and one.end_offset >= start]


def _segments_for_followers(facts: PartitionFacts) -> list[RemoteLogSegmentMetadata]:
    """The segments from which an empty follower builds its state: the one before the local log (KIP-405), and the last
    one (KIP-1023). Of segments that overlap, the one of the latest leader."""
    segments = _in_use(facts)
    ends = {max(segment.end_offset for segment in segments)} if segments else set()
    if facts.earliest_local:
        ends.add(facts.earliest_local - 1)
    chosen_by_id = {}
    for end in sorted(ends):
        holding = [one for one in segments if one.start_offset <= end <= one.end_offset]
        if holding:
            chosen = max(holding, key=lambda segment: segment.segment_leader_epochs[-1:])
            chosen_by_id[chosen.segment_id] = chosen
    return list(chosen_by_id.values())


def _index_size(segment: RemoteLogSegmentMetadata, keys: dict[Part, str], store: ObjectStore, layout: Layout) -> int:
    """How many bytes a segment's transaction index has; 0 where it has none, or its object is missing."""
    if Part.TRANSACTION_INDEX in keys:
        stored = store.head(keys[Part.TRANSACTION_INDEX])
        return 0 if stored is None else stored.size
    if any(store.head(keys[part]) is None for part in (Part.MANIFEST, Part.INDEXES) if part in keys):
        return 0
    return layout.open_segment(store, segment).parts().get(Part.TRANSACTION_INDEX, 0)


def _judge(entries: Sequence[AbortedTransaction], segment: RemoteLogSegmentMetadata, findings: SegmentFindings) -> None:
    """The first impossible entry; a broker refuses an index for some of these (TransactionIndex.sanityCheck)."""
    impossible = next(_impossible(entries, segment), None)
    if impossible is not None:
        number, reason = impossible
        position = number * TRANSACTION_ENTRY_BYTES
        findings.add(FindingCode.TRANSACTION_INDEX_DAMAGED, Part.TRANSACTION_INDEX, reason, position=position)


def _impossible(entries: Sequence[AbortedTransaction], segment: RemoteLogSegmentMetadata) -> Iterator[tuple[int, str]]:
    for number, entry in enumerate(entries):
        if not segment.start_offset <= entry.last_offset <= segment.end_offset:
            yield number, f"an aborted transaction ends at offset {entry.last_offset}, outside the segment"
        elif entry.first_offset > entry.last_offset:
            yield number, f"an aborted transaction begins at offset {entry.first_offset}, after its end"
