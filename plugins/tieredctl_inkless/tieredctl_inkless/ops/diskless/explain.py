"""Where an offset of a diskless partition lies: its object, the bytes in it, and who else lives there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ops.documents import Document, database_segment_document, partition_document
from tieredctl.ops.guards.second_reading import read_again
from tieredctl.ports.object_store import ObjectStore
from tieredctl_inkless.diskless.control_plane import ControlPlane, FileState, FoundBatch, FoundLog
from tieredctl_inkless.model.finding_codes import DisklessCode
from tieredctl_inkless.ops.diskless.doubt import demand_sound
from tieredctl_inkless.ops.diskless.finding_places import object_finding, partition_finding
from tieredctl_inkless.ops.diskless.inspect import batch_at, file_document
from tieredctl_inkless.ops.diskless.promised_objects import still_promised
from tieredctl_inkless.ops.diskless.walked_object import walk


class Tier(StrEnum):
    """Where an offset is kept."""

    DISKLESS = "diskless"
    """In an object that mixes partitions."""
    REMOTE = "remote"
    """In a segment of KIP-405's tier, or of the classic log that was switched: the metadata topic knows."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class DisklessExplanation:
    """The answer, as it is shown, and what is wrong there."""

    tier: Tier
    document: Document
    findings: list[Finding]


def find_log(
    control_plane: ControlPlane, topic: str, partition: int, offset: int, topic_id: str | None
) -> tuple[TopicIdPartition, FoundLog]:
    """The one partition that is meant. Raises TieredctlError `unknown-topic`, `ambiguous-topic` for a name that several
    topics had, and `control-plane-doubtful` where it may have lost the partition."""
    named = [
        (TopicIdPartition(uuid_text(log.log["topicId"]), topic, partition), log)
        for log in control_plane.logs_of(topic, partition, offset)
    ]
    meant = [one for one in named if topic_id in (None, one[0].topic_id)]
    if not meant:
        demand_sound(control_plane.tables())
        message = f"The control plane has no partition {partition} of topic {topic}"
        message += "." if topic_id is None else f" with id {topic_id}."
        hint = "List its partitions with `tieredctl diskless status`."
        raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, message, hint=hint)
    if len(meant) > 1:
        ids = ", ".join(name.topic_id for name, _ in meant)
        raise TieredctlError(ErrorCode.AMBIGUOUS_TOPIC, f"Several topics are called {topic}: {ids}.")
    return meant[0]


def explain(
    name: TopicIdPartition, looked_up: FoundLog, offset: int, store: ObjectStore | None, control_plane: ControlPlane
) -> DisklessExplanation:
    """The bytes themselves are only looked at where a store is given; where they are not there, the control plane is
    asked once more. Raises TieredctlError as the store does."""
    log = looked_up.log
    document: Document = {
        **partition_document(name),
        "offset": offset,
        **{field: log[field] for field in ("logStartOffset", "highWatermark", "disklessStartOffset")},
        "remoteLogStartOffset": log["remoteLogStartOffset"],
    }
    tier, reason = _tier(log, offset)
    findings: list[Finding] = []
    if tier is Tier.DISKLESS:
        if looked_up.found is None:
            tier, reason = Tier.NONE, "no batch of the control plane has it"
            findings.append(
                partition_finding(
                    FindingCode.OFFSET_GAP, name, f"offset {offset} is in no batch", offsets=(offset, offset)
                )
            )
        elif not looked_up.found.file:
            tier, reason = Tier.NONE, "the control plane does not have the file of its batch"
            findings.append(
                partition_finding(
                    DisklessCode.FILE_ROW_MISSING, name, f"offset {offset}: {reason}", offsets=(offset, offset)
                )
            )
        else:
            document |= _batch_document(looked_up.found)
            if store is not None:
                document |= _in_store(store, control_plane, looked_up.found, offset, findings)
                if not document["objectPresent"] and not findings:
                    tier, reason = Tier.NONE, "it was deleted a moment ago"
    return DisklessExplanation(tier, document | {"tier": tier.value, "reason": reason}, findings)


