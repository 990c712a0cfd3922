"""A plan in a file: written whole or not at all, and read only if unaltered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.removal_files import (
    PLAN_HEADER,
    PLAN_TOTALS,
    decode_planned,
    decode_seal,
    encode_planned,
    encode_seal,
)
from tieredctl.model.removal import PlanHeader, Planned, PlannedObject, PlannedUpload, PlanTotals, Seal
from tieredctl.ops.guards.sealed_notes import Sealer, is_signed_alike
from tieredctl.process.progress import note_more
from tieredctl.process.replaced_file import replaced_file

_PIECE_BYTES = 1 << 20
_LONGEST_LINE = 1 << 24
_LAST_LINES_BYTES = 1 << 12
"""Enough for the totals and the seal."""


class PlanWriter:
    """Writes a plan's lines one after another."""

    def __init__(self, file: BinaryIO, key: bytes | None = None) -> None:
        """`key` signs the plan."""
        self._file = file
        self._sealer = Sealer(key)
        self.objects = self.bytes = self.uploads = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is planned so far."""
        return not self.objects and not self.uploads

    def begin(self, header: PlanHeader) -> None:
        self._write(PLAN_HEADER.encode(header))

    def add(self, planned: Planned) -> None:
        self._write(encode_planned(planned))
        self.bytes += planned.size
        if isinstance(planned, PlannedObject):
            self.objects += 1
        else:
            self.uploads += 1

    def end(self, listed_objects: int) -> PlanTotals:
        """Writes the totals and the seal."""
        totals = PlanTotals(self.objects, self.bytes, self.uploads, listed_objects)
        self._write(PLAN_TOTALS.encode(totals))
        self._file.write(encode_seal(self._sealer.seal()))
        return totals

    def _write(self, line: bytes) -> None:
        self._sealer.update(line)
        self._file.write(line)


class _NothingPlannedError(Exception):
    """Keeps the file from appearing."""


@contextmanager
def written_plan(
    path: Path, key: bytes | None = None, *, force: bool = False, dry_run: bool = False
) -> Iterator[PlanWriter]:
    """A plan that appears at `path` once all of it is written, signed with `key`; a failure leaves nothing, nor does a
    dry run. Raises TieredctlError if the file exists already and `force` is off."""
    with replaced_file(path, force=force, dry_run=dry_run, is_last=True) as file:
        yield PlanWriter(file, key)


@contextmanager
def plan_if_any(path: Path, key: bytes | None, *, force: bool = False, dry_run: bool = False) -> Iterator[PlanWriter]:
    """The same, but a plan of nothing does not appear, and what it would have replaced is gone: an earlier plan would
    be applied in its place."""
    try:
        with written_plan(path, key, force=force, dry_run=dry_run) as writer:
            yield writer
            if writer.is_empty:
                raise _NothingPlannedError
    except _NothingPlannedError:
        if force and not dry_run:
            _remove(path)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{path} cannot be removed: {error.strerror}.") from None


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan that is unaltered."""

    path: Path
    header: PlanHeader
    totals: PlanTotals
    digest: str
    is_signed: bool = False
    """Whether it was signed with the reader's key."""

    def planned(self) -> Iterator[Planned]:
        """Everything that is planned, in the order of the file. Streams. Raises TieredctlError `plan-altered` if the
        file was replaced by another plan since it was opened."""
        with self.path.open("rb") as file:
            if PLAN_HEADER.decode(file.readline(_LONGEST_LINE)) != self.header:
                raise TieredctlError(ErrorCode.PLAN_ALTERED, f"{self.path} was replaced by another plan just now.")
            while not isinstance(planned := decode_planned(file.readline(_LONGEST_LINE)), PlanTotals):
                note_more("lines of the plan read", 1)
                yield planned

    def objects(self) -> Iterator[PlannedObject]:
        return (planned for planned in self.planned() if isinstance(planned, PlannedObject))

    def uploads(self) -> Iterator[PlannedUpload]:
        return (planned for planned in self.planned() if isinstance(planned, PlannedUpload))


def read_plan(path: Path, key: bytes | None = None) -> PlanFile:
    """Opens a plan. Raises TieredctlError `plan-altered` if any byte differs from what was written.

    A digest only shows damage, since anybody can compute one: `is_signed` tells whether the plan was signed with `key`.
    """
    try:
        if path.exists() and not path.is_file():
            raise TieredctlError(ErrorCode.UNREADABLE, f"{path} cannot be read: it is not a regular file.", hint="")
        with path.open("rb") as file:
            header = PLAN_HEADER.decode(file.readline(_LONGEST_LINE))
            last_lines = _last_lines(file)
            seal, stated = _sealed(file, file.seek(0, 2) - len(last_lines[-1]), key), decode_seal(last_lines[-1])
            if seal.digest != stated.digest:
                message = f"{path} was altered after planning: its digest does not match its lines."
                raise TieredctlError(ErrorCode.PLAN_ALTERED, message)
            totals = decode_planned(last_lines[-2])
            if not isinstance(totals, PlanTotals):
                raise DecodeError("it has no totals", 0)
            return PlanFile(path, header, totals, seal.digest, is_signed_alike(stated, seal))
    except FileNotFoundError:
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no plan {path}.") from None
    except OSError as error:
        raise TieredctlError(ErrorCode.UNREADABLE, f"{path} cannot be read: {error.strerror}.", hint="") from None
    except DecodeError as error:
        raise TieredctlError(ErrorCode.PLAN_ALTERED, f"{path} is not a valid plan: {error.reason}.") from None


def _last_lines(file: BinaryIO) -> list[bytes]:
    """The totals and the seal, perhaps after other lines."""
    file.seek(max(0, file.seek(0, 2) - _LAST_LINES_BYTES))
    lines = file.read().splitlines(keepends=True)
    if len(lines) < 2:
        raise DecodeError("it is cut short", 0)
    return lines


def _sealed(file: BinaryIO, end: int, key: bytes | None) -> Seal:
    """The seal of all bytes before `end`."""
    sealer = Sealer(key)
    file.seek(0)
    while file.tell() < end:
        sealer.update(file.read(min(_PIECE_BYTES, end - file.tell())))
    return sealer.seal()
