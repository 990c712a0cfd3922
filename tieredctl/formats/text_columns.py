"""Columns of text, made of columns and joined row by row by Arrow's kernels, so that Python touches no single row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import number_array, text_scalar
from tieredctl.formats.windows import Ints
from tieredctl.model.ids import UUID_CHARACTERS

Text: TypeAlias = Any
"""A column of text, or one text for all rows (str): Arrow comes without types."""

_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
_PAIRS = np.stack([np.repeat(_ALPHABET, 64), np.tile(_ALPHABET, 64)], axis=1).copy().view(np.uint16)[:, 0]


def uuid_texts(ids: NDArray[np.void]) -> pa.StringArray:
    """16-byte ids as Kafka prints them, by twelve bits at a time."""
    count = len(ids)
    padded = np.zeros((count, 18), np.uint8)
    padded[:, :16] = np.ascontiguousarray(ids).view(np.uint8).reshape(count, 16)
    triples = padded.reshape(count, 6, 3).astype(np.uint16)
    pairs = np.empty((count, 6, 2), np.uint16)
    pairs[:, :, 0] = _PAIRS[triples[:, :, 0] << 4 | triples[:, :, 1] >> 4]
    pairs[:, :, 1] = _PAIRS[(triples[:, :, 1] & 15) << 8 | triples[:, :, 2]]
    characters = np.ascontiguousarray(pairs.reshape(count, 12).view(np.uint8)[:, :UUID_CHARACTERS])
    bounds = np.arange(0, (count + 1) * UUID_CHARACTERS, UUID_CHARACTERS, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(bounds), pa.py_buffer(characters))


def number_texts(values: NDArray[Any]) -> Text:
    """Whole numbers in decimal."""
    if _is_one(values):
        return str(values[0])
    return pc.cast(number_array(values), pa.string())


def chosen_texts(numbers: NDArray[Any], texts: pa.StringArray) -> Text:
    """Of each row the text that its number names."""
    if _is_one(numbers):
        return texts[int(numbers[0])].as_py()
    return texts.take(number_array(numbers.astype(np.int32)))


def list_texts(elements: Sequence[Text], bounds: Ints, between: str) -> Text:
    """Of each row its elements, bounds[i] to bounds[i + 1] of those that the parts make, with a text between them."""
    joined = joined_texts(elements)
    if isinstance(joined, str):
        joined = pa.repeat(text_scalar(joined), int(bounds[-1]))
    if len(joined) == len(bounds) - 1 and (np.diff(bounds) == 1).all():
        return joined
    lists = pa.ListArray.from_arrays(number_array(bounds.astype(np.int32)), joined)
    return pc.binary_join(lists, text_scalar(between))


def joined_texts(parts: Sequence[Text]) -> Text:
    """The parts joined row by row; those that are one text for all rows are joined first."""
    merged: list[Text] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    if len(merged) == 1:
        return merged[0]
    columns = (text_scalar(part) if isinstance(part, str) else part for part in merged)
    return pc.binary_join_element_wise(*columns, text_scalar(""))


def run_of_texts(texts: Text, count: int) -> str:
    """The texts of `count` rows, one after the other."""
    if isinstance(texts, str):
        return texts * count
    return str(bytes_of_texts(texts), "utf-8")


def bytes_of_texts(texts: pa.StringArray) -> memoryview:
    """The texts of all rows, one after the other."""
    bounds = np.frombuffer(texts.buffers()[1], np.int32)
    first, last = bounds[texts.offset], bounds[texts.offset + len(texts)]
    return memoryview(texts.buffers()[2])[first:last]


def _is_one(values: NDArray[Any]) -> bool:
    """Whether all rows have the same number."""
    return len(values) > 0 and values[0] == values[-1] and bool((values == values[0]).all())
