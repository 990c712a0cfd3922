"""Receipts: what was done, written where it outlives this process before anything relies on it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.removal_files import RECEIPT, RECEIPTS_HEADER
from tieredctl.model.removal import Receipt, ReceiptsHeader, ReceiptStep, RemovalMode
from tieredctl.ops.guards.own_objects import receipts_folder
from tieredctl.ports.object_store import ObjectStore, WritableObjectStore
from tieredctl.process.replaced_file import file_added_to

DamageTaker = Callable[[str], object]
"""Called with where a line of receipts is that cannot be read, and why."""


_HEADER_BEGINS = RECEIPTS_HEADER.encode(ReceiptsHeader("", "", "", "", "", RemovalMode.DELETE)).partition(b",")[0]
_NUMBER = re.compile(r"[0-9]{10}")
_MOST_TRIES = 10
"""How often to try to add receipts before giving up on the store."""
_LINES_TO_TELL = 1000
"""How many lines after a first one that cannot be read may show that they are receipts."""


class Receipts(Protocol):
    """The receipts of one plan, in the order in which things were done."""

    @property
    def header(self) -> ReceiptsHeader: ...

    @property
    def where(self) -> str:
        """What `orphans restore` takes to find them."""
        ...

    @property
    def are_beside_copies(self) -> bool:
        """Whether they are in the store, where whoever may alter copies may alter them too."""
        ...

    def demand_writable(self) -> None:
        """Raises TieredctlError now, before anything is done that is to be recorded, where some could not be added."""
        ...

    def append(self, receipts: Sequence[Receipt]) -> None:
        """Adds some; they are on disk, or in the store, when this returns. Raises TieredctlError if they are not."""
        ...

    def entries(self, damaged: DamageTaker | None = None) -> Iterator[Receipt]:
        """All that were written, by this run and by earlier ones.

        `damaged` is called for each line that cannot be read; if it is None, the first one raises TieredctlError
        `receipts-damaged`.
        """
        ...


def last_receipts(entries: Iterable[Receipt]) -> dict[str, Receipt]:
    """What became of each object, by key, and of each upload, by its id."""
    last: dict[str, Receipt] = {}
    remember(last, entries)
    return last


def remember(last: dict[str, Receipt], receipts: Iterable[Receipt]) -> None:
    """Adds receipts to the last ones.

    A failure does not hide a copy: its run may have lost the lease to another that made one and deleted the object.
    """
    for receipt in receipts:
        name = receipt.upload_id or receipt.key
        would_hide = receipt.step is ReceiptStep.FAILED and receipt.copy is None and name in last
        before = last.get(name, receipt)
        last[name] = (
            before._replace(step=receipt.step, at_ms=receipt.at_ms, error=receipt.error) if would_hide else receipt
        )


class ReceiptFile:
    """Receipts in a file. A line that was cut off when its writer died was never confirmed: it is dropped."""

    are_beside_copies = False

    def __init__(self, path: Path, header: ReceiptsHeader) -> None:
        self._path = path
        self.header = header

    @property
    def where(self) -> str:
        return str(self._path)

    @staticmethod
    def begun(path: Path, header: ReceiptsHeader) -> ReceiptFile:
        """The receipts at `path`, created if there are none. Raises TieredctlError if the file cannot be written or has
        another plan's."""
        _demand_file(path)
        first = RECEIPTS_HEADER.encode(header)
        if _is_cut_from(path, first):
            receipts = ReceiptFile(path, header)
            receipts._write(first)
            _sync_folder(path)
            return receipts
        receipts = ReceiptFile.opened(path)
        _demand_same(receipts.header, header, str(path))
        return receipts

    @staticmethod
    def opened(path: Path) -> ReceiptFile:
        """The receipts that exist. Raises TieredctlError if there are none, `usage` for a file of another kind."""
        _demand_file(path)
        try:
            with path.open("rb") as file:
                if not (first := file.readline()):
                    raise FileNotFoundError  # its writer was killed before the first line
                if not _begins_receipts(first, file):
                    hint = "Give the file that --receipts named, or a plan's id and its --store."
                    raise TieredctlError(ErrorCode.USAGE, f"{path} is not a file of receipts.", hint=hint)
                return ReceiptFile(path, RECEIPTS_HEADER.decode(first))
        except FileNotFoundError:
            raise TieredctlError(ErrorCode.PATH_MISSING, f"There are no receipts in {path}.") from None
        except OSError as error:
            raise TieredctlError(ErrorCode.UNREADABLE, f"{path} cannot be read: {error.strerror}.", hint="") from None
        except DecodeError as error:
            raise _damaged(str(path), error) from None

    def demand_writable(self) -> None:
        self._write(b"")

    def append(self, receipts: Sequence[Receipt]) -> None:
        if receipts:
            self._write(b"".join(map(RECEIPT.encode, receipts)))

    def entries(self, damaged: DamageTaker | None = None) -> Iterator[Receipt]:
        with self._path.open("rb") as file:
            file.readline()
            for number, line in enumerate(file, 2):
                if line.endswith(b"\n"):
                    yield from _decoded(line, f"{self.where}, line {number},", damaged)

    def _write(self, lines: bytes) -> None:
        try:
            with file_added_to(self._path, _HEADER_BEGINS) as file:
                _drop_unfinished_line(self._path, file.fileno())
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise TieredctlError(ErrorCode.UNWRITABLE, f"{self._path} cannot be written: {error.strerror}.") from None


