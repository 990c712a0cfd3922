"""Damaged and hostile input: a reader gives values or raises DecodeError, soon and in little memory.

`TIEREDCTL_FUZZ_INPUTS` says how many inputs all readers together are given; they are the same in every run.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import time
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence

import pytest

from tests.formats.fuzzed_readers import LARGEST_SECTION, READERS, Reader
from tests.shares import divided
from tieredctl.errors import DecodeError

INPUTS = int(os.environ.get("TIEREDCTL_FUZZ_INPUTS", "200000"))
LONGEST_SECONDS = 2.0
"""No input may take longer; the usual one takes a tenth of a millisecond."""
LARGEST_GROWTH = 64 << 20
"""By how many bytes the process may grow while a reader is fuzzed: what codecs allocate, Python does not see."""
RESIDENT_UNIT = 1 if sys.platform == "darwin" else 1024


def memory_allowed(data: bytes) -> int:
    """Bytes that a reader may hold at its peak: what a few compressed blocks unfold to, and an object a byte."""
    return 8 * LARGEST_SECTION + 100 * len(data)


HOSTILE_NUMBERS = [
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x80\0\0\0",
    b"\0\xff\xff\xff",
    b"\x7f\xff",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"2147483648",
]
"""Lengths and counts that promise more than there is, as fixed-width numbers, varints and text."""


def flip_bits(data: bytearray, chance: random.Random, _: Sequence[bytes]) -> bytearray:
    for _flip in range(chance.randint(1, 4)):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def truncate(data: bytearray, chance: random.Random, _: Sequence[bytes]) -> bytearray:
    return data[: chance.randint(0, len(data))]


def splice(data: bytearray, chance: random.Random, seeds: Sequence[bytes]) -> bytearray:
    other = chance.choice(seeds)
    return data[: chance.randint(0, len(data))] + other[chance.randint(0, len(other)) :]


def inflate(data: bytearray, chance: random.Random, _: Sequence[bytes]) -> bytearray:
    number, position = chance.choice(HOSTILE_NUMBERS), chance.randint(0, len(data))
    replaced = position + (len(number) if chance.random() < 0.5 else 1)
    return data[:position] + number + data[replaced:]


MUTATIONS = [flip_bits, truncate, splice, inflate]


def mutated(reader: Reader, numbers: Iterable[int]) -> Iterator[bytes]:
    """The damaged inputs of these numbers."""
    for number in numbers:
        chance = random.Random(f"{reader.name} {number}")
        data = bytearray(chance.choice(reader.seeds))
        for mutation in chance.choices(MUTATIONS, k=chance.randint(1, 3)):
            data = mutation(data, chance, reader.seeds)
        yield reader.seal(bytes(data))


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_seeds_are_sound(reader: Reader) -> None:
    for seed in reader.seeds:
        assert reader.seal(seed) == seed
        reader.read(seed)


def cost_of(reader: Reader, data: bytes) -> tuple[float, int]:
    """Seconds of the processor's, and bytes at the peak, that reading or refusing an input takes."""
    tracemalloc.reset_peak()
    before, began = tracemalloc.get_traced_memory()[0], time.process_time()
    position = position_of_refusal(reader, data)
    seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1] - before
    assert position >= 0, data.hex()
    return seconds, peak


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_damaged_input_is_read_or_refused_soon_and_in_little_memory(reader: Reader) -> None:
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        for data in mutated(reader, divided(range(-(-INPUTS // len(READERS))))):
            seconds, peak = cost_of(reader, data)
            if peak > memory_allowed(data):
                seconds, peak = cost_of(reader, data)  # what the first use of a library loads is not the input's doing
            assert seconds < LONGEST_SECONDS, data.hex()
            assert peak <= memory_allowed(data), data.hex()
    finally:
        tracemalloc.stop()
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident
    assert growth * RESIDENT_UNIT <= LARGEST_GROWTH


def position_of_refusal(reader: Reader, data: bytes) -> int:
    """The byte that the reader names, 0 where it refuses nothing. Any other error than DecodeError comes through."""
    try:
        reader.read(data)
    except DecodeError as refused:
        return refused.position
    return 0