def with_tiered(explanation: DisklessExplanation, segment: Document | None) -> DisklessExplanation:
    """The same, with the tiered segment that has the offset, as the metadata topic was asked about it."""
    tier = explanation.tier
    facts: Document = {"tiered": segment}
    if tier is Tier.REMOTE and segment is None:
        tier = Tier.NONE
        facts |= {"tier": tier.value, "reason": "no tiered segment has it; a classic log on a broker's disk may"}
    elif tier is Tier.REMOTE:
        facts["reason"] = "it is in a tiered segment"
    return DisklessExplanation(tier, explanation.document | facts, explanation.findings)


def with_own_tier(
    explanation: DisklessExplanation, name: TopicIdPartition, offset: int, control_plane: ControlPlane
) -> DisklessExplanation:
    """The same, where the control plane's database has the metadata of tiered segments, too. It is asked later than the
    control plane: what leaves the diskless tier is in the other by then.

    Where it cannot be asked, that is only a finding if the diskless tier does not have the offset.
    """
    if offset >= explanation.document["highWatermark"]:
        return explanation
    try:
        tiered = control_plane.segment_of(name, offset)
    except TieredctlError as error:
        findings = [*explanation.findings]
        if explanation.tier is not Tier.DISKLESS:
            message = f"its tiered segments are not known: {error.message}"
            code = FindingCode.UNREADABLE
            findings.append(partition_finding(code, name, message, offsets=(offset, offset), error=error.code.value))
        return DisklessExplanation(explanation.tier, explanation.document | {"tieredUnknown": error.message}, findings)
    if tiered is None:
        return explanation
    return with_tiered(explanation, None if tiered.segment is None else database_segment_document(tiered.segment))


def _tier(log: Mapping[str, Any], offset: int) -> tuple[Tier, str | None]:
    if offset >= log["highWatermark"]:
        return Tier.NONE, "it is not below the high watermark: nothing was committed there yet"
    if offset >= max(log["logStartOffset"], log["disklessStartOffset"]):
        return Tier.DISKLESS, None
    if offset >= log["logStartOffset"]:
        reason = "it is before the diskless start, in the classic log or its tier: ask `tieredctl explain`"
        return Tier.REMOTE, reason
    remote = log["remoteLogStartOffset"]
    if remote is not None and offset >= remote:
        return Tier.REMOTE, "it is in a tiered segment: ask `tieredctl explain` with the cluster's metadata"
    return Tier.NONE, "it is below the log start: it was deleted"


def _batch_document(batch: FoundBatch) -> Document:
    names = ("batchId", "baseOffset", "lastOffset", "byteOffset", "byteSize", "logAppendTimestamp", "batchMaxTimestamp")
    return {
        "key": batch.file["objectKey"],
        **{name: batch.batch[name] for name in names},
        "file": file_document(batch.file),
        "otherPartitions": batch.other_partitions,
    }


def _in_store(
    store: ObjectStore, control_plane: ControlPlane, batch: FoundBatch, offset: int, findings: list[Finding]
) -> Document:
    """Whether its bytes are there, and which of them are the record batch that holds the offset. Without a finding they
    are there, or need not be any more. What is not is looked at again over new connections: bytes may be altered on
    the way."""
    document, found = read_again(
        store,
        lambda at: _seen_in(at, control_plane, batch, offset),
        (ErrorCode.OBJECT_MISSING,),
        is_sound=lambda seen: seen[0]["recordBatch"] is not None,
    )
    findings += found
    return document


def _seen_in(
    store: ObjectStore, control_plane: ControlPlane, batch: FoundBatch, offset: int
) -> tuple[Document, list[Finding]]:
    key, start, size = batch.file["objectKey"], batch.batch["byteOffset"], batch.batch["byteSize"]
    if store.head(key) is None:
        promised, unknown = still_promised(control_plane, {key: FileState(batch.file["state"])})
        missing = [object_finding(FindingCode.OBJECT_MISSING, one, "the store does not have it") for one in promised]
        return {"objectPresent": False, "recordBatch": None}, [*unknown, *missing]
    data = store.read(key, start, start + size)
    place = batch_at(walk([data], len(data)), batch.batch["baseOffset"], offset) if len(data) == size else None
    if place is None:
        message = "its bytes are not the record batches that the control plane describes"
        mismatch = object_finding(DisklessCode.BATCH_MISMATCH, key, message, position=start)
        return {"objectPresent": True, "recordBatch": None}, [mismatch]
    return {"objectPresent": True, "recordBatch": {"position": start + place[0], "size": place[1]}}, []
