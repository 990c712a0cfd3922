"""A store's keys in ranges of similar length, found by probing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tieredctl_spark import parted_keys
from tieredctl_spark.parted_keys import key_ranges

from tieredctl.model.ids import uuid_text
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.memory import MemoryStore

names = st.text(st.sampled_from("-/0Aa_z~é\U0010ffff"), min_size=1, max_size=6)


class Sorted(MemoryStore):
    """A store of many keys, which counts its listings."""

    parallel_reads = 8

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__()
        self.keys = sorted(set(keys))
        self.listings = 0

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        self.listings += 1
        for key in islice(self.keys, bisect_right(self.keys, max(start_after, prefix[:-1])), None):
            if key.startswith(prefix):
                yield StoredObject(key, 1, 0, "v")
            elif key > prefix:
                return


def spread(number: int) -> str:
    return uuid_text((number * 0x9E3779B97F4A7C15 % 2**64).to_bytes(8) * 2)


def segments(folder: str, count: int) -> list[str]:
    return [f"{folder}/{one * 1_000:020}-{spread(one)}.{part}" for one in range(count) for part in ("index", "log")]


def of_partitions() -> list[str]:
    return [key for one in range(20_000) for key in segments(f"t{one % 40}-{one}-{spread(one % 40)}", 2)]


def of_one_topic_among_others() -> list[str]:
    return [
        *(key for one in range(20_000) for key in segments(f"orders-{one}-{spread(1)}", 2)),
        *(key for one in range(60) for key in segments(f"t{one}-0-{spread(one)}", 2)),
    ]


def of_one_partition_above_all() -> list[str]:
    return [
        *segments(f"orders-3-{spread(1)}", 30_000),
        *(key for one in range(500) for key in segments(f"t{one}-0-{spread(one)}", 4)),
    ]


def in_a_folder() -> list[str]:
    return [key for one in range(4_000) for key in segments(f"a/long/prefix/t{one}-0-{spread(one)}", 8)]


def without_folders() -> list[str]:
    return [f"all/{spread(one)}" for one in range(60_000)]


STORES = {
    "20,000 partitions": of_partitions,
    "20,000 partitions of one topic among others": of_one_topic_among_others,
    "one partition with most of the segments": of_one_partition_above_all,
    "folders in a folder": in_a_folder,
    "ids without folders": without_folders,
}


@pytest.mark.parametrize("keys_of", STORES.values(), ids=STORES)
def test_no_range_has_much_more_than_its_share(keys_of: Callable[[], list[str]]) -> None:
    keys = keys_of()
    store = Sorted(keys)

    ranges = key_ranges(store, 64)

    lengths = [sum(1 for _ in one.objects(store)) for one in ranges]
    assert sum(lengths) == len(store.keys)
    assert 8 < len(ranges) <= 64
    assert max(lengths) < len(keys) / 8
    assert store.listings < 64 * 10


def test_a_small_store_is_one_range_that_takes_one_question() -> None:
    store = Sorted(segments("t-0", 400))

    assert len(key_ranges(store, 256)) == 1
    assert store.listings == 1


@given(st.sets(names), st.sets(names), st.integers(1, 9), st.sampled_from(["", "a", "A/", "é"]))
def test_ranges_hold_every_key_once_whatever_is_stored_meanwhile(
    before: set[str], after: set[str], most: int, prefix: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parted_keys, "_PAGE", 2)
        planned, grown = MemoryStore(), MemoryStore()
        for store, keys in ((planned, before), (grown, after)):
            for key in keys:
                store.put(key, b"")

        ranges = key_ranges(planned, most, prefix)

    for store, keys in ((planned, before), (grown, after)):
        found = [stored.key for one in ranges for stored in one.objects(store)]
        assert found == sorted(key for key in keys if key.startswith(prefix))
    assert len(ranges) <= most
