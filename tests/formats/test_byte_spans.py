"""Spans of a buffer come out the same by Arrow's kernels as by Python."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieredctl.formats import byte_spans

PIECES = st.lists(st.tuples(st.binary(max_size=2), st.binary(max_size=3)), max_size=20)
"""What lies before each span, and what lies in it."""


@given(PIECES)
def test_many_spans_are_what_few_are(pieces: list[tuple[bytes, bytes]]) -> None:
    spans = [inside for _, inside in pieces]
    data = np.frombuffer(b"".join(before + inside for before, inside in pieces), np.uint8)
    ends = np.array(list(accumulate(len(before) + len(inside) for before, inside in pieces)), np.int64)
    starts = ends - np.array([len(inside) for inside in spans], np.int64)

    for few in (len(spans), -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(byte_spans, "_FEW", few)
            distinct, numbers = byte_spans.distinct_spans(data, starts, ends)
            packed = byte_spans.packed(data, starts, ends)

        assert list(distinct) == list(dict.fromkeys(spans))
        assert [distinct[number] for number in numbers.tolist()] == spans
        assert bytes(packed) == b"".join(spans)
