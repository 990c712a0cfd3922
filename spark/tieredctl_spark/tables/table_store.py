"""Where tables are, which version of them is current, and how a run makes the next one current.

A version is an object `_manifests/VERSION.json`, made only if there is none: of several runs that write the same one,
one succeeds. Files that a run writes have the version in their names that it will become: once another run has made
that version, nobody can ever name them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.second_reading import read_again
from tieredctl.ports.object_store import (
    MOST_DELETED_AT_ONCE,
    Capability,
    ObjectStore,
    StoredObject,
    WritableObjectStore,
)
from tieredctl.wiring.places import StorePlace
from tieredctl_spark.tables.kinds import DAY, TableKind
from tieredctl_spark.tables.manifest import AnyManifest, Manifest, State, TableState, tables_in
from tieredctl_spark.tables.stored_bytes import demand_stored

_MANIFESTS = "_manifests/"
_MANIFEST = re.compile(r"_manifests/(?P<version>\d{12})\.json")
_DATA_FILE = re.compile(r".*/v(?P<version>\d{12})-[^/]+\.parquet")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")
READABLE_VERSIONS = 10
"""The files of so many versions stay: a reader that began with one of them finds all of its files."""
_KEPT_MANIFESTS = 100
_ONE_ANSWER = (ErrorCode.UNDECODABLE, ErrorCode.OBJECT_MISSING)
"""What one answer alone does not say of a manifest that was listed."""
_Made = TypeVar("_Made", bound=AnyManifest)
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class TablesPlace:
    """The folder of all tables, in a store. Can be pickled; opens nothing."""

    url: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def given(cls, text: str, options: Mapping[str, str]) -> TablesPlace:
        """The place of a URL as of --store, or of the path of a folder."""
        place = StorePlace(text if _SCHEME.match(text) else f"file:{text}", options)
        place.demand_known()
        return cls(place.from_everywhere(), options)

    @classmethod
    def beside(cls, store: StorePlace, text: str) -> TablesPlace:
        """The same: a bucket of the store's kind is opened with the store's options."""
        scheme = store.url.partition(":")[0]
        return cls.given(text, store.options if text.startswith(f"{scheme}:") else {})

    def open(self) -> ObjectStore:
        """Opens the store for reading. Raises TieredctlError as stores do."""
        return StorePlace(self.url, self.options).open_store()

    def open_writable(self) -> WritableObjectStore:
        """Opens the store for a run. A local folder is made."""
        if self.url.startswith("file:"):
            folder = self.url.removeprefix("file:")
            try:
                os.makedirs(folder, exist_ok=True)
            except OSError as error:
                message = f"{folder} cannot be made: {error.strerror}"
                raise TieredctlError(ErrorCode.UNWRITABLE, message) from None
        store = StorePlace(self.url, self.options).open_writable_store()
        if Capability.CONDITIONAL_WRITE not in store.capabilities:
            message = f"{store.url} has no conditional writes: two runs at once could not be told apart."
            raise TieredctlError(ErrorCode.UNWRITABLE, message, hint="Keep the tables in another store.")
        return store


Opened = Callable[[TablesPlace], WritableObjectStore]


def data_file_key(kind: TableKind, version: int, run_id: str, day: str | None) -> str:
    """The key of a new file, unlike any other."""
    folder = kind.name if day is None else f"{kind.name}/{DAY}={day}"
    return f"{folder}/v{version:012d}-{run_id}-{token_hex(6)}.parquet"


def demand_apart(tables: TablesPlace, store_url: str) -> None:
    """Raises TieredctlError `usage` where tables would be among the objects of a remote store."""
    folder, other = (url.rstrip("/") + "/" for url in (tables.url, store_url))
    if folder.startswith(other):
        message = f"{tables.url} is in the store itself, where nothing but its own objects may be."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Name a folder or a prefix outside the store.")


def demand_same_store(recorded: str, store_url: str, tables: str) -> None:
    """Raises TieredctlError `usage` where tables are of another remote store."""
    if recorded != store_url:
        message = f"The tables in {tables} are of the store {recorded}, not of {store_url}."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Name another folder: one for each store.")


def demand_no_tables(store: ObjectStore) -> None:
    """Raises TieredctlError `usage` where tables are, among whose files no others may be."""
    if _newest_version(store):
        message = f"{store.url} has tables of its own."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Name another folder for the files of a catalog's tables.")


def current(store: ObjectStore) -> Manifest | None:
    """The newest version of the pipeline's tables; None where no run ended."""
    return newest(store, Manifest)


def newest(store: ObjectStore, form: type[_Made]) -> _Made | None:
    """The newest version by manifests of this form; None where no run ended."""
    version = _newest_version(store)
    return _manifest(store, version, form) if version else None


def demand_current(store: ObjectStore) -> Manifest:
    """The newest version of the pipeline's tables. Raises TieredctlError `path-missing` where there is none."""
    found = current(store)
    if found is None:
        raise _no_tables(store)
    return found


