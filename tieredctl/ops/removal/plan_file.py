"""A plan in a file: written whole or not at all, and read only as it was written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.removal_files import (
    decode_digest,
    decode_plan_header,
    decode_planned,
    encode_digest,
    encode_plan_header,
    encode_plan_totals,
    encode_planned,
)
from tieredctl.model.removal import PlanHeader, Planned, PlannedObject, PlannedUpload, PlanTotals
from tieredctl.ops.replaced_file import replaced_file

_PIECE_BYTES = 1 << 20
_LONGEST_LINE = 1 << 24
_LAST_LINE_BYTES = len(encode_digest(hashlib.sha256().hexdigest()))


class PlanWriter:
    """Writes a plan's lines one after another."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self.objects = self.bytes = self.uploads = 0

    def begin(self, header: PlanHeader) -> None:
        self._write(encode_plan_header(header))

    def add(self, planned: Planned) -> None:
        self._write(encode_planned(planned))
        self.bytes += planned.size
        if isinstance(planned, PlannedObject):
            self.objects += 1
        else:
            self.uploads += 1

    def end(self, listed_objects: int) -> PlanTotals:
        """Writes the totals and the digest."""
        totals = PlanTotals(self.objects, self.bytes, self.uploads, listed_objects)
        self._write(encode_plan_totals(totals))
        self._file.write(encode_digest(self._sum.hexdigest()))
        return totals

    def _write(self, line: bytes) -> None:
        self._sum.update(line)
        self._file.write(line)


@contextmanager
def written_plan(path: Path, *, force: bool = False) -> Iterator[PlanWriter]:
    """A plan that is at `path` once all of it is written; of a failure nothing is left. Raises TieredctlError where
    there is a file already, unless it may be replaced."""
    with replaced_file(path, force=force) as file:
        yield PlanWriter(file)


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan that is as it was written."""

    path: Path
    header: PlanHeader
    totals: PlanTotals
    digest: str

    def planned(self) -> Iterator[Planned]:
        """All that is planned, in the order of the file. Streams. Raises TieredctlError `plan-altered` where another
        plan took the file's place since it was opened."""
        with self.path.open("rb") as file:
            if decode_plan_header(file.readline(_LONGEST_LINE)) != self.header:
                raise TieredctlError("plan-altered", f"{self.path} has another plan than a moment ago.")
            while not isinstance(planned := decode_planned(file.readline(_LONGEST_LINE)), PlanTotals):
                yield planned

    def objects(self) -> Iterator[PlannedObject]:
        return (planned for planned in self.planned() if isinstance(planned, PlannedObject))

    def uploads(self) -> Iterator[PlannedUpload]:
        return (planned for planned in self.planned() if isinstance(planned, PlannedUpload))


def read_plan(path: Path) -> PlanFile:
    """Opens a plan. Raises TieredctlError `plan-altered` where a byte of it is not as it was written."""
    try:
        with path.open("rb") as file:
            header = decode_plan_header(file.readline(_LONGEST_LINE))
            digest, written = _digests(file)
            if digest != written:
                message = f"{path} was altered since it was planned: its digest is not that of its lines."
                raise TieredctlError("plan-altered", message)
            totals = _totals(file)
            return PlanFile(path, header, totals, digest)
    except FileNotFoundError:
        raise TieredctlError("path-missing", f"There is no plan {path}.") from None
    except OSError as error:
        raise TieredctlError("unreadable", f"{path} cannot be read: {error.strerror}.", hint="") from None
    except DecodeError as error:
        raise TieredctlError("plan-altered", f"{path} is not a plan as tieredctl writes it: {error.reason}.") from None


def _digests(file: BinaryIO) -> tuple[str, str]:
    """The digest of all lines but the last, and what the last one says."""
    end = file.seek(0, 2) - _LAST_LINE_BYTES
    if end < 0:
        raise DecodeError("it is cut short", 0)
    file.seek(0)
    digest = hashlib.sha256()
    while file.tell() < end:
        digest.update(file.read(min(_PIECE_BYTES, end - file.tell())))
    return digest.hexdigest(), decode_digest(file.read())


def _totals(file: BinaryIO) -> PlanTotals:
    """The last line but one."""
    end = file.seek(0, 2) - _LAST_LINE_BYTES
    file.seek(max(0, end - 1024))
    totals = decode_planned(file.read(end - file.tell()).splitlines()[-1])
    if not isinstance(totals, PlanTotals):
        raise DecodeError("it has no totals", 0)
    return totals
