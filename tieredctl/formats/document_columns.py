"""Many documents with the same fields, as columns: as Python's objects, or as what `json.dumps` makes of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import number_array, text_array, text_scalar
from tieredctl.formats.uuid_columns import UuidColumns
from tieredctl.formats.windows import Ints
from tieredctl.model.ids import UUID_CHARACTERS

_MOST_BYTES_AT_ONCE = 1 << 26
_NUMBER_BYTES = 20
_NULL, _BETWEEN = "null", ", "


class DocumentColumn(Protocol):
    """What one field has in every document."""

    def values(self) -> Iterable[Any]:
        """The values as Python's objects."""
        ...

    def json_texts(self) -> Sequence[Text]:
        """The values as JSON: the parts of one text, to be joined."""
        ...

    def most_bytes(self, count: int) -> int:
        """A bound of what the JSON of `count` documents takes, which is all of them."""
        ...


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole numbers of at most 64 bits."""

    numbers: NDArray[Any]

    def values(self) -> Iterable[int]:
        numbers: list[int] = self.numbers.tolist()
        return numbers

    def json_texts(self) -> Sequence[Text]:
        return [number_texts(self.numbers)]

    def most_bytes(self, count: int) -> int:
        return _NUMBER_BYTES * count


@dataclass(frozen=True, slots=True)
class KnownNumbers:
    """The same, of which negative ones are not known: null."""

    numbers: NDArray[Any]

    def values(self) -> Iterable[int | None]:
        return (None if number < 0 else number for number in self.numbers.tolist())

    def json_texts(self) -> Sequence[Text]:
        if not (self.numbers < 0).any():
            return [number_texts(self.numbers)]
        return [text_array([_NULL if number is None else str(number) for number in self.values()])]

    def most_bytes(self, count: int) -> int:
        return _NUMBER_BYTES * count


class Choices:
    """Values of any kind that many documents share."""

    def __init__(self, values: Sequence[Any]) -> None:
        texts = list(map(json.dumps, values))
        self.values = values
        self.json_texts = text_array(texts)
        self.longest = max(map(len, texts), default=0)


@dataclass(frozen=True, slots=True)
class Chosen:
    """One of some choices for each document: the one that its number names."""

    numbers: NDArray[Any]
    choices: Choices

    def values(self) -> Iterable[Any]:
        return map(self.choices.values.__getitem__, self.numbers.tolist())

    def json_texts(self) -> Sequence[Text]:
        return [chosen_texts(self.numbers, self.choices.json_texts)]

    def most_bytes(self, count: int) -> int:
        return self.choices.longest * count


@dataclass(frozen=True, slots=True)
class Ids:
    """Ids, as Kafka prints them."""

    ids: UuidColumns

    def values(self) -> Iterable[str]:
        return self.ids.texts()

    def json_texts(self) -> Sequence[Text]:
        return ['"', self.ids.text_array(), '"']

    def most_bytes(self, count: int) -> int:
        return (UUID_CHARACTERS + 2) * count


@dataclass(frozen=True, slots=True)
class PlainTexts:
    """Texts in which JSON escapes nothing, or None."""

    texts: Sequence[str | None]

    def values(self) -> Iterable[str | None]:
        return self.texts

    def json_texts(self) -> Sequence[Text]:
        if not any(text is not None for text in self.texts):
            return [_NULL]
        return [text_array([_NULL if text is None else f'"{text}"' for text in self.texts])]

    def most_bytes(self, count: int) -> int:
        return sum(map(len, filter(None, self.texts))) + len(_NULL) * count


@dataclass(frozen=True, slots=True)
class Listed:
    """Lists of documents: bounds[i] to bounds[i + 1] of the elements."""

    bounds: Ints
    elements: DocumentColumns

    def values(self) -> Iterable[list[dict[str, Any]]]:
        elements = list(self.elements.documents())
        return (elements[first:last] for first, last in pairwise(self.bounds.tolist()))

    def json_texts(self) -> Sequence[Text]:
        return ["[", list_texts(self.elements.json_texts(), self.bounds, _BETWEEN), "]"]

    def most_bytes(self, count: int) -> int:
        return self.elements.most_bytes() + len(_BETWEEN) * self.elements.count + len("[]") * count


@dataclass(frozen=True, slots=True)
class DocumentColumns:
    """Documents, whose fields come in this order; a field's name may be another one in each document."""

    count: int
    fields: Sequence[tuple[str | Chosen, DocumentColumn]]

    def documents(self) -> Iterator[dict[str, Any]]:
        """One after the other."""
        names = (repeat(name, self.count) if isinstance(name, str) else name.values() for name, _ in self.fields)
        values = (column.values() for _, column in self.fields)
        rows = zip(zip(*names, strict=True), zip(*values, strict=True), strict=True)
        return (dict(zip(*row, strict=True)) for row in rows)

    def json_texts(self) -> Sequence[Text]:
        """What `json.dumps` makes of each: the parts of one text, to be joined."""
        parts: list[Text] = []
        for name, column in self.fields:
            named = [f'"{name}"'] if isinstance(name, str) else name.json_texts()
            parts += [_BETWEEN if parts else "{", *named, ": ", *column.json_texts()]
        return [*parts, "}"]

    def json_lines(self) -> Iterator[str]:
        """The same, a line each, in pieces of whole lines: in one piece unless it could be a large one."""
        if self.most_bytes() <= _MOST_BYTES_AT_ONCE:
            yield run_of_texts(joined_texts([*self.json_texts(), "\n"]), self.count)
        else:
            yield from (json.dumps(document) + "\n" for document in self.documents())

    def most_bytes(self) -> int:
        """A bound of what all of them take as JSON."""
        fields = sum(
            (len(name) * self.count if isinstance(name, str) else name.most_bytes(self.count))
            + column.most_bytes(self.count)
            for name, column in self.fields
        )
        return fields + (len("{}") + len(', "": ') * len(self.fields)) * self.count


Text: TypeAlias = Any
"""A column of text, or one text for all rows (str): Arrow comes without types."""


def number_texts(values: NDArray[Any]) -> Text:
    """Whole numbers in decimal."""
    if _is_one(values):
        return str(values[0])
    return pc.cast(number_array(values), pa.string())


def chosen_texts(numbers: NDArray[Any], texts: pa.StringArray) -> Text:
    """The text that each row's number names."""
    if _is_one(numbers):
        return texts[int(numbers[0])].as_py()
    return texts.take(number_array(numbers.astype(np.int32)))


def list_texts(elements: Sequence[Text], bounds: Ints, between: str) -> Text:
    """The elements of each row, bounds[i] to bounds[i + 1] of those that the parts make, with a text between them."""
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