def current_tables(store: ObjectStore) -> Mapping[str, State]:
    """The tables of the newest version, whoever wrote it. Raises TieredctlError `path-missing` where there is none."""
    version = _newest_version(store)
    if not version:
        raise _no_tables(store)
    return _read(store, version, tables_in)


def commit(store: WritableObjectStore, manifest: AnyManifest) -> None:
    """Makes a version current. Raises TieredctlError `locked` where another run made its version, and `unwritable` as
    `demand_stored` does."""
    data, form = manifest.to_bytes(), type(manifest)
    made = store.put_if_absent(_key(manifest.version), data)
    if made is not None:
        demand_stored(store, made, data, f"Remove {made.key}, if it is there: the version before it is whole.")
    # The answer to our own request may have been lost, and a store then refuses the second one. A run may have made
    # this version before, and not know it by a listing that lacks it: what is in it tells.
    elif not read_again(store, lambda at: at.read(_key(manifest.version)) == data, _ONE_ANSWER, is_sound=bool):
        raise _lost_to_another(store, manifest)
    # A version may be made again once manifests are removed that were made meanwhile.
    later = [version for version in _versions(store) if version > manifest.version]
    if later and (
        later[0] != manifest.version + 1 or _manifest(store, later[0], form).parent_run_id != manifest.run_id
    ):
        raise _lost_to_another(store, manifest)


def remove_leftovers(store: WritableObjectStore, manifest: AnyManifest) -> int:
    """Removes what no version names that readers may still use, and that no later one can name; `manifest` is current.
    How many files that were: none where a listing lacks the manifest of a version whose files stay, since these would
    look like leftovers."""
    needed = _versions_needed(manifest)
    versions = read_again(store, _versions, is_sound=needed.issubset)
    if not needed.issubset(versions):
        return 0
    readable = [_manifest(store, version, type(manifest)) for version in versions[-READABLE_VERSIONS:]]
    states = [state for known in readable for state in known.tables.values() if isinstance(state, TableState)]
    named = {one.path for state in states for one in state.files}
    removed = 0
    leftovers: list[StoredObject] = []
    for stored in _data_files(store, manifest):
        if stored.key not in named:
            leftovers.append(stored)
            removed += 1
        if len(leftovers) == MOST_DELETED_AT_ONCE:
            store.delete(leftovers)
            leftovers = []
    old = {_key(version) for version in versions[:-_KEPT_MANIFESTS]}
    leftovers += [stored for stored in store.list(_MANIFESTS) if stored.key in old] if old else []
    for first in range(0, len(leftovers), MOST_DELETED_AT_ONCE):
        store.delete(leftovers[first : first + MOST_DELETED_AT_ONCE])
    return removed


def _versions_needed(manifest: AnyManifest) -> set[int]:
    """The versions that have manifests and files which stay. Files that wait for a catalog have none."""
    if not any(isinstance(state, TableState) and state.files for state in manifest.tables.values()):
        return set()
    return set(range(max(1, manifest.version - READABLE_VERSIONS + 1), manifest.version + 1))


def _data_files(store: ObjectStore, manifest: AnyManifest) -> Iterator[StoredObject]:
    """The files of all tables that runs wrote for a version, or an earlier one."""
    for name in manifest.tables:
        for stored in store.list(f"{name}/"):
            found = _DATA_FILE.fullmatch(stored.key)
            if found and int(found["version"]) <= manifest.version:
                yield stored


def _newest_version(store: ObjectStore) -> int:
    """0 where there is none. A listing may lack it: the versions after those listed are asked for by name."""
    version = max(_versions(store), default=0)
    while store.head(_key(version + 1)) is not None:
        version += 1
    return version


def _versions(store: ObjectStore) -> list[int]:
    found = (_MANIFEST.fullmatch(stored.key) for stored in store.list(_MANIFESTS))
    return [int(one["version"]) for one in found if one]


def _key(version: int) -> str:
    return f"{_MANIFESTS}{version:012d}.json"


def _manifest(store: ObjectStore, version: int, form: type[_Made]) -> _Made:
    return _read(store, version, form.read)


def _read(store: ObjectStore, version: int, read: Callable[[bytes, str], _Read]) -> _Read:
    key = _key(version)
    return read_again(store, lambda at: read(at.read(key), f"{store.url}/{key}"), _ONE_ANSWER)


def _no_tables(store: ObjectStore) -> TieredctlError:
    hint = "Write them with `tieredctl pipeline run`, or with the job backfill."
    return TieredctlError(ErrorCode.PATH_MISSING, f"There are no tables in {store.url}.", hint=hint)


def _lost_to_another(store: ObjectStore, manifest: AnyManifest) -> TieredctlError:
    message = (
        f"Another run wrote version {manifest.version} of the tables in {store.url} meanwhile; this one changed none."
    )
    return TieredctlError(ErrorCode.LOCKED, message, hint="Run it again: it goes on after what the other run wrote.")
