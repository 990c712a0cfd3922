"""Spans of a buffer, of lengths of their own: many by Arrow's kernels, few without importing Arrow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tieredctl.formats.windows import Bytes, Ints

_FEW = 10_000
"""So many take Python about as long as Arrow takes to be imported once in a thousand runs: a few milliseconds."""


def packed(data: Bytes, starts: Ints, ends: Ints) -> bytes | memoryview:
    """The bytes of all spans, which rise and do not overlap, one after the other."""
    if len(starts) <= _FEW:
        return b"".join(_spans(data, starts, ends))
    from tieredctl.formats.arrow_columns import binary_array, contents

    return contents(binary_array(data, starts, ends))[0].data


def distinct_spans(data: Bytes, starts: Ints, ends: Ints) -> tuple[Sequence[bytes], Ints]:
    """The distinct contents of spans, which rise and do not overlap, by first appearance, and the number of each
    span's among them."""
    if len(starts) <= _FEW:
        numbers: dict[bytes, int] = {}
        of_spans = [numbers.setdefault(span, len(numbers)) for span in _spans(data, starts, ends)]
        return list(numbers), np.array(of_spans, np.int64)
    from tieredctl.formats.arrow_columns import binary_array, numbers_in

    coded = binary_array(data, starts, ends).dictionary_encode()
    return coded.dictionary.to_pylist(), numbers_in(coded.indices)


def _spans(data: Bytes, starts: Ints, ends: Ints) -> list[bytes]:
    view = data.data
    return [bytes(view[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
