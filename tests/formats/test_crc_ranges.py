"""A stretch's CRC is what it is when computed alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tieredctl.formats.crc32c import crc32c
from tieredctl.formats.crc_ranges import RangeCrcs

FILE = np.random.default_rng(1).bytes(100_000)
SPANS = st.tuples(st.integers(0, len(FILE)), st.integers(0, len(FILE)), st.integers(0, len(FILE))).map(sorted)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(SPANS, max_size=8), st.booleans())
def test_overlapping_stretches_have_the_crc_of_each_alone(spans: list[list[int]], rises: bool) -> None:
    ranges = RangeCrcs()

    for base, start, end in sorted(spans) if rises else spans:
        assert ranges.crc(FILE[base:end], base, start, end) == crc32c(FILE[start:end])
