"""What could not be read, and where."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import NamedTuple, TypeVar

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.formats.record_fields import MalformedBatch
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SegmentSubject
from tieredctl.model.findings import Finding, Severity, exit_code_of
from tieredctl.ops.remote.part_finding import part_finding
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.records.sound_batches import SoundBatches

_CODES = {
    ErrorCode.OBJECT_MISSING: FindingCode.OBJECT_MISSING,
    ErrorCode.OBJECT_ARCHIVED: FindingCode.OBJECT_ARCHIVED,
    ErrorCode.PRIVATE_KEY: FindingCode.SEGMENT_UNDECRYPTABLE,
}
"""Finding codes by the error's; `unreadable` for any other."""
_Read = TypeVar("_Read")
_REFUSED = frozenset({ErrorCode.PRIVATE_KEY, ErrorCode.STORE_FORBIDDEN, ErrorCode.PATH_FORBIDDEN})


class Loss(NamedTuple):
    """A finding, and the offsets (inclusive) of which nothing is returned because of it, None where none is lost.
    `is_refused` says that another key or user may be able to read them."""

    finding: Finding
    offsets: tuple[int, int] | None
    is_refused: bool = False

    @property
    def missing_of(self) -> str | None:
        """The id of the segment of which an object is missing; None where something else was found."""
        about = self.finding.about
        if self.finding.code is not FindingCode.OBJECT_MISSING or not isinstance(about, SegmentSubject):
            return None
        return about.segment_id

    def by_deletion(self, severity: Severity | None = None) -> Loss:
        """The same where the metadata says by now that the segment was deleted: nothing of it is missing."""
        message = "the segment is deleted by now"
        if self.offsets is not None:
            message += f": offsets {self.offsets[0]} to {self.offsets[1]} are not returned"
        finding = replace(self.finding, code=FindingCode.OFFSET_GAP, message=message, severity_override=severity)
        return Loss(finding, self.offsets)


class LostRecords(TieredctlError):
    """That records cannot be read. Its exit code is that of the finding."""

    def __init__(self, finding: Finding) -> None:
        sentence = f"{finding.code}: {finding.subject}: {finding.message}"
        super().__init__(ErrorCode.UNDECODABLE, sentence, hint=finding.remedy)
        self.finding = finding

    @property
    def exit_code(self) -> ExitCode:
        return exit_code_of([self.finding])


class SegmentLosses:
    """Makes the findings about one segment."""

    def __init__(self, layout: SegmentObjects, metadata: RemoteLogSegmentMetadata) -> None:
        self._metadata = metadata
        self._keys = {**layout.promised_objects(metadata), **layout.optional_objects(metadata)}

    def loss(
        self,
        code: FindingCode,
        part: Part,
        reason: str,
        *,
        position: int | None = None,
        offsets: tuple[int, int] | None = None,
        **evidence: object,
    ) -> Loss:
        """`position` is a byte of the part."""
        if offsets is not None and offsets[0] > offsets[1]:
            offsets = None
        named = "" if offsets is None else f": offsets {offsets[0]} to {offsets[1]} are not returned"
        finding = part_finding(
            *(code, self._metadata, self._keys, part, reason + named),
            **{"position": position, "offsets": offsets, **evidence},  # type: ignore[arg-type]
        )
        return Loss(finding, offsets)

    def malformed(self, batches: SoundBatches, malformed: MalformedBatch, within: tuple[int, int]) -> Loss:
        """The loss of a batch whose records cannot be read, as far as its offsets are within some."""
        row = malformed.batch
        offsets = max(int(batches.first_offsets[row]), within[0]), min(int(batches.last_offsets[row]), within[1])
        return self.loss(
            *(FindingCode.UNREADABLE if malformed.is_too_large else FindingCode.BATCH_CORRUPT, Part.LOG),
            malformed.reason,
            position=int(batches.file_positions[row]),
            offsets=offsets,
        )

    def unread(self, part: Part, error: TieredctlError, offsets: tuple[int, int] | None = None) -> Loss:
        """The loss of a part that could not be read."""
        code = _CODES.get(error.code, FindingCode.UNREADABLE)
        loss = self.loss(code, part, error.message.removesuffix("."), offsets=offsets, error=error.code.value)
        return loss._replace(is_refused=error.code in _REFUSED)


def read_twice(
    store: ObjectStore, read: Callable[[ObjectStore], Generator[Loss, None, _Read]]
) -> Generator[Loss, None, _Read]:
    """What is read from a store. Where that is not all sound it is what a second reading over new connections finds:
    bytes may be altered on the way."""
    try:
        next(read(store))
    except StopIteration as end:
        found: _Read = end.value
        return found
    return (yield from read(store.reconnected()))
