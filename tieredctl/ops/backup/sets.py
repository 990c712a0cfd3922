"""Backup sets in a store: a folder for each cluster, with numbered manifests, and the files that they name.

A manifest is written last, and only where there is none of its number: of two runs at once one has the number, and what
has no manifest is no set. Nor is what is numbered below the greatest `beginnings/NUMBER.json`: it was pruned, or the
next prune removes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Generic, TypeVar

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import BackupSetSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.backup.manifests import (
    Beginning,
    Manifest,
    SetFile,
    manifest_sha256,
    read_beginning,
    read_manifest,
)
from tieredctl.ops.guards.second_reading import read_again
from tieredctl.ports.object_store import ObjectStore, WritableObjectStore
from tieredctl.process.interruption import critical_section, mark_complete

CLUSTER_ID = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,248}"
"""An id that names a folder. Kafka makes Uuids, and takes any text that `kafka-storage.sh format` is given."""
_MANIFEST = re.compile(rf"({CLUSTER_ID})/manifests/([0-9]{{8}})\.json", re.ASCII)
_FOLDER = re.compile(r"sets/[0-9]{8}-[0-9TZ]{16}-[0-9a-f]{8}", re.ASCII)
_BEGINNING = re.compile(rf"{CLUSTER_ID}/beginnings/([0-9]{{8}})\.json", re.ASCII)
_LARGEST_MANIFEST = 1 << 26
_MISSING = "the manifest is missing"
_FILE_MISSING = "it is missing"
_MOST_MISSING = 100
"""Manifests in a row that are named one by one: a stray key may have any number."""
_GREATEST = 10**8 - 1
"""Number of a set, by the digits of its keys."""
NOT_READABLE = (ErrorCode.UNDECODABLE, ErrorCode.OBJECT_MISSING)
"""What a manifest is that cannot be used: altered, gone, or pruned since it was listed."""
_Store = TypeVar("_Store", bound=ObjectStore)
_Found = tuple[int, Finding]
"""The number of a set, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class KnownSet:
    """A manifest, and its checksum."""

    manifest: Manifest
    sha256: str