class StoredReceipts:
    """Receipts in the store, one object each time some are added. Needs Capability.CONDITIONAL_WRITE."""

    are_beside_copies = True

    def __init__(self, store: WritableObjectStore, header: ReceiptsHeader) -> None:
        self._store = store
        self._folder = receipts_folder(header.plan_id)
        self._next = 0
        self.header = header

    @property
    def where(self) -> str:
        return self.header.plan_id

    @staticmethod
    def begun(store: WritableObjectStore, header: ReceiptsHeader) -> StoredReceipts:
        """The plan's receipts, created if there are none. Raises TieredctlError if they cannot be."""
        receipts = StoredReceipts(store, header)
        receipts._add(RECEIPTS_HEADER.encode(header))
        _demand_same(StoredReceipts.opened(store, header.plan_id).header, header, receipts.where)
        return receipts

    @staticmethod
    def opened(store: WritableObjectStore, plan_id: str) -> StoredReceipts:
        """The receipts that a plan left. Raises TieredctlError if there are none."""
        return StoredReceipts(store, stored_header(store, plan_id))

    def demand_writable(self) -> None:
        """The lease and the record of the plan's use were written there just before."""

    def append(self, receipts: Sequence[Receipt]) -> None:
        if receipts:
            self._add(b"".join(map(RECEIPT.encode, receipts)))

    def entries(self, damaged: DamageTaker | None = None) -> Iterator[Receipt]:
        for stored in list(self._store.list(self._folder)):
            for number, line in enumerate(self._store.read(stored.key).splitlines(), 1):
                # Each run starts with its own header.
                if not line.startswith(_HEADER_BEGINS):
                    yield from _decoded(line, f"{stored.key}, line {number},", damaged)

    def _add(self, lines: bytes) -> None:
        for _ in range(_MOST_TRIES):
            key = f"{self._folder}{self._next:010d}.jsonl"
            self._next += 1
            if self._store.put_if_absent(key, lines) is not None:
                return
            self._next = max(self._next, self._after_the_last())
        message = f"{self._store.url} did not store {key}, nor earlier keys, although nothing else wrote them."
        raise TieredctlError(ErrorCode.STORE_INCAPABLE, message)

    def _after_the_last(self) -> int:
        names = [stored.key.removeprefix(self._folder).partition(".")[0] for stored in self._store.list(self._folder)]
        return max((int(name) + 1 for name in names if _NUMBER.fullmatch(name)), default=0)


def stored_header(store: ObjectStore, plan_id: str) -> ReceiptsHeader:
    """The header of the receipts that a plan left in a store. Raises TieredctlError `path-missing` if there are none,
    `receipts-damaged` if they cannot be read."""
    first = next(store.list(receipts_folder(plan_id)), None)
    if first is None:
        message = f"{store.url} has no receipts of plan {plan_id}."
        raise TieredctlError(ErrorCode.PATH_MISSING, message, hint="Give the file of receipts, or a plan's id.")
    try:
        return RECEIPTS_HEADER.decode(store.read(first.key))
    except DecodeError as error:
        raise _damaged(first.key, error) from None


class ReceiptsInMemory:
    """Receipts that are not kept: for a plan whose receipts are lost, in a store that cannot hold them."""

    where = ""
    are_beside_copies = False

    def __init__(self, header: ReceiptsHeader) -> None:
        self.header = header
        self._entries: list[Receipt] = []

    def demand_writable(self) -> None:
        pass

    def append(self, receipts: Sequence[Receipt]) -> None:
        self._entries += receipts

    def entries(self, damaged: DamageTaker | None = None) -> Iterator[Receipt]:  # noqa: ARG002 - the protocol's
        yield from self._entries


def _begins_receipts(first: bytes, following: Iterable[bytes]) -> bool:
    """Whether this is the first line of receipts, damaged or not: by how it begins, or by a receipt after it."""
    if first.startswith(_HEADER_BEGINS) or _HEADER_BEGINS.startswith(first):
        return True
    return any(_is_receipt(line) for line in islice(following, _LINES_TO_TELL))


def _is_receipt(line: bytes) -> bool:
    try:
        RECEIPT.decode(line)
    except DecodeError:
        return False
    return True


def _decoded(line: bytes, where: str, damaged: DamageTaker | None) -> Iterator[Receipt]:
    try:
        yield RECEIPT.decode(line)
    except DecodeError as error:
        if damaged is None:
            raise _damaged(where, error) from None
        damaged(f"{where} cannot be read: {error.reason}")


def _demand_same(present: ReceiptsHeader, header: ReceiptsHeader, where: str) -> None:
    if present != header:
        message = f"{where} has the receipts of another plan, {present.plan_id}."
        raise TieredctlError(ErrorCode.RECEIPTS_DAMAGED, message, hint="Name another file with --receipts.")


def _damaged(where: str, error: DecodeError) -> TieredctlError:
    return TieredctlError(ErrorCode.RECEIPTS_DAMAGED, f"{where} cannot be read as receipts: {error.reason}.")


def _demand_file(path: Path) -> None:
    """A device or a pipe keeps nothing, and reading it may never end."""
    if path.exists() and not path.is_file():
        hint = "Name a file with --receipts."
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{path} exists and is not a regular file.", hint=hint)


def _is_cut_from(path: Path, first: bytes) -> bool:
    """Whether there is less than the first line: nothing, or what a killed writer left."""
    try:
        with path.open("rb") as file:
            beginning = file.read(len(first))
            return len(beginning) < len(first) and first.startswith(beginning)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise TieredctlError(ErrorCode.UNREADABLE, f"{path} cannot be read: {error.strerror}.", hint="") from None


def _drop_unfinished_line(path: Path, descriptor: int) -> None:
    data = path.read_bytes() if not _ends_with_a_line(path) else b""
    if data:
        os.ftruncate(descriptor, data.rfind(b"\n") + 1)


def _ends_with_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(0, end - 1))
        return file.read() in (b"\n", b"")


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path.absolute().parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
