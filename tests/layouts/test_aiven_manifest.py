"""Manifests and lists of chunk sizes: what the plugin writes is read, what it cannot have written is refused."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from tieredctl_aiven.chunk_index import ChunkIndex, FixedChunks, decode_chunk_sizes
from tieredctl_aiven.manifest import LARGEST_MANIFEST, StoredIndex, read_manifest

from tests.faults.aiven_storage_manager import encoded_sizes, zstd
from tieredctl.errors import DecodeError
from tieredctl.ports.layout import Part

PLAIN: dict[str, Any] = {
    "version": "1",
    "chunkIndex": {
        "type": "fixed",
        "originalChunkSize": 100,
        "originalFileSize": 250,
        "transformedChunkSize": 100,
        "finalTransformedChunkSize": 50,
    },
    "segmentIndexes": {
        "offset": {"position": 0, "size": 8},
        "timestamp": {"position": 8, "size": 12},
        "producerSnapshot": {"position": 20, "size": 10},
        "leaderEpoch": {"position": 30, "size": 8},
        "transaction": None,
    },
    "compression": False,
    "remoteLogSegmentMetadata": {"anything": ["that", {"Kafka": "has"}]},
}
VARIABLE = {
    "type": "variable",
    "originalChunkSize": 100,
    "originalFileSize": 350,
    "transformedChunks": "KLUv/SAQgQAAAAAABAAPQkABAAoUAAAABw==",
}
ENCRYPTION = {"dataKey": "key1:AAAA", "aad": "AAAA"}


def manifest(**fields: Any) -> bytes:
    return json.dumps(PLAIN | fields).encode()


def index(**fields: Any) -> dict[str, Any]:
    return {**PLAIN["chunkIndex"], **fields}


def refused(data: bytes) -> DecodeError:
    with pytest.raises(DecodeError) as raised:
        pytest.fail(f"{data[:80]!r}: {read_manifest(data)}")
    assert 0 <= raised.value.position <= len(data)
    return raised.value


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"version": "2"}, "manifest.version '2' is not known"),
    ({"version": 1}, "manifest.version is not a text"),
    ({"compression": "no"}, "manifest.compression is not true or false"),
    ({"chunkIndex": None}, "manifest.chunkIndex is not an object"),
    ({"chunkIndex": index(type="odd")}, "type 'odd' is not known"),
    ({"chunkIndex": index(originalChunkSize=0)}, "originalChunkSize cannot be 0"),
    ({"chunkIndex": index(originalFileSize=-1)}, "originalFileSize cannot be -1"),
    ({"chunkIndex": index(originalFileSize=1 << 31)}, "originalFileSize cannot be 2147483648"),
    ({"chunkIndex": index(originalFileSize=True)}, "originalFileSize cannot be True"),
    ({"chunkIndex": index(originalFileSize=2.5)}, "originalFileSize is not a whole number"),
    ({"chunkIndex": index(originalFileSize=251)}, "is 50 for a last chunk of 51 bytes"),
    ({"chunkIndex": index(transformedChunkSize=101)}, "is 101 for chunks of 100 bytes"),
    ({"chunkIndex": VARIABLE | {"originalFileSize": 50}}, "claims 4 chunks where the log has 1"),
    ({"chunkIndex": VARIABLE | {"transformedChunks": "*"}}, "transformedChunks is not base64"),
    ({"chunkIndex": VARIABLE | {"transformedChunks": "AAAA"}}, "transformedChunks cannot be read"),
    ({"encryption": {"dataKey": "AAAA", "aad": "AAAA"}}, "dataKey does not name a key"),
    ({"encryption": ENCRYPTION}, "has 8 bytes, fewer than encryption adds|for a last chunk of 50 bytes"),
    ({"segmentIndexes": {}}, "segmentIndexes has no offset"),
    (
        {"segmentIndexes": {**PLAIN["segmentIndexes"], "timestamp": {"position": 7, "size": 1}}},
        "begins at byte 7",
    ),
]


class TestManifest:
    def test_plain_chunks_lie_where_they_lay_in_the_log(self) -> None:
        chunks = read_manifest(manifest()).chunks

        assert [chunks.stored_range(number) for number in range(3)] == [(0, 100), (100, 200), (200, 250)]
        assert [chunks.original_range(number) for number in range(3)] == [(0, 100), (100, 200), (200, 250)]
        assert chunks.stored_size == 250

    def test_encrypted_chunks_are_longer_and_an_empty_index_is_not_encrypted(self) -> None:
        fields = index(transformedChunkSize=128, finalTransformedChunkSize=78)

        found = read_manifest(manifest(chunkIndex=fields, segmentIndexes=ENCRYPTED_INDEXES, encryption=ENCRYPTION))

        assert [found.chunks.stored_range(number) for number in range(3)] == [(0, 128), (128, 256), (256, 334)]
        assert (found.index_size(Part.OFFSET_INDEX), found.index_size(Part.TIME_INDEX)) == (0, 12)
        assert found.encryption is not None
        assert (found.encryption.key_id, found.encryption.wrapped_key) == ("key1", b"\0\0\0")

    def test_compressed_chunks_have_sizes_of_their_own(self) -> None:
        chunks = read_manifest(manifest(chunkIndex=VARIABLE, compression=True)).chunks

        assert chunks.stored_range(1) == (1_000_000, 2_000_010)
        assert chunks.stored_range(3) == (3_000_030, 3_000_037)
        assert chunks.stored_size == 3_000_037

    def test_indexes_lie_one_after_the_other(self) -> None:
        found = read_manifest(manifest())

        assert found.indexes[Part.PRODUCER_SNAPSHOT] == StoredIndex(20, 30)
        assert Part.TRANSACTION_INDEX not in found.indexes
        assert found.indexes_size == 38

    def test_what_cannot_be_is_refused_and_what_lacks_is_named(self) -> None:
        for fields, reason in IMPOSSIBLE:
            with pytest.raises(DecodeError, match=reason):
                pytest.fail(f"{fields}: {read_manifest(manifest(**fields))}")
        for name in ("version", "chunkIndex", "segmentIndexes", "compression"):
            fields = {key: value for key, value in PLAIN.items() if key != name}
            assert f"has no {name}" in refused(json.dumps(fields).encode()).reason

    def test_damage_is_named_with_its_byte(self) -> None:
        sound = manifest(version="1", note="\u00e9")
        at = sound.index(b'"compression"')

        assert refused(sound[:at] + b"x" + sound[at + 1 :]).position == at
        assert refused(sound.replace(b'"compression": false', b'"compression": 0    ')).position == at

    def test_a_manifest_that_is_cut_and_hostile_json_are_refused(self) -> None:
        for length in range(0, len(manifest()), 7):
            refused(manifest()[:length])
        for hostile in (
            b"[" * 200_000,
            b'{"version":' * 100_000,
            b'{"version": ' + b"1" * 10_000 + b"}",
            b"\xff\xfe{\0}\0",
            b"null",
            b"[]",
            b"NaN",
            b" " * (LARGEST_MANIFEST + 1),
        ):
            refused(hostile)

    def test_a_list_that_unfolds_far_too_far_is_refused(self) -> None:
        bomb = b64encode(zstd(bytes(11 << 20))).decode()

        refused(manifest(chunkIndex=VARIABLE | {"transformedChunks": bomb}))


ENCRYPTED_INDEXES = {
    "offset": {"position": 0, "size": 0},
    "timestamp": {"position": 0, "size": 40},
    "producerSnapshot": {"position": 40, "size": 38},
    "leaderEpoch": {"position": 78, "size": 36},
    "transaction": None,
}


class TestChunkSizes:
    def test_known_bytes(self) -> None:
        for encoded, sizes in {
            "00000000": [],
            "000000010000002a": [42],
            "00000004000f424001000a1400000007": [1_000_000, 1_000_010, 1_000_020, 7],
        }.items():
            assert decode_chunk_sizes(bytes.fromhex(encoded), len(sizes)).tolist() == sizes
            assert encoded_sizes(sizes).hex() == encoded

    def test_differences_take_one_to_four_bytes(self) -> None:
        for spread in (0, 255, 256, 65_535, 65_536, (1 << 24) - 1, 1 << 24, (1 << 31) - 2):
            sizes = [1, 1 + spread, 1, 9]

            assert decode_chunk_sizes(encoded_sizes(sizes), 4).tolist() == sizes

    def test_what_is_not_a_list_of_four_sizes_is_refused(self) -> None:
        for encoded in (
            "",
            "000000",
            "ffffffff",
            "00000003",
            "00000004000f424001000a14000000",
            "00000004000f424001000a140000000700",
            "00000004000f424000000a1400000007",
            "00000004000f424005000a1400000007",
            "00000004ffffffff01000a1400000007",
            "00000004000f424001000a14ffffffff",
            "000000047fffffff01000a1400000007",
        ):
            with pytest.raises(DecodeError):
                pytest.fail(f"{encoded}: {decode_chunk_sizes(bytes.fromhex(encoded), 4)}")


def test_of_an_object_that_was_cut_whole_chunks_alone_are_recoverable() -> None:
    chunks, none = ChunkIndex(100, 250, FixedChunks(3, 128, 78)), ChunkIndex(100, 0, FixedChunks(0, 0, 0))
    recoverable = {0: 0, 127: 0, 128: 100, 255: 100, 256: 200, 333: 200, 334: 250, 999: 250}

    assert {size: chunks.recoverable(size) for size in recoverable} == recoverable
    assert (none.count, none.stored_size, none.recoverable(10)) == (0, 0, 0)