@dataclass(frozen=True, slots=True)
class ClusterSets(Generic[_Store]):
    """The sets of one cluster in a store."""

    store: _Store
    cluster_id: str

    def demand_named(self) -> None:
        """Raises TieredctlError `unwritable` where sets of a cluster with this id would not be found again."""
        if re.fullmatch(CLUSTER_ID, self.cluster_id, re.ASCII) is None:
            message = f"The sets of cluster {self.cluster_id!r} cannot be kept: its id cannot be a folder's name."
            raise TieredctlError(
                ErrorCode.UNWRITABLE, message, hint="Such a name has letters, digits, '.', '_' and '-'."
            )

    def demand_number(self, number: int) -> None:
        """Raises TieredctlError `undecodable` for one that no key can have."""
        if number > _GREATEST:
            message = f"There is a set {_GREATEST} of cluster {self.cluster_id}: none can follow it."
            raise TieredctlError(ErrorCode.UNDECODABLE, message, hint="See `tieredctl backup verify`.")

    def numbers(self) -> list[int]:
        """The numbers of the sets that are there, ascending."""
        return list(self.written_ms())

    def written_ms(self) -> dict[int, int]:
        """When the manifest of each set that is there was written, by the store's clock; by number, ascending."""
        there = read_again(self.store, self._there, is_sound=bool)
        first = self.first() or 0  # read after them: what is pruned meanwhile is not among them
        return {number: written_ms for number, written_ms in there.items() if number >= first}

    def _there(self, store: ObjectStore) -> dict[int, int]:
        matches = ((_MANIFEST.fullmatch(one.key), one) for one in store.list(f"{self.cluster_id}/manifests/"))
        listed = {int(match[2]): one.last_modified_ms for match, one in matches if match is not None}
        return dict(sorted([*listed.items(), *self._unlisted(sorted(listed))]))

    def _unlisted(self, listed: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Those between the listed ones, or right before or after them, that are there when they are asked for by name:
        a listing may be older than they are."""
        for before, after in pairwise(listed):
            for number in range(before + 1, min(after, before + 1 + _MOST_MISSING)):
                if (stored := self.store.head(self.manifest_key(number))) is not None:
                    yield number, stored.last_modified_ms
        if listed:
            yield from self._there_by_name(range(listed[0] - 1, 0, -1))
            yield from self._there_by_name(range(listed[-1] + 1, _GREATEST + 1))

    def _there_by_name(self, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Up to the first that is not there."""
        for number in numbers:
            if (stored := self.store.head(self.manifest_key(number))) is None:
                return
            yield number, stored.last_modified_ms

    def newest(self) -> int:
        """The number of the newest set. Raises TieredctlError `undecodable` where none is there."""
        numbers = self.numbers()
        if not numbers:
            key = self.manifest_key(self.first() or 1)
            raise damaged(key, "it is missing, and so is every later one")
        return numbers[-1]

    def first(self) -> int | None:
        """The set with which they begin since the last prune; None where there was none."""
        return read_again(self.store, self._first_in, is_sound=lambda number: number is not None)

    def _first_in(self, store: ObjectStore) -> int | None:
        matches = (_BEGINNING.fullmatch(one.key) for one in store.list(f"{self.cluster_id}/beginnings/"))
        return max((int(match[1]) for match in matches if match is not None), default=None)

    def beginning(self, number: int) -> Beginning:
        """What a prune noted of the set that it left as the first. Raises TieredctlError as `read` does."""
        return read_again(self.store, lambda store: self._beginning(store, number), NOT_READABLE)

    def _beginning(self, store: ObjectStore, number: int) -> Beginning:
        key = self.beginning_key(number)
        try:
            beginning = read_beginning(store.read(key, 0, _LARGEST_MANIFEST))
        except DecodeError as error:
            raise damaged(key, error.reason) from None
        if (beginning.cluster_id, beginning.number) != (self.cluster_id, number):
            raise damaged(key, f"it is of set {beginning.number} of cluster {beginning.cluster_id}")
        return beginning

    def read(self, number: int) -> KnownSet:
        """A set by its number. Raises TieredctlError `undecodable` where its manifest was altered, or is another's,
        `object-missing` where there is none."""
        return read_again(self.store, lambda store: self._known_set(store, number), NOT_READABLE)

    def _known_set(self, store: ObjectStore, number: int) -> KnownSet:
        key = self.manifest_key(number)
        data = store.read(key, 0, _LARGEST_MANIFEST)
        try:
            manifest = read_manifest(data)
        except DecodeError as error:
            raise damaged(key, error.reason) from None
        if manifest.cluster_id != self.cluster_id:
            raise damaged(key, f"it is of cluster {manifest.cluster_id}")
        if manifest.number != number:
            raise damaged(key, f"it is that of set {manifest.number}")
        if not _FOLDER.fullmatch(manifest.folder) or not 1 <= manifest.base <= number:
            raise damaged(key, "its folder, or the set that it begins with, cannot be right")
        return KnownSet(manifest, manifest_sha256(data))

    def chain(self, number: int) -> list[KnownSet]:
        """The sets from which one is restored, from the one that its events begin with up to itself. Raises
        TieredctlError `undecodable` where one is missing or altered, or does not follow the one before."""
        last = self.read(number)
        chain = [last]
        for before in range(number - 1, last.manifest.base - 1, -1):
            try:
                earlier = self.read(before)
            except TieredctlError as error:
                if error.code is not ErrorCode.OBJECT_MISSING:
                    raise
                raise damaged(self.manifest_key(before), f"it is missing, and set {number} needs it") from None
            if earlier.sha256 != chain[0].manifest.previous:
                raise damaged(self.manifest_key(before), f"set {before + 1} was made after another one")
            chain.insert(0, earlier)
        return chain

    def file_key(self, manifest: Manifest, name: str) -> str:
        """Where a file of a set is."""
        return f"{self.cluster_id}/{manifest.folder}/{name}"

    def read_file(self, manifest: Manifest, name: str) -> bytes:
        """All bytes of a file of a set. Raises TieredctlError `undecodable` where they are not those that were
        written, or are missing."""
        file = manifest.file(name)
        key = self.file_key(manifest, name)
        if file is None:
            raise damaged(key, "its set has no such file")
        data, fault = self._checked(key, file)
        if data is None or fault is not None:
            raise damaged(key, fault or _FILE_MISSING)
        return data

    def examined(self) -> tuple[list[Finding], dict[int, KnownSet]]:
        """What is missing, altered, cut or swapped in these sets, with its place, and by number those whose manifests
        can be read. Reads every byte. Sets that no later one needs may have been deleted or pruned, also meanwhile.
        Raises TieredctlError as the store does."""
        read_sets: dict[int, KnownSet] = {}
        placed = [*self._found(read_sets)]
        first = self.first() or 0
        findings = [finding for number, finding in placed if number >= first]
        return findings, {number: one for number, one in read_sets.items() if number >= first}

    def _found(self, read_sets: dict[int, KnownSet]) -> Iterator[_Found]:
        """What is wrong with the sets; adds each whose manifest can be read to `read_sets`."""
        before: KnownSet | None = None
        numbers, first = self.numbers(), self.first()
        if first is not None:
            expected = first
            yield from self._beginning_findings(first, numbers)
        else:
            expected = numbers[0] if numbers and self._begins_with(numbers[0]) else 1
        for number in numbers:
            for lost in range(expected, min(number, expected + _MOST_MISSING)):
                yield _finding(self.manifest_key(lost), _MISSING, lost)
            if number > expected + _MOST_MISSING:
                yield _finding(
                    self.manifest_key(number - 1), f"{_MISSING}, as all are from set {expected} on", number - 1
                )
            try:
                one = read_sets[number] = self.read(number)
            except TieredctlError as error:
                if error.code not in NOT_READABLE:
                    raise
                yield _finding(self.manifest_key(number), error.message, number)
                before, expected = None, number + 1
                continue
            follows = before is not None and expected == number
            if follows and before is not None and one.manifest.previous != before.sha256:
                what = f"it was made after another manifest than that of set {number - 1}"
                yield _finding(self.manifest_key(number), what, number)
            yield from self._file_findings(one.manifest)
            before, expected = one, number + 1

    def _beginning_findings(self, first: int, numbers: Sequence[int]) -> Iterator[_Found]:
        """What is wrong with the first set since a prune, but for what is found in every set."""
        try:
            beginning = self.beginning(first)
        except TieredctlError as error:
            if error.code not in NOT_READABLE:
                raise
            yield _finding(self.beginning_key(first), error.message, first)
            return
        if not numbers:
            yield _finding(self.manifest_key(first), _MISSING, first)
        elif first in numbers and not self._begins_with(first, beginning.sha256):
            yield _finding(self.manifest_key(first), "it is not that with which sets begin since a prune", first)

    def _begins_with(self, number: int, sha256_of_manifest: str | None = None) -> bool:
        """Whether a set needs none before it, and has a manifest with this checksum."""
        try:
            read_set = self.read(number)
        except TieredctlError as error:
            if error.code not in NOT_READABLE:
                raise
            return False
        return read_set.manifest.base == number and sha256_of_manifest in (None, read_set.sha256)

    def has_files(self, manifest: Manifest) -> bool:
        """Whether every file of a set is there with its size; reads none."""
        listed = {one.key: one for one in self.store.list(f"{self.cluster_id}/{manifest.folder}/")}
        for one in manifest.files:
            key = self.file_key(manifest, one.name)
            stored = listed.get(key) or self.store.head(key)  # a listing may be older than it is
            if stored is None or stored.size != one.size:
                return False
        return True

    def manifest_key(self, number: int) -> str:
        """Where the manifest of a set is."""
        return f"{self.cluster_id}/manifests/{number:08}.json"

    def beginning_key(self, number: int) -> str:
        """Where it is noted that a set is the first since a prune."""
        return f"{self.cluster_id}/beginnings/{number:08}.json"

    def _file_findings(self, manifest: Manifest) -> Iterator[_Found]:
        for file in manifest.files:
            key = self.file_key(manifest, file.name)
            _, fault = self._checked(key, file)
            if fault is not None:
                yield _finding(key, fault, manifest.number)

    def _checked(self, key: str, file: SetFile) -> tuple[bytes | None, str | None]:
        """The bytes of a file, and what is wrong with them also when they are read again over new connections."""
        return read_again(
            self.store, lambda store: _checked_once(store, key, file), is_sound=lambda one: one[1] is None
        )


def publish(sets: ClusterSets[WritableObjectStore], manifest: Manifest, files: Sequence[tuple[str, bytes]]) -> None:
    """Writes a set: its files, and last its manifest, each of which is read back. Raises TieredctlError `locked` where
    another run has made a set of this number meanwhile, or made and pruned it, `object-missing` or `undecodable` where
    the store does not have what it said it took."""
    for name, data in files:
        if sets.store.put_if_absent(sets.file_key(manifest, name), data) is None:
            raise TieredctlError(ErrorCode.WORLD_CHANGED, f"{sets.file_key(manifest, name)} is there already.")
        sets.read_file(manifest, name)
    with critical_section():
        if sets.store.put_if_absent(sets.manifest_key(manifest.number), manifest.encode()) is None:
            message = f"Another backup of cluster {manifest.cluster_id} made set {manifest.number} meanwhile."
            raise TieredctlError(ErrorCode.LOCKED, message, hint="That set is there; nothing else is to be done.")
        if manifest.number < (sets.first() or 0):  # else its number would have been taken until now
            message = f"Other backups made set {manifest.number} and later ones meanwhile, and it was pruned."
            raise TieredctlError(ErrorCode.LOCKED, message, hint="Run it again.")
        if sets.read(manifest.number).sha256 != manifest_sha256(manifest.encode()):
            raise damaged(sets.manifest_key(manifest.number), "it is not what was written")
        mark_complete()


def clusters_in(store: ObjectStore) -> list[str]:
    """The ids of the clusters that have sets in a store."""
    return read_again(store, _clusters_listed, is_sound=bool)


def _clusters_listed(store: ObjectStore) -> list[str]:
    return sorted({match[1] for one in store.list() if (match := _MANIFEST.fullmatch(one.key)) is not None})


def the_cluster(store: ObjectStore, named: str | None) -> str:
    """The cluster that is named, or the only one. Raises TieredctlError `usage` where there is none, or a choice."""
    if named is not None and ClusterSets(store, named).numbers():
        return named  # a bucket may have much else
    cluster_ids = clusters_in(store)
    if named in cluster_ids:
        return named  # all that is left of it was to be pruned
    if not cluster_ids:
        raise TieredctlError(ErrorCode.USAGE, f"{store.url} has no backup set.", hint="Check the URL.")
    if named is not None:
        message = f"{store.url} has no set of cluster {named}; it has those of {', '.join(cluster_ids)}."
        raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, message, hint="Check --cluster-id and the URL.")
    if len(cluster_ids) > 1:
        message = f"{store.url} has sets of these clusters: {', '.join(cluster_ids)}."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Choose one with --cluster-id.")
    return cluster_ids[0]


