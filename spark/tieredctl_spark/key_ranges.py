"""Cuts a store's keys into ranges that are listed in parallel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tieredctl.storage.protocol import LAST_CHARACTER, ObjectStore, StoredObject, list_unreserved

_MOST_LISTINGS = 4_096
_ID_CHARACTERS = "-123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"


class KeyRange(NamedTuple):
    """The keys after `after`, up to and including `last`; all keys after it where `last` is None."""

    after: str
    last: str | None

    def objects(self, store: ObjectStore) -> Iterator[StoredObject]:
        """The objects of the range without tieredctl's own, by ascending key."""
        for stored in list_unreserved(store, start_after=self.after):
            if self.last is not None and stored.key > self.last:
                return
            yield stored


def key_ranges(store: ObjectStore, most: int) -> list[KeyRange]:
    """At most `most` ranges that together hold every key once, whatever is stored or removed meanwhile.

    They are of similar length where folders are of similar size, or where a store without folders names objects by
    ids. Finding a folder takes a listing of one object.
    """
    edges = _edges(store)
    step = -(-(len(edges) + 1) // most)
    edges = edges[step - 1 :: step]
    return [KeyRange(after, last) for after, last in zip(["", *edges], [*edges, None], strict=True)]


def _edges(store: ObjectStore) -> list[str]:
    """Where the keys may be cut, ascending."""
    prefix = ""
    folders = _folders(store, prefix)
    while len(folders) == 1:  # where everything is below one folder, cut its content
        prefix = folders[0]
        folders = _folders(store, prefix)
    if folders:
        return [folder + LAST_CHARACTER for folder in folders[:-1]]
    return [prefix + character for character in _ID_CHARACTERS]


def _folders(store: ObjectStore, prefix: str) -> list[str]:
    """The first folders in a folder, each with its slash."""
    folders: list[str] = []
    after = prefix
    for _ in range(_MOST_LISTINGS):
        stored = next(list_unreserved(store, prefix, after), None)
        if stored is None:
            break
        name, slash, _ = stored.key.removeprefix(prefix).partition("/")
        after = prefix + name
        if slash:
            folders.append(after + slash)
            after += slash + LAST_CHARACTER
    return folders
