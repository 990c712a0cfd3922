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

Text: TypeAlias = Any
"""A column of text, or one text for all rows (str): Arrow comes without types."""


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
