"""Whether two objects hold the same bytes: what is believed of a store's checksums, and what is read."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from copy import copy
from hashlib import md5, sha256
from typing import Self

import pytest

from tieredctl.errors import TieredctlError
from tieredctl.ops.guards.comparison import BYTES, VERSION, KnownBytes, demand_same, held_by, same_bytes, same_when_read
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES, ObjectStore, StoredObject
from tieredctl.storage.counting import CountingStore
from tieredctl.storage.memory import MemoryStore


class Telling(MemoryStore):
    """A store that keeps these checksums."""

    def __init__(self, **checksums: Mapping[str, str]) -> None:
        super().__init__()
        self._checksums = checksums

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        return self._checksums.get(stored.key, {})


def how_same(store: ObjectStore, one: StoredObject, other: StoredObject) -> str:
    found = same_bytes(store, one, other)
    assert found is not None
    return found.by


DATA = b"0123456789" * 1_000_000
DIGEST = md5(DATA, usedforsecurity=False).hexdigest()


def test_checksums_that_both_have_are_believed_only_if_they_are_equal() -> None:
    # A checksum that both have is enough.
    for name in ["crc32c", "md5", "md5-of-parts", "crc64nvme"]:
        store = Telling(a={name: "1", "sha1": "2"}, b={name: "1", "sha256": "3"})
        one, other = store.put("a", DATA), store.put("b", DATA)
        counting = CountingStore(store)
        assert how_same(counting, one, other) == name, name
        assert counting.requests == {"checksums": 2}, name
    # Checksums that differ prove nothing.
    for name in ["md5", "md5-of-parts", "crc32c"]:
        store = Telling(a={name: "1"}, b={name: "2"})
        assert how_same(store, store.put("a", DATA), store.put("b", DATA)) == BYTES, name
    # Where the store knows one md5 only the other object is read.
    for told in ["a", "b"]:
        store = Telling(**{told: {"md5": DIGEST}})
        one, other = store.put("a", DATA), store.put("b", DATA)
        counting = CountingStore(store)
        assert how_same(counting, one, other) == "md5-read", told
        assert (counting.requests["stream"], counting.requests.get("read")) == (1, None), told


def test_one_byte_that_differs_is_found_wherever_it_is() -> None:
    cases: list[int] = [0, 8 << 20, len(DATA) - 1]
    for position in cases:
        others: list[Mapping[str, str]] = [{}, {"md5": DIGEST}]
        for kept in others:
            store = Telling(a=kept)
            altered = bytearray(DATA)
            altered[position] ^= 1
            assert same_bytes(store, store.put("a", DATA), store.put("b", bytes(altered))) is None, (position, kept)
    # What was written while it was read is not the same.
    store = Telling()
    one, other = store.put("a", DATA), store.put("b", DATA)
    store.put("a", DATA)
    assert same_bytes(store, one, other) is None
    # A copy that differs does not stay.
    store = Telling()
    one, other = store.put("a", b"bytes"), store.put("b", b"other")
    with pytest.raises(TieredctlError, match="does not hold the same bytes") as raised:
        demand_same(store, one, other)
    assert raised.value.code == "removal-failed"
    assert [stored.key for stored in store.list()] == ["a"]


SHORT, OTHER = b"bytes", b"other"
SHA256 = b64encode(sha256(SHORT).digest()).decode()
CRC, MD5 = {"crc32c": "1"}, {"md5": "2"}


def test_what_an_object_holds_is_told_by_what_nobody_can_imitate() -> None:
    cases: list[tuple[Mapping[str, str], Mapping[str, str], bytes, bool, str | None]] = [
        (CRC, CRC, SHORT, False, "crc32c"),
        (CRC, CRC, SHORT, True, None),
        (CRC | {"sha256": SHA256}, CRC, SHORT, True, "sha256-read"),
        (CRC | {"sha256": SHA256}, CRC, OTHER, True, None),
        (MD5 | {"sha256": SHA256}, MD5, OTHER, True, None),
        (CRC | {"sha256": SHA256}, {"crc32c": "2"}, SHORT, False, None),
        ({"md5-of-parts": "1", "sha256": SHA256}, {"md5-of-parts": "2"}, SHORT, True, "sha256-read"),
        ({"sha256": SHA256}, {}, OTHER, False, None),
        ({"sha256": SHA256}, {}, SHORT + b"!", False, None),
        ({}, {}, SHORT, False, VERSION),
        ({}, {}, SHORT, True, None),
    ]
    for noted, kept, data, is_touched, how in cases:
        store = Telling(a=kept)
        found = store.put("a", data, 5_000)
        known = KnownBytes(len(SHORT), noted, "another" if is_touched else found.version, 5_000)
        assert held_by(store, found, known, must_be_untouched=True) == how, (noted, kept, data, is_touched, how)
    # A checksum that others could imitate tells nothing of what is in place either.
    store = Telling(a=CRC, b=MD5)
    imitated, vouched = store.put("a", OTHER), store.put("b", SHORT)
    for noted, found, how in ((CRC, imitated, None), (MD5, vouched, "md5")):
        assert held_by(store, found, KnownBytes(5, noted, "another", None), must_be_untouched=False) == how
    # The same version of another time was written since.
    store = Telling(a=CRC)
    found = store.put("a", OTHER, 5_000)
    for noted_ms, how in ((5_999, "crc32c"), (1_000, None)):
        assert held_by(store, found, KnownBytes(5, CRC, found.version, noted_ms), must_be_untouched=True) == how


class AlteredOnce(Telling):
    """Whose first answer has another byte, and over new connections has not."""

    is_bad = True

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(key, start, end)
        return data[:-1] + b"x" if self.is_bad else data

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        return iter([self.read(key, start)])

    def reconnected(self) -> Self:
        other = copy(self)
        other.is_bad = False
        return other


def test_bytes_that_only_one_reading_found_to_differ_are_the_same() -> None:
    store, sound = AlteredOnce(b={"md5": DIGEST}), MemoryStore()
    one, other = store.put("a", DATA), sound.put("a", DATA)

    assert same_when_read(store, one, sound, other)
    known = KnownBytes(len(DATA), {"md5": DIGEST}, "another", None)
    assert held_by(store, one, known, must_be_untouched=False) == "md5-read"
