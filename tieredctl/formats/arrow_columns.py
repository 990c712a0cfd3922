"""Columns as Arrow arrays and back, by their buffers.

`pyarrow.array`, `scalar` and `to_numpy` do it too, but where pandas is installed they first import it, to ask whether
one of its columns is meant: that takes longer than the decoding of half a million events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieredctl.formats.windows import Bytes, Flags, Ints


def number_array(values: NDArray[Any]) -> pa.Array:
    """Numbers in any byte order, of the type that they have."""
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    return pa.Array.from_buffers(pa.from_numpy_dtype(native.dtype), len(native), [None, pa.py_buffer(native)])


def flag_array(flags: Flags) -> pa.BooleanArray:
    """Truth values, of which Arrow has eight in a byte."""
    bits = np.packbits(flags, bitorder="little")
    return pa.BooleanArray.from_buffers(pa.bool_(), len(flags), [None, pa.py_buffer(bits)])


def text_array(texts: Sequence[str]) -> pa.StringArray:
    """Texts, of less than 2 GiB in all."""
    return bytes_array([text.encode("utf-8") for text in texts]).view(pa.string())


def bytes_array(values: Sequence[bytes]) -> pa.BinaryArray:
    """Byte strings, of less than 2 GiB in all."""
    bounds = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(value) for value in values], out=bounds[1:])
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(bounds), pa.py_buffer(b"".join(values))]
    )


def bytes_or_null_array(values: Sequence[bytes | None]) -> pa.BinaryArray:
    """Byte strings, null for None, of less than 2 GiB in all."""
    present = np.array([value is not None for value in values], np.bool_)
    plain = bytes_array([value or b"" for value in values])
    validity = pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.BinaryArray.from_buffers(pa.binary(), len(values), [validity, *plain.buffers()[1:]])


def few_texts_array(texts: Sequence[str]) -> pa.DictionaryArray:
    """Texts with few distinct values; what UTF-8 cannot hold becomes a question mark."""
    distinct = list(dict.fromkeys(texts))
    numbers = {text: number for number, text in enumerate(distinct)}
    return _texts_by_number(np.fromiter(map(numbers.__getitem__, texts), np.int32, len(texts)), distinct)


def same_text_array(text: str, count: int) -> pa.DictionaryArray:
    """One text, `count` times."""
    return _texts_by_number(np.zeros(count, np.int32), [text])


def _texts_by_number(numbers: NDArray[np.int32], texts: Sequence[str]) -> pa.DictionaryArray:
    distinct = bytes_array([text.encode("utf-8", "replace") for text in texts]).view(pa.string())
    return pa.DictionaryArray.from_arrays(number_array(numbers), distinct)


def text_scalar(text: str) -> pa.StringScalar:
    """One text, for all rows."""
    return text_array([text])[0]


def binary_array(data: Bytes, starts: Ints, ends: Ints) -> pa.BinaryArray:
    """Spans of a buffer that rise and do not overlap."""
    edges = np.empty(2 * len(starts) + 1, np.int32)
    edges[0], edges[1::2], edges[2::2] = 0, starts, ends
    covering = pa.BinaryArray.from_buffers(
        pa.binary(), 2 * len(starts), [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
    return covering.take(number_array(np.arange(1, 2 * len(starts), 2)))


def without_beginning(values: pa.BinaryArray, count: int) -> pa.BinaryArray:
    """Byte strings of at least `count` bytes each, without their first `count` bytes."""
    if not len(values) or not count:
        return values
    data, edges = contents(values)
    return binary_array(data, edges[:-1] + count, edges[1:])


def contents(values: pa.BinaryArray) -> tuple[Bytes, Ints]:
    """The bytes that hold all byte strings, and where each begins and the last one ends in them; not copied."""
    _, bounds, data = values.buffers()
    edges = np.frombuffer(bounds, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return np.frombuffer(data or b"", np.uint8), edges


def numbers_in(array: pa.Array) -> NDArray[Any]:
    """The values of an array of numbers that has no nulls, not copied."""
    values = np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype())
    return values[array.offset : array.offset + len(array)]


def distinct_numbers(values: Ints) -> tuple[Ints, Ints]:
    """The distinct numbers, by first appearance, and the index of each value among them. For few among many, where
    `numpy.unique` would sort them all."""
    coded = number_array(values).dictionary_encode()
    return numbers_in(coded.dictionary), numbers_in(coded.indices)
