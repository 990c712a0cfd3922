"""What could not be read, and where."""

from __future__ import annotations

from typing import NamedTuple

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.formats.record_fields import MalformedBatch
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, exit_code_of
from tieredctl.ops.remote.part_finding import part_finding
from tieredctl.ports.layout import Part
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.records.sound_batches import SoundBatches

_CODES = {
    ErrorCode.OBJECT_MISSING: FindingCode.OBJECT_MISSING,
    ErrorCode.OBJECT_ARCHIVED: FindingCode.OBJECT_ARCHIVED,
    ErrorCode.PRIVATE_KEY: FindingCode.SEGMENT_UNDECRYPTABLE,
}
"""Finding codes by the error's; `unreadable` for any other."""
_REFUSED = frozenset({ErrorCode.PRIVATE_KEY, ErrorCode.STORE_FORBIDDEN, ErrorCode.PATH_FORBIDDEN})


class Loss(NamedTuple):
    """A finding, and the offsets (inclusive) of which nothing is returned because of it, None where none is lost.
    `is_refused` says that another key or user may be able to read them."""

    finding: Finding
    offsets: tuple[int, int] | None
    is_refused: bool = False


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
        """For a batch of which the records cannot be read, as far as its offsets are within some."""
        row = malformed.batch
        offsets = max(int(batches.first_offsets[row]), within[0]), min(int(batches.last_offsets[row]), within[1])
        return self.loss(
            *(FindingCode.UNREADABLE if malformed.is_too_large else FindingCode.BATCH_CORRUPT, Part.LOG),
            malformed.reason,
            position=int(batches.file_positions[row]),
            offsets=offsets,
        )

    def unread(self, part: Part, error: TieredctlError, offsets: tuple[int, int] | None = None) -> Loss:
        """For a part that could not be read."""
        code = _CODES.get(error.code, FindingCode.UNREADABLE)
        loss = self.loss(code, part, error.message.removesuffix("."), offsets=offsets, error=error.code.value)
        return loss._replace(is_refused=error.code in _REFUSED)
