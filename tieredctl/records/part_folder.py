"""A folder of files with records, and a manifest that says which records each of them has.

A part is listed in the manifest before it gets its name, so that whoever is killed between the two leaves a last entry
without a file, which the next run makes again; a file without an entry was not written here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.process.progress import note
from tieredctl.process.replaced_file import replaced_file

MANIFEST = "_manifest.json"
"""Readers of whole folders, such as Spark, pass over names that begin so."""
_KIND, _FORMAT = "RecordParts", 1
_LEFT_BY_A_KILLED_RUN = re.compile(r"\.tieredctl-[0-9a-f]{16}\.tmp", re.ASCII)
_PASSED_OVER = (".", "_")
_PIECE_BYTES = 1 << 20


class PartContent(NamedTuple):
    """Which records a part has, and what was found while they were read."""

    partition: int
    next_offset: int
    """Up to where (exclusive) all is in this part and those before it, or was found lost."""
    records: int
    lost_offsets: int
    undecoded: int
    """How many keys and values should have been decoded, and could not be."""
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class RecordPart:
    """A file that is whole."""

    name: str
    content: PartContent
    size: int
    sha256: str

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Raises KeyError, TypeError or ValueError for what `document` does not give."""
        findings = tuple(map(Finding.read, document["findings"]))
        partition, following, records, lost, undecoded = (
            int(document[name]) for name in ("partition", "nextOffset", "records", "lostOffsets", "undecoded")
        )
        content = PartContent(partition, following, records, lost, undecoded, findings)
        return cls(Path(document["name"]).name, content, int(document["sizeInBytes"]), str(document["sha256"]))

    def document(self) -> dict[str, Any]:
        """As the manifest has it."""
        return {
            "name": self.name,
            "partition": self.content.partition,
            "nextOffset": self.content.next_offset,
            "records": self.content.records,
            "lostOffsets": self.content.lost_offsets,
            "undecoded": self.content.undecoded,
            "sizeInBytes": self.size,
            "sha256": self.sha256,
            "findings": [finding.document() for finding in self.content.findings],
        }


class ByteSink(Protocol):
    """Takes bytes."""

    def write(self, data: Any, /) -> int:
        """All of them."""


class _Digested:
    """Hands bytes on, and knows their count and digest."""

    def __init__(self, out: ByteSink) -> None:
        self._out = out
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: Any, /) -> int:
        self._out.write(data)
        self._digest.update(data)
        size = memoryview(data).nbytes
        self.size += size
        return size

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


class PartFolder:
    """The parts of one selection of records, in the order in which they were written."""

    def __init__(self, path: Path, selection: Mapping[str, Any], descriptor: int) -> None:
        """`selection` is JSON that two runs have to have alike; `descriptor` is of the folder, which is locked."""
        self.path = path
        self._selection = dict(selection)
        self._descriptor = descriptor
        self.parts: list[RecordPart] = []

    def of_partition(self, partition: int) -> list[RecordPart]:
        """Those with records of a partition."""
        return [part for part in self.parts if part.content.partition == partition]

    def add(self, name: str, fill: Callable[[ByteSink], PartContent]) -> None:
        """Adds a part, whole or not at all. Raises TieredctlError `unwritable` as `replaced_file` does."""
        with replaced_file(self.path / name, force=False) as file:
            out = _Digested(file)
            content = fill(out)
            part = RecordPart(name, content, out.size, out.hexdigest())
            self._write_manifest([*self.parts, part])
        os.fsync(self._descriptor)
        self.parts.append(part)

    def resume(self) -> None:
        """Takes over what an earlier run left, once each part was read and found as it was written. Raises
        TieredctlError `parts-unusable` for anything else in the folder."""
        names = set(os.listdir(self._descriptor))
        if MANIFEST in names:
            parts = self._listed()
            if parts and parts[-1].name not in names:
                parts.pop()
            self._check(parts)
            self.parts = parts
            for name in filter(_LEFT_BY_A_KILLED_RUN.fullmatch, names):
                os.unlink(name, dir_fd=self._descriptor)
        for name in sorted(names - {part.name for part in self.parts}):
            if not name.startswith(_PASSED_OVER):
                raise self._unusable(f"has {name}, which was not written by such a run")
        if MANIFEST not in names:
            self._write_manifest([])

    def _write_manifest(self, parts: list[RecordPart]) -> None:
        document = {
            "kind": _KIND,
            "version": _FORMAT,
            "selection": self._selection,
            "parts": [part.document() for part in parts],
        }
        with replaced_file(self.path / MANIFEST, force=True) as file:
            file.write(json.dumps({**document, "sha256": _digest_of(document)}, indent=1).encode() + b"\n")

    def _listed(self) -> list[RecordPart]:
        place = self.path / MANIFEST
        try:
            if not place.is_file():
                raise ValueError
            document = json.loads(place.read_bytes())
            digest = document.pop("sha256")
            if digest != _digest_of(document) or (document["kind"], document["version"]) != (_KIND, _FORMAT):
                raise ValueError
            begun, parts = dict(document["selection"]), list(map(RecordPart.read, document["parts"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self._unusable(f"has a {MANIFEST} that was altered, or that another release wrote") from None
        for name, now in self._selection.items():
            if begun.get(name) != now:
                was, given = (json.dumps(value) for value in (begun.get(name), now))
                raise self._unusable(f"was begun with another selection: {name} was {was}, not {given}")
        return parts

    def _check(self, parts: list[RecordPart]) -> None:
        total, done = sum(part.size for part in parts), 0
        for part in parts:
            place, digest = self.path / part.name, hashlib.sha256()
            if not place.is_file() or place.is_symlink() or place.stat().st_size != part.size:
                raise self._unusable(f"lacks {part.name} as it was written: it is gone, or its size is another")
            with place.open("rb") as file:
                while piece := file.read(_PIECE_BYTES):
                    digest.update(piece)
                    done += len(piece)
                    note("bytes checked", done, total)
            if digest.hexdigest() != part.sha256:
                raise self._unusable(f"has {part.name}, which was altered since it was written")

    def _unusable(self, what: str) -> TieredctlError:
        return TieredctlError(ErrorCode.PARTS_UNUSABLE, f"{self.path} {what}.")


def _digest_of(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


@contextmanager
def opened_part_folder(path: Path, selection: Mapping[str, Any]) -> Iterator[PartFolder]:
    """A folder, made if it is not there, with what an earlier run for the same selection left in it. Raises
    TieredctlError `locked` while another run writes into it, `unwritable` for what is no folder or cannot be locked,
    and `parts-unusable` as `PartFolder.resume` does."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{path} cannot be written: {error.strerror}.") from None
    try:
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            message = f"Another run writes into {path}."
            raise TieredctlError(ErrorCode.LOCKED, message, hint="Wait until it ends.") from None
        except OSError as error:
            raise TieredctlError(ErrorCode.UNWRITABLE, f"{path} cannot be locked: {error.strerror}.") from None
        folder = PartFolder(path, selection, descriptor)
        folder.resume()
        yield folder
    finally:
        os.close(descriptor)