def _checked_once(store: ObjectStore, key: str, file: SetFile) -> tuple[bytes | None, str | None]:
    data = _bytes(store, key, file)
    return data, _fault(file, data)


def _bytes(store: ObjectStore, key: str, file: SetFile) -> bytes | None:
    try:
        return store.read(key, 0, file.size + 1)
    except TieredctlError as error:
        if error.code is not ErrorCode.OBJECT_MISSING:
            raise
        return None


def _fault(file: SetFile, data: bytes | None) -> str | None:
    if data is None:
        return _FILE_MISSING
    if len(data) != file.size:
        return f"it has {'more than' if len(data) > file.size else f'{len(data)} of'} {file.size} bytes"
    return None if sha256(data).hexdigest() == file.sha256 else "its bytes are not those that were written"


def _finding(key: str, what: str, number: int) -> _Found:
    return number, damage(key, what, number)


def damage(key: str, what: str, number: int) -> Finding:
    """The finding that an object of a set is not as it was written."""
    evidence: dict[str, object] = {"key": key, "set": number}
    return Finding(FindingCode.BACKUP_DAMAGED, key, what.rstrip("."), evidence, about=BackupSetSubject(number))


def damaged(key: str, reason: str) -> TieredctlError:
    """What an object of a set that cannot be used is refused with."""
    hint = "See what else is damaged with `tieredctl backup verify`, and restore from an earlier set with --set."
    return TieredctlError(ErrorCode.UNDECODABLE, f"{key} cannot be used: {reason}.", hint=hint)
